"""The files of tasks that have ended, also where another task makes their job fail.

Spark gives the driver no results of a job that fails, but it has added up the accumulators of the
tasks that had ended by then. Spark Connect has no accumulators.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark.accumulators import AccumulatorParam
from pyspark.errors import PySparkException


class _Lists(AccumulatorParam):  # type: ignore[misc]  # pyspark has no types for us
    def zero(self, value: list[str]) -> list[str]:
        return []

    def addInPlace(self, one: list[str], other: list[str]) -> list[str]:  # noqa: N802  # Spark's
        one.extend(other)
        return one


class ReportedFiles:
    """Locations, added by tasks and read by the driver."""

    def __init__(self, spark: Any) -> None:
        try:
            self._locations = spark.sparkContext.accumulator([], _Lists())
        except (AttributeError, PySparkException):
            self._locations = None

    def add(self, locations: Iterable[str]) -> None:
        """Tell the driver of files, once the running task has ended well."""
        if self._locations is not None:
            self._locations.add(list(locations))

    @property
    def locations(self) -> list[str]:
        """The files that tasks have reported so far."""
        found: list[str] = [] if self._locations is None else self._locations.value
        return found
