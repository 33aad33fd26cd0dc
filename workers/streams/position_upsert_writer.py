"""The writer of a streaming query that upserts by positions: set up and started like Spark's own.

Its micro-batches run by `foreachBatch`, which has no option of a table: so the options of Frazil
are kept here, and the others are Spark's.
"""

from __future__ import annotations

from typing import Any, Self

from workers.settings.option_values import one_place
from workers.streams.foreach_batch import sink

# Those of `foreach_batch` come from the running query.
_SPARKS = frozenset({"checkpointlocation", "queryname"})


class PositionUpsertWriter:
    """Stands for a `DataStreamWriter`: each call sets something, and returns the writer."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer
        self._options: dict[str, str] = {}

    def option(self, key: str, value: object) -> Self:
        """Set an option of the write, or of Spark's."""
        if key.lower() in _SPARKS:
            self._writer = self._writer.option(key, value)
        else:
            is_flag = isinstance(value, bool)
            self._options[key.lower()] = str(value).lower() if is_flag else str(value)
        return self

    def options(self, **options: object) -> Self:
        """Set several options."""
        for key, value in options.items():
            self.option(key, value)
        return self

    def outputMode(self, outputMode: str) -> Self:  # noqa: N802, N803  # Spark's
        """Set which rows of a result a micro-batch has."""
        self._writer = self._writer.outputMode(outputMode)
        return self

    def queryName(self, queryName: str) -> Self:  # noqa: N802, N803  # Spark's
        """Name the query."""
        self._writer = self._writer.queryName(queryName)
        return self

    def trigger(self, **trigger: object) -> Self:
        """Set when micro-batches run."""
        self._writer = self._writer.trigger(**trigger)
        return self

    def start(self, path: str | None = None) -> Any:
        """Start the query into a table, named here or by the option `table`; return it."""
        given = {**self._options, **({} if path is None else {"path": path})}
        table = one_place(given)
        options = {k: v for k, v in given.items() if k not in ("table", "path", "producer", "sink")}
        write = sink(table, given.get("producer"), given.get("sink", ""), **options)
        return self._writer.foreachBatch(write).start()
