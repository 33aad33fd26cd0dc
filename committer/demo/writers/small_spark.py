"""The Spark session of each application of the demo, and what it tells the process that watches.

The rest of an application is what a user would write.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQueryListener

from committer.demo.writers.application_plan import ProcessPlan
from committer.demo.writers.events import ChangeLanded, QueryEnded, RowsWritten, SparkStarted
from frazil.spark import configure


def small_session(plan: ProcessPlan) -> SparkSession:
    """Build a small Spark: one core, little memory, nothing outside its folder."""
    builder = SparkSession.builder.master("local[1]").appName(plan.name)
    for key, value in plan.spark_confs.items():
        builder.config(key, value)
    spark = configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    return spark


class Reporter:
    """Appends one line of JSON for each event to a file."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1)

    def tell(self, event: SparkStarted | RowsWritten | QueryEnded | ChangeLanded) -> None:
        line = {"event": type(event).__name__, **asdict(event)}
        self._file.write(json.dumps(line) + "\n")


class QueryListener(StreamingQueryListener):  # type: ignore[misc]  # pyspark has no types for us
    """Reports what Spark says of its queries."""

    def __init__(self, reporter: Reporter, *, upserts: bool) -> None:
        self._tell, self._upserts = reporter.tell, upserts

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """Do nothing: there is nothing to report yet."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        progress = event.progress
        # An upsert writes fewer rows than it takes: one for each key.
        rows = progress.numInputRows if self._upserts else progress.sink.numOutputRows
        self._tell(RowsWritten(progress.name, progress.batchId, rows))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Do nothing: a query without new input never idles here, it ends."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        self._tell(QueryEnded(str(event.id), event.exception))
