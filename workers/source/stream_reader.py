"""Streaming reads: what is appended to a table, in micro-batches, from a position in its history.

One reader lives as long as its query, in a process of its own on the driver. Its tasks get all that
they need with their splits, anew in each micro-batch. PySpark 4.1 asks for the newest offset
without saying where the query stands: there the reader remembers it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from committer.errors import SettingsError
from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.reading.append_stream import AppendStream, StreamLimits, StreamPosition
from committer.iceberg.scan.scan_filter import ScanFilter
from workers.read.shared_read import TableRead
from workers.source.driver_table import (
    DriverTable,
    ReadState,
    find_state,
    open_table,
    unnamed_state,
)
from workers.source.read_options import ReadOptions, parse_read_options
from workers.source.read_plan import plan_splits, table_read, with_columns_of
from workers.source.splits import FileSplit, StreamTaskReader, TableRows
from workers.spark.message_first import message_first
from workers.spark.spark_batches import spark_arrow_schema

if TYPE_CHECKING:
    _AvailableNow = object
else:
    try:
        from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as _AvailableNow
    except ImportError:  # PySpark 4.1
        _AvailableNow = object

Offset = Mapping[str, Any]


def make_stream_reader(given: Mapping[str, str], schema: StructType) -> FrazilStreamReader:
    """Open the reader of a query with these options. Errors: `SettingsError`, and those of the
    table."""
    options = parse_read_options(given, streaming=True)
    with ExitStack() as stack:
        table = stack.enter_context(open_table(options))
        if table.kind is not None:
            raise SettingsError(
                f"`{options.table}` is a metadata table: spark.read reads it, no stream does"
            )
        reader = FrazilStreamReader(table, options, schema)
        reader.closing = stack.pop_all()
        return reader


class FrazilStreamReader(StreamTaskReader, _AvailableNow):
    """The reader of one query. `position`: up to where it has read, None while that is unknown."""

    def __init__(self, table: DriverTable, options: ReadOptions, schema: StructType) -> None:
        self._table, self._options, self._schema = table, options, schema
        read = table_read(options, table.metadata, find_state(table, options.travel).schema)
        self._columns = with_columns_of(read, schema, table.name)
        self._position: StreamPosition | None = None
        self._last: int | None = None
        self.closing = ExitStack()

    # --- Offsets ---------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, int | bool]:  # noqa: N802
        with message_first():
            position = self._stream().first_position()
        self._position = position
        return position.to_json()

    def latestOffset(  # noqa: N802
        self, start: Offset | None = None, limit: object | None = None
    ) -> dict[str, int | bool]:
        """Return how far a micro-batch from `start` on may read; without it (PySpark 4.1), from the
        end of the last one."""
        with message_first():
            stream = self._stream()
            if start is not None:
                position = StreamPosition.of_json(start)
            else:
                position = self._position or stream.first_position()
            return stream.advance(position, self._limits(limit)).to_json()

    def getDefaultReadLimit(self) -> object:  # noqa: N802
        """Return a limit of the options, for PySpark 4.2 and later."""
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles, ReadMaxRows

        limits = self._options.stream.limits
        if limits.files_max is not None:
            return ReadMaxFiles(limits.files_max)
        return ReadAllAvailable() if limits.rows_max is None else ReadMaxRows(limits.rows_max)

    def _limits(self, limit: object | None) -> StreamLimits:
        """Return the limits of the options, both of them, unless Spark wants everything."""
        if type(limit).__name__ == "ReadAllAvailable":
            return StreamLimits()
        return self._options.stream.limits

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Read up to what is there now, and no further."""
        head = self._stream().head
        self._last = None if head is None else head.snapshot_id

    # --- Splits ----------------------------------------------------------------------------------

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        with message_first():
            after, up_to = StreamPosition.of_json(start), StreamPosition.of_json(end)
            self._position = up_to
            return [] if after == up_to else self._splits(after, up_to)

    def _splits(self, after: StreamPosition, up_to: StreamPosition) -> list[InputPartition]:
        table, options = self._table, self._options
        stream = self._stream()
        state = find_state(table, options.travel)
        specs = table.metadata.partition_specs
        row_filter = ScanFilter(specs, state.schema, options.row_filter, case_sensitive=False)
        tasks = stream.between(after, up_to, row_filter)
        rows = TableRows(
            self._columns_of(state),
            table.access(),
            spark_arrow_schema(self._schema),
            unnamed_state(table, options.travel),
        )
        splits = plan_splits(tasks, options, table.metadata.properties)
        return [FileSplit(split, rows) for split in splits]

    def stop(self) -> None:
        self.closing.close()

    # --- The table as it is now ------------------------------------------------------------------

    def _stream(self) -> AppendStream:
        table, stream = self._table, self._options.stream
        table.refresh()
        return AppendStream(
            table.metadata,
            self._head(),
            table.read,
            stream.start,
            stream.skip_deletes,
            stream.skip_overwrites,
        )

    def _head(self) -> Snapshot | None:
        if self._last is not None:
            return self._table.metadata.snapshot_by_id(self._last)
        return find_state(self._table, self._options.travel).snapshot

    def _columns_of(self, state: ReadState) -> TableRead:
        """Return the columns as the query began with them: later ones of the table are not in its
        schema, and others may have their names."""
        metadata = self._table.metadata
        return replace(
            self._columns,
            schema=state.schema,
            schemas=metadata.schemas,
            specs=metadata.partition_specs,
        )
