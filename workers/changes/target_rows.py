"""The rows of a table as a DataFrame that a change works on. Runs on the driver.

Its columns are the table's, then those of `row_kinds`: where a row lies, and its lineage. The parts
of the data files travel as rows of bytes, one for each Spark partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import functions as F  # noqa: N812  # its usual name
from pyspark.sql.types import LongType, StringType, StructField, StructType

from committer.iceberg.reading.pack_splits import SplitSizes, pack_splits
from committer.iceberg.scan.scan_task import FileScanTask
from committer.iceberg.schema.schema import Schema
from workers.changes.changed_table import ChangedTable, for_tasks
from workers.changes.tasks.row_kinds import (
    FACT,
    FILE,
    KIND,
    LAST_UPDATED,
    POSITION,
    READ_AS,
    ROW_ID,
    RowKind,
)
from workers.changes.tasks.row_source import RowSource
from workers.read.shared_read import TableRead
from workers.spark.spark_batches import spark_arrow_schema
from workers.spark.spark_schema import spark_schema
from workers.spark.task_messages import packed

_PLACES = {FILE: StringType(), POSITION: LongType(), ROW_ID: LongType(), LAST_UPDATED: LongType()}
_PARTS = "parts"


def target_rows(
    spark: Any,
    table: ChangedTable,
    tasks: Sequence[FileScanTask],
    columns: Sequence[str] | None = None,
) -> Any:
    """Return the rows of these tasks, with these columns of the table, all by default.
    Errors: `UnsupportedError` for a column that Spark has no type for."""
    splits = list(pack_splits(map(for_tasks, tasks), SplitSizes()))
    rows = [(at, packed(split)) for at, split in enumerate(splits)]
    frame = spark.createDataFrame(rows, f"split int, {_PARTS} binary")
    # Each part has a number of its own, so each partition gets one.
    parts = frame.repartitionByRange(max(1, len(rows)), "split") if rows else frame
    return _read(parts.select(_PARTS), table, columns)


def no_rows(spark: Any, table: ChangedTable) -> Any:
    """Return a DataFrame like `target_rows` without a row, for Spark to plan with."""
    return _read(spark.range(0).select(F.lit(b"").alias(_PARTS)), table)


def _read(parts: Any, table: ChangedTable, columns: Sequence[str] | None = None) -> Any:
    schema = rows_schema(table, columns)
    source = RowSource(table_read(table, columns), table.state.access, spark_arrow_schema(schema))
    return parts.mapInArrow(source.read, schema)


def rows_schema(table: ChangedTable, columns: Sequence[str] | None = None) -> StructType:
    """Return the columns of the rows."""
    places = [StructField(name, _PLACES[name]) for name in _place_names(table)]
    if columns is None:
        return StructType([*spark_schema(table.schema).fields, *places])
    fields = [field for field in table.schema.fields if field.name in columns]
    return StructType([*spark_schema(Schema(tuple(fields))).fields, *places])


def _place_names(table: ChangedTable) -> list[str]:
    return [FILE, POSITION, *((ROW_ID, LAST_UPDATED) if table.has_lineage else ())]


def table_read(table: ChangedTable, columns: Sequence[str] | None = None) -> TableRead:
    found = [field.name for field in table.schema.fields]
    names = [name for name in found if columns is None or name in columns]
    places = [READ_AS[name] for name in _place_names(table)]
    return TableRead.of(table.state.metadata, schema=table.schema, names=[*names, *places])


def facts(spark: Any, tasks: Sequence[FileScanTask]) -> Any:
    """Return what is known of the data files of these tasks, in columns of `row_kinds`."""
    rows = [(task.file.file_path, packed(for_tasks(task))) for task in tasks]
    known = spark.createDataFrame(rows, f"{FILE} string, {FACT} binary")
    return known.withColumn(KIND, F.lit(int(RowKind.FACT)))
