"""One Spark application of the demo: some streaming queries that all write to one table.

Run as a program of its own: `python -m committer.demo.writers.application PLAN`, PLAN being the
JSON of an `ApplicationPlan`. Frazil appears in `_start` only: a format's name, a table's, a key's.
All the rest lets the demo watch it: one line of JSON for each micro-batch.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from committer.demo.writers.application_plan import ApplicationPlan, StreamPlan, parse_plan
from committer.demo.writers.events import SparkStarted
from committer.demo.writers.flight_changes import DELETES, KEY, SEQUENCE
from committer.demo.writers.small_spark import QueryListener, Reporter, small_session
from frazil.spark import upsert_stream

_LOOK_S = 0.2


def main(plan: ApplicationPlan) -> None:
    """Start all queries, and end when they have read their input."""
    spark = small_session(plan)
    reporter = Reporter(Path(plan.events))
    spark.streams.addListener(QueryListener(reporter, upserts=plan.upserts))
    reporter.tell(SparkStarted(plan.name))
    queries = [_start(spark, stream, plan) for stream in plan.streams]
    while any([not query.awaitTermination(_LOOK_S) for query in queries]):  # noqa: C419  # ask each
        pass
    spark.stop()


def _start(spark: SparkSession, stream: StreamPlan, plan: ApplicationPlan) -> StreamingQuery:
    """Start one query: a micro-batch for each file of its input."""
    rows = (
        spark.readStream.schema(plan.schema).option("maxFilesPerTrigger", 1).parquet(stream.folder)
    )
    return (
        _writer(rows, plan)
        .queryName(stream.name)
        .option("checkpointLocation", stream.checkpoint)
        .trigger(availableNow=True)
        .start(plan.table)
    )


def _writer(rows: Any, plan: ApplicationPlan) -> Any:
    if plan.upserts:
        return upsert_stream(rows, KEY, delete_column=DELETES, sequence_column=SEQUENCE)
    return rows.writeStream.format("frazil")


if __name__ == "__main__":
    main(parse_plan(sys.argv[1]))
