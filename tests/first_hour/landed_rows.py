"""Reads a table of the walks with PyIceberg, and says whether each row is in it once.

    python -m tests.first_hour.landed_rows CATALOG TABLE [ID …]

The ids of a stream count from 0, for each carrier; those that are named stand there once more for
each carrier, as a write beside the stream has put them in. However many rows a stream had time for,
the answer is the same.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from pyiceberg.catalog.sql import SqlCatalog


def main(arguments: Sequence[str]) -> int:
    database, name, *beside = arguments
    catalog = SqlCatalog("frazil", uri=f"sqlite:///{Path(database).absolute()}")
    rows = catalog.load_table(name).scan(selected_fields=("id", "carrier")).to_arrow().to_pylist()
    for carrier in sorted({row["carrier"] for row in rows}):
        print(f"{carrier}: {verdict([r['id'] for r in rows if r['carrier'] == carrier], beside)}")
    return 0 if rows else 1


def verdict(ids: Sequence[int], beside: Sequence[str]) -> str:
    """Return the verdict on one carrier's ids."""
    count = len(ids) - len(beside)
    expected = sorted([*range(count), *map(int, beside)])
    if count < 1 or sorted(ids) != expected:
        return f"rows are missing or doubled: {sorted(ids)}"
    said = f", and beside them {', '.join(beside)}" if beside else ""
    return f"all ids from 0 on, each once{said}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
