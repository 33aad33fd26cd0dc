"""The batch application of the demo's second act: what runs beside the streams of changes.

Run as a program of its own: `python -m committer.demo.writers.batch_application PLAN`, PLAN being
the JSON of a `BatchPlan`. It loads some flights, merges corrections of them,
and compacts the table, each while other programs upsert into the same table.
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import sleep

from pyspark.sql import SparkSession

from committer.demo.writers.application_plan import BatchPlan, parse_batch_plan
from committer.demo.writers.events import ChangeLanded, SparkStarted
from committer.demo.writers.flight_changes import DELETES, KEY, TABLE_COLUMNS
from committer.demo.writers.small_spark import Reporter, small_session
from frazil import load_table
from frazil.spark import merge_into, rewrite_data_files

# Only a change of the same flights can make the merge run again, and there is none.
_RETRIES = 3
_LOOK_S = 0.5


def main(plan: BatchPlan) -> None:
    """Run one step after the other, and tell of each."""
    spark = small_session(plan)
    reporter = Reporter(Path(plan.events))
    reporter.tell(SparkStarted(plan.name))
    reporter.tell(_load(spark, plan))
    _wait_for_snapshots(plan.table, 2)
    reporter.tell(_merge(spark, plan))
    _wait_for_snapshots(plan.table, plan.snapshots_before)
    reporter.tell(_compact(spark, plan))
    spark.stop()


def _load(spark: SparkSession, plan: BatchPlan) -> ChangeLanded:
    rows = spark.read.parquet(f"{plan.input}/loaded.parquet").select(*TABLE_COLUMNS)
    writer = rows.write.format("frazil").mode("append").option("wait", "committed")
    writer.save(plan.table)
    count = rows.count()
    return ChangeLanded("load", int(count > 0), f"{count:,} flights")


def _wait_for_snapshots(name: str, count: int) -> None:
    """Wait until the streams have begun, or have gone on: each upsert is a snapshot."""
    table = load_table(name)
    while len(table.snapshots()) < count:
        sleep(_LOOK_S)
        table.refresh()


def _merge(spark: SparkSession, plan: BatchPlan) -> ChangeLanded:
    """Merge corrections. The last part of `on` says which flights may match at all, so upserts of
    other flights are no conflict."""
    corrections = spark.read.parquet(f"{plan.input}/corrections.parquet")
    on = f"target.{KEY} = source.{KEY} and target.{KEY} >= {plan.first_correction}"
    done = (
        merge_into(plan.table, corrections, on=on, retries=_RETRIES)
        .when_matched_delete(f"source.{DELETES}")
        .when_matched_update_all()
        .when_not_matched_insert_all(f"not (source.{DELETES})")
        .execute()
    )
    words = (
        f"{done.updated_rows:,} flights updated, {done.deleted_rows:,} deleted,"
        f" {done.inserted_rows:,} inserted"
    )
    return ChangeLanded("merge", int(done.snapshot_id is not None), words)


def _compact(spark: SparkSession, plan: BatchPlan) -> ChangeLanded:
    """Compact what there is by now. A group that loses a race is left to the next compaction."""
    done = rewrite_data_files(
        spark, plan.table, options={"min-input-files": 2, "delete-file-threshold": 1}
    )
    words = f"{done.rewritten_files} data files and their deletes rewritten to {done.added_files}"
    return ChangeLanded("compaction", len(done.snapshot_ids), words)


if __name__ == "__main__":
    main(parse_batch_plan(sys.argv[1]))
