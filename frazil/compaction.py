"""`python -m frazil.compaction --table db.events`: keeps tables in shape, as a program of its own.

The settings come from the environment (`FRAZIL_…`), Spark's from its own.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence

from workers.compaction.spark_compaction import keep_in_shape

_APPLICATION = "frazil-compaction"


def parser() -> argparse.ArgumentParser:
    """Return what reads the arguments."""
    found = argparse.ArgumentParser("python -m frazil.compaction", description=__doc__)
    found.add_argument("--table", action="append", required=True, help="db.name; may be repeated")
    found.add_argument(
        "--small-file-threshold", type=int, default=20, help="small files of a partition, at least"
    )
    found.add_argument("--every-s", type=float, default=60.0, help="seconds between two looks")
    found.add_argument("--budget-bytes", type=int, default=10 << 30, help="a round and table")
    found.add_argument(
        "--equality-delete-threshold",
        type=int,
        help="equality delete files of a partition, at least, to convert them",
    )
    found.add_argument("--rounds", type=int, help="then end; for ever without")
    found.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="of the compaction"
    )
    return found


def main(arguments: Sequence[str]) -> None:
    """Run until told to end."""
    given = parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    # Spark's own, the first `python3`, may lack packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.appName(_APPLICATION).getOrCreate()
    try:
        keep_in_shape(
            spark,
            given.table,
            small_file_threshold=given.small_file_threshold,
            every_s=given.every_s,
            budget_bytes=given.budget_bytes,
            equality_delete_threshold=given.equality_delete_threshold,
            rounds=given.rounds,
            options=dict(each.split("=", 1) for each in given.option),
        )
    finally:
        spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
