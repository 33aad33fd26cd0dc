"""Brings the rows of a partition, or of a data file, to one task. Runs on the driver.

A task writes a file for each partition that it has rows of. So rows of one partition belong into
one task, as Iceberg's `hash` distribution has them, and few rows all into one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import functions as F  # noqa: N812  # its usual name

from committer.iceberg.scan.scan_task import FileScanTask
from committer.iceberg.values.transforms import (
    IdentityTransform,
    TimeTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
)
from committer.iceberg.values.types import (
    DateType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)
from workers.changes.changed_table import ChangedTable
from workers.changes.tasks.row_kinds import FILE, POSITION, TYPES
from workers.spark.spark_schema import quoted

_EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
_HOUR_MICROS = 3_600_000_000
_DAY_MICROS = 24 * _HOUR_MICROS
_ROW_BYTES = 100


@dataclass(frozen=True, slots=True)
class Spread:
    """To which tasks new rows go, of a table whose partitions do not say. `tasks`: how many; None
    leaves that to Spark."""

    columns: Sequence[str]
    tasks: int | None = None


def all_columns(rows: Any) -> Spread:
    """Spread by all columns that Spark has a hash of."""
    fields = [field for field in rows.schema.fields if field.name not in TYPES]
    return Spread([field.name for field in fields if _has_hash(field.dataType.simpleString())])


def _has_hash(kind: str) -> bool:
    return "map<" not in kind and "variant" not in kind


def by_file(rows: Any, table: ChangedTable, spread: Spread) -> Any:
    """Bring the rows of a data file to one task, and a partition's new ones to one."""
    values = partition_values(rows, table) or [F.col(quoted(name)) for name in spread.columns]
    new = F.xxhash64(*values) if values else F.lit(0)
    by = F.when(F.col(FILE).isNotNull(), F.xxhash64(FILE)).otherwise(new)
    return rows.repartition(by) if spread.tasks is None else rows.repartition(spread.tasks, by)


# --- Files that are written anew -----------------------------------------------------------------


def by_partition(rows: Any, table: ChangedTable, size: RewriteSize) -> Any:
    """Bring the rows of a partition to one task, to several where they are more than a file."""
    tasks = files_of(size.all_bytes, table.target_file_bytes)
    values = partition_values(rows, table)
    pieces = files_of(size.partition_bytes, table.target_file_bytes)
    if pieces > 1:
        values = [*values, F.pmod(F.xxhash64(FILE, POSITION), F.lit(pieces))]
    return rows.repartition(tasks, *values)


def files_of(size_bytes: int, target_bytes: int) -> int:
    """Return how many files of a size hold so many bytes: one at least."""
    return max(1, -(-size_bytes // target_bytes))


@dataclass(frozen=True, slots=True)
class RewriteSize:
    """The bytes of what is written anew, as far as they are known, and of its largest partition."""

    all_bytes: int
    partition_bytes: int


def rewrite_size(
    planned: Sequence[FileScanTask], removed: Iterable[FileScanTask], new_rows: int
) -> RewriteSize:
    """Estimate the size of the rows of the removed files, and of new ones. `planned`: files of the
    table, which tell how large a row is."""
    rows = sum(max(task.file.record_count, 0) for task in planned)
    size_bytes = sum(task.file.file_size_in_bytes for task in planned)
    new_bytes = new_rows * (size_bytes // rows if rows else _ROW_BYTES)
    partitions: Counter[object] = Counter()
    for task in removed:
        partitions[task.file.spec_id, task.file.partition] += task.file.file_size_in_bytes
    largest = max(partitions.values(), default=0)
    return RewriteSize(partitions.total() + new_bytes, largest)


# --- Partitions, as Spark computes them ----------------------------------------------------------


def partition_values(rows: Any, table: ChangedTable) -> list[Any]:
    """Return columns that are equal for rows of one partition, where Spark can say so; for other
    transforms their source, which has more values. Fields inside of structs are left out."""
    columns = {column.field_id: column for column in table.schema.fields}
    found = []
    for field in table.state.metadata.default_spec.fields:
        column = columns.get(field.source_id)
        if column is not None and column.name in rows.columns:
            value = F.col(quoted(column.name))
            found.append(_transformed(value, field.transform, column.field_type))
    return [value for value in found if value is not None]


def _transformed(value: Any, transform: Transform, kind: IcebergType) -> Any:
    match transform, kind:
        case VoidTransform(), _:
            return None
        case IdentityTransform(), _:
            return value
        case TruncateTransform(), IntegerType() | LongType():
            return value - F.pmod(value, F.lit(transform.width))
        case TruncateTransform(), StringType():
            return F.substring(value, 1, transform.width)
        case TimeTransform(), DateType() | TimestampType() | TimestamptzType():
            return _time(value, transform.unit, kind)
    return value


def _time(value: Any, unit: str, kind: IcebergType) -> Any:
    """Return the year, month, day or hour of a time in UTC, whatever the session's zone."""
    if isinstance(kind, DateType):
        return value if unit == "day" else F.trunc(value, unit)
    micros = _micros(value, kind)
    if unit == "hour":
        return micros - F.pmod(micros, F.lit(_HOUR_MICROS))
    start = micros - F.pmod(micros, F.lit(_DAY_MICROS))
    if unit == "day":
        return start
    return F.trunc(F.date_from_unix_date(F.round(start / _DAY_MICROS).cast("int")), unit)


def _micros(value: Any, kind: IcebergType) -> Any:
    if isinstance(kind, TimestamptzType):
        return F.unix_micros(value)
    return F.timestamp_diff("MICROSECOND", F.expr(_EPOCH), value)
