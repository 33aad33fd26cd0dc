"""The files of tasks that have ended, also where another task makes their job fail.

Spark gives the driver no results of a job that fails, but it has added up the accumulators of the
tasks that had ended by then. Spark Connect has no accumulators.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.accumulators import AccumulatorParam
from pyspark.errors import PySparkException

from workers.files.store_access import StoreAccess
from workers.spark.discarded_files import delete_files


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

    @contextmanager
    def deleted_on_failure(self, access: StoreAccess, what: str) -> Iterator[None]:
        """Delete the files of `what` if their job fails: no request names them. A task that still
        runs deletes its own."""
        try:
            yield
        except BaseException:
            if self._locations is not None:
                delete_files(self._locations.value, access, what)
            raise
