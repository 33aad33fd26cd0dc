"""Plans a read on the driver: the columns that Spark gets, and the splits of its tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pyspark.sql.types import StructField, StructType

from committer.errors import SettingsError
from committer.iceberg.expressions.expression import Expression
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.reading.pack_splits import Split, SplitSizes, pack_splits
from committer.iceberg.scan.incremental import SnapshotRange, plan_appends
from committer.iceberg.scan.plan_files import Scan, plan_snapshot
from committer.iceberg.scan.scan_filter import ScanFilter
from committer.iceberg.scan.scan_task import FileScanTask
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.types import NestedField
from workers.read.shared_read import TableRead
from workers.source.driver_table import DriverTable, ReadState
from workers.source.read_options import ReadOptions
from workers.spark.slim_tasks import slim_tasks
from workers.spark.spark_schema import spark_schema

_SPLIT_SIZE, _LOOKBACK = "read.split.target-size", "read.split.planning-lookback"
_OPEN_FILE_COST = "read.split.open-file-cost"


def table_read(options: ReadOptions, metadata: TableMetadata, schema: Schema) -> TableRead:
    """Return how the wanted columns are read.
    Errors: `InvalidFilterError` for a column that is not there."""
    names = None
    if options.columns is not None or options.metadata_columns:
        own = options.columns or tuple(field.name for field in schema.columns)
        names = (*own, *options.metadata_columns)
    return TableRead.of(metadata, schema=schema, names=names, case_sensitive=False)


def schema_of(read: TableRead) -> StructType:
    """Return the schema that Spark shows of the columns. Errors: as `spark_schema`."""
    return spark_schema(Schema(read.columns))


def with_columns_of(read: TableRead, wanted: StructType, table: str) -> TableRead:
    """Keep the columns that Spark's schema has, in its order: all of them, or those that the user
    has named by `spark.read.schema(…)`.

    Errors: `SettingsError` for a column that is not there, or has another type.
    """
    by_name = {field.name: field for field in read.columns}
    by_lower_name = {field.name.lower(): field for field in read.columns}
    columns, problems = [], []
    for field in wanted.fields:
        column = by_name.get(field.name) or by_lower_name.get(field.name.lower())
        problem = _misfit(field, column)
        if problem or column is None:
            problems.append(f"`{field.name}`: {problem}")
        else:
            columns.append(column)
    if problems:
        raise SettingsError(f"the schema of the read does not fit {table}: {'; '.join(problems)}")
    return replace(read, columns=tuple(columns))


def _misfit(field: StructField, column: NestedField | None) -> str | None:
    if column is None:
        return "the table has no such column"
    [own] = spark_schema(Schema((column,))).fields
    expected, found = own.dataType.simpleString(), field.dataType.simpleString()
    if expected.lower() != found.lower():
        return f"expected {expected}, found {found}"
    if not field.nullable and own.nullable:
        return "expected nullable, found NOT NULL"
    return None


# --- Files ---------------------------------------------------------------------------------------


def plan_tasks(
    table: DriverTable, options: ReadOptions, state: ReadState, row_filter: Expression
) -> Iterator[FileScanTask]:
    """Plan the files of the state that is read. Errors: as `plan_files` and `plan_appends`."""
    after, snapshot = options.travel.after, state.snapshot
    if after is not None:
        up_to = None if snapshot is None else snapshot.snapshot_id
        return plan_appends(
            table.metadata,
            SnapshotRange(after, up_to),
            read=table.read,
            filter=row_filter,
            case_sensitive=False,
        )
    found = ScanFilter(
        table.metadata.partition_specs, state.schema, row_filter, case_sensitive=False
    )
    return plan_snapshot(Scan(table.metadata, found), snapshot, table.read)


def plan_splits(
    tasks: Iterator[FileScanTask], options: ReadOptions, properties: Mapping[str, str]
) -> list[Split]:
    """Pack tasks by the options' sizes, else the table's, else Iceberg's own."""
    return list(pack_splits(slim_tasks(tasks), split_sizes(options, properties)))


def split_sizes(options: ReadOptions, properties: Mapping[str, str]) -> SplitSizes:
    """Return the sizes. Errors: `SettingsError` for a property of the table that is no number."""
    usual = SplitSizes()
    return SplitSizes(
        options.split_size or _size(properties, _SPLIT_SIZE, usual.split_bytes, 1),
        options.lookback or _size(properties, _LOOKBACK, usual.lookback, 1),
        _size(properties, _OPEN_FILE_COST, usual.open_file_cost_bytes, 0)
        if options.file_open_cost is None
        else options.file_open_cost,
    )


def _size(properties: Mapping[str, str], name: str, usual: int, least: int) -> int:
    text = properties.get(name)
    if text is None:
        return usual
    if not text.isdecimal() or int(text) < least:
        raise SettingsError(
            f"table property `{name}`: expected a whole number from {least} on, found `{text}`"
        )
    return int(text)
