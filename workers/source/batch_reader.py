"""Batch reads: planned on the driver while Spark plans the query, read by the tasks.

What is pickled for the tasks is a `TaskReader`, without settings and without the plan; each task
gets its own split.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from committer.errors import NotFoundError
from committer.iceberg.expressions.expression import And, Expression
from committer.iceberg.reading.pack_splits import Split
from workers.source.driver_table import (
    DriverTable,
    ReadState,
    find_state,
    open_table,
    unnamed_state,
)
from workers.source.metadata_rows import metadata_reader, metadata_schema
from workers.source.read_options import ReadOptions, parse_read_options
from workers.source.read_plan import (
    plan_splits,
    plan_tasks,
    schema_of,
    table_read,
    with_columns_of,
)
from workers.source.splits import FileSplit, TableRows, TaskReader
from workers.spark.message_first import message_first
from workers.spark.pushed_filters import PushedFilters, push_filters
from workers.spark.spark_batches import spark_arrow_schema


@dataclass(frozen=True, slots=True)
class PinnedState:
    """The state of a table as it was when the DataFrame was made: what all its queries read."""

    snapshot_id: int | None
    schema_id: int


def describe_read(given: Mapping[str, str]) -> tuple[StructType, PinnedState]:
    """Return the schema of a read with these options, and the state of the table that it is of.

    Errors: `SettingsError` for options, `NoSuchTableError`, `NotFoundError` for a state that is not
    there, `UnsupportedError` for columns that Spark has no type for.
    """
    options = parse_read_options(given, streaming=None)
    with open_table(options) as table:
        state = find_state(table, options.travel)
        pinned = PinnedState(
            None if state.snapshot is None else state.snapshot.snapshot_id, state.schema.schema_id
        )
        if table.kind is not None:
            return metadata_schema(table.kind), pinned
        return schema_of(table_read(options, table.metadata, state.schema)), pinned


def make_batch_reader(
    given: Mapping[str, str], schema: StructType, pinned: PinnedState | None
) -> DataSourceReader:
    """Make the reader of a query. Errors: as `describe_read`, and those of planning."""
    options = parse_read_options(given, streaming=False)
    with open_table(options) as table:
        state = find_state(table, options.travel) if pinned is None else _repinned(table, pinned)
        if table.kind is not None:
            return metadata_reader(table, state.snapshot, schema)
        read = table_read(options, table.metadata, state.schema)
        read = with_columns_of(read, schema, table.name)
        unnamed = unnamed_state(table, options.travel)
        rows = TableRows(read, table.access(), spark_arrow_schema(schema), unnamed)
        if options.push_filters:
            return PushingReader(rows, options, state)
        return PlannedReader(rows, _splits(table, options, state, options.row_filter))


def _repinned(table: DriverTable, pinned: PinnedState) -> ReadState:
    metadata = table.metadata
    schema = metadata.schema_by_id(pinned.schema_id)
    if pinned.snapshot_id is None:
        return ReadState(None, schema)
    snapshot = metadata.snapshot_by_id(pinned.snapshot_id)
    if snapshot is None:
        raise NotFoundError(
            f"{table.name}: snapshot {pinned.snapshot_id} has expired since the DataFrame was"
            " made: load it again"
        )
    return ReadState(snapshot, schema)


def _splits(
    table: DriverTable, options: ReadOptions, state: ReadState, row_filter: Expression
) -> list[Split]:
    tasks = plan_tasks(table, options, state, row_filter)
    return plan_splits(tasks, options, table.metadata.properties)


class PlannedReader(TaskReader):
    """A read whose splits are known."""

    def __init__(self, rows: TableRows, splits: Sequence[Split]) -> None:
        super().__init__(rows)
        self._splits = splits

    def partitions(self) -> Sequence[InputPartition]:
        return [FileSplit(split) for split in self._splits]


class PushingReader(TaskReader):
    """A read that takes Spark's filters: planned when they are known."""

    def __init__(self, rows: TableRows, options: ReadOptions, state: ReadState) -> None:
        super().__init__(rows)
        self._options, self._state = options, state
        self._pushed = PushedFilters()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        self._pushed = push_filters(filters, self._state.schema)
        return self._pushed.remaining

    def partitions(self) -> Sequence[InputPartition]:
        row_filter = And.of(self._options.row_filter, self._pushed.expression)
        with message_first(), open_table(self._options) as table:
            splits = _splits(table, self._options, self._state, row_filter)
        return [FileSplit(split) for split in splits]
