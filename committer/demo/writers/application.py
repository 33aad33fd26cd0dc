"""One Spark application of the demo: some streaming queries that all append to one table.

Run as a program of its own: `python -m committer.demo.writers.application PLAN`, PLAN being the
JSON of an `ApplicationPlan`. Frazil appears in `_start` only: a format's name, a table's. All the
rest lets the demo watch it: one line of JSON for each micro-batch.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery, StreamingQueryListener

from committer.demo.writers.application_plan import ApplicationPlan, StreamPlan, parse_plan
from committer.demo.writers.events import QueryEnded, RowsWritten, SparkStarted
from frazil.spark import configure

_LOOK_S = 0.2


def main(plan: ApplicationPlan) -> None:
    """Start all queries, and end when they have read their input."""
    spark = _session(plan)
    reporter = _Reporter(Path(plan.events))
    spark.streams.addListener(reporter)
    reporter.tell(SparkStarted(plan.name))
    queries = [_start(spark, stream, plan) for stream in plan.streams]
    while any([not query.awaitTermination(_LOOK_S) for query in queries]):  # noqa: C419  # ask each
        pass
    spark.stop()


def _start(spark: SparkSession, stream: StreamPlan, plan: ApplicationPlan) -> StreamingQuery:
    """Start one query: a micro-batch for each file of its input."""
    flights = (
        spark.readStream.schema(plan.schema).option("maxFilesPerTrigger", 1).parquet(stream.folder)
    )
    return (
        flights.writeStream.format("frazil")
        .queryName(stream.name)
        .option("checkpointLocation", stream.checkpoint)
        .trigger(availableNow=True)
        .start(plan.table)
    )


def _session(plan: ApplicationPlan) -> SparkSession:
    """Build a small Spark: one core, little memory, nothing outside its folder."""
    builder = SparkSession.builder.master("local[1]").appName(plan.name)
    for key, value in plan.spark_confs.items():
        builder.config(key, value)
    configure(builder, home=plan.home, queue_url=plan.queue_url)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    return spark


class _Reporter(StreamingQueryListener):  # type: ignore[misc]  # pyspark has no types for us
    """Writes down what Spark reports, for the process that watches."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1)

    def tell(self, event: SparkStarted | RowsWritten | QueryEnded) -> None:
        line = {"event": type(event).__name__, **asdict(event)}
        self._file.write(json.dumps(line) + "\n")

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """Do nothing: there is nothing to report yet."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        progress = event.progress
        self.tell(RowsWritten(progress.name, progress.batchId, progress.sink.numOutputRows))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Do nothing: a query without new input never idles here, it ends."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        self.tell(QueryEnded(str(event.id), event.exception))


if __name__ == "__main__":
    main(parse_plan(sys.argv[1]))
