"""The writer of a streaming query that upserts: set up and started like Spark's own.

How old rows are deleted may depend on the table, which is known when the query starts, and decides
which sink it has: the data source, or `foreachBatch`, which has no option of a table. So all that
is set is kept until then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from workers.settings.option_values import one_place
from workers.settings.upsert_options import DELETES, PARTITIONS
from workers.spark.releases import has_stream_writer
from workers.streams.foreach_batch import context_of, sink
from workers.streams.wanted_deletes import looks_up

# Of Spark itself. A micro-batch in `foreachBatch` asks the running query for them.
_SPARKS = frozenset({"checkpointlocation", "queryname"})
# Given to `sink` by themselves.
_NAMED = frozenset({"table", "path", "producer", "sink"})


class UpsertStreamWriter:
    """Stands for a `DataStreamWriter`: each call sets something, and returns the writer.

    `keys`: as Spark quotes them. `partitions`: the tasks that write a micro-batch.
    """

    def __init__(self, rows: Any, keys: Sequence[str], partitions: int) -> None:
        self._rows, self._keys, self._partitions = rows, tuple(keys), partitions
        self._calls: list[Callable[[Any], Any]] = []
        self._options: dict[str, str] = {}

    def option(self, key: str, value: object) -> Self:
        """Set an option of the write, or of Spark's."""
        if key.lower() in _SPARKS:
            return self._call(lambda writer: writer.option(key, value))
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
        return self._call(lambda writer: writer.outputMode(outputMode))

    def queryName(self, queryName: str) -> Self:  # noqa: N802, N803  # Spark's
        """Name the query."""
        return self._call(lambda writer: writer.queryName(queryName))

    def trigger(self, **trigger: object) -> Self:
        """Set when micro-batches run."""
        return self._call(lambda writer: writer.trigger(**trigger))

    def start(self, path: str | None = None) -> Any:
        """Start the query into a table, named here or by the option `table`; return it.

        Errors: `SettingsError` for options or a property of the table; those of reading the table,
        where it decides how old rows are deleted.
        """
        given = {**self._options, **({} if path is None else {"path": path})}
        table = one_place(given)
        if context_of(self._rows) is None and not given.get(DELETES):
            # Spark Connect: the server may know a catalog that this process does not, and refuses
            # a table that wants another kind of deletes.
            return self._by_key(table, given)
        if looks_up(given):
            return self._by_position(table, given)
        return self._by_key(table, {**given, DELETES: "equality"})

    def _call(self, call: Callable[[Any], Any]) -> Self:
        self._calls.append(call)
        return self

    def _writer(self, rows: Any) -> Any:
        writer = rows.writeStream
        for call in self._calls:
            writer = call(writer)
        return writer

    def _by_position(self, table: str, given: Mapping[str, str]) -> Any:
        options = {PARTITIONS: str(self._partitions), **given, DELETES: "positions"}
        return self._writer(self._rows).foreachBatch(_sink(table, options)).start()

    def _by_key(self, table: str, given: Mapping[str, str]) -> Any:
        rows = self._rows.repartition(self._partitions, *self._keys)
        # By key, whatever the table asks for.
        options = {**given, "distribution-mode": "none"}
        if not has_stream_writer():
            return self._writer(rows).foreachBatch(_sink(table, options)).start()
        return self._writer(rows).format("frazil").options(**options).start()


def _sink(table: str, given: Mapping[str, str]) -> Callable[[Any, int], None]:
    options = {name: value for name, value in given.items() if name not in _NAMED}
    return sink(table, given.get("producer"), given.get("sink", ""), **options)
