"""The rows of a table as Java's own reader has them, read by Frazil's reader of Arrow batches.

Variants are left out: their text is Java's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import copysign
from typing import Any
from uuid import UUID

import pyarrow as pa

from committer.iceberg.entry.data_file import DataFileContent
from committer.iceberg.scan.plan_files import plan_files
from committer.iceberg.scan.scan_task import FileScanTask
from committer.iceberg.schema.metadata_columns import ROW_POSITION
from committer.iceberg.values.single_value import print_json_value
from committer.iceberg.values.types import (
    BinaryType,
    DateType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    ListType,
    MapType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
    VariantType,
)
from tests.conformance.table import Table
from workers.arrow.arrow_values import physical
from workers.read.deletes.delete_cache import DeleteCache
from workers.read.shared_read import TableRead
from workers.read.task_reader import count_rows as count_task
from workers.read.task_reader import read_task

NAME_MAPPING = "schema.name-mapping.default"
_TIMES = (TimeType, TimestampType, TimestamptzType, TimestampNanoType, TimestamptzNanoType)


def count_rows(table: Table, snapshot_id: int | None) -> int:
    """Count the rows of a snapshot."""
    read, opened, cache = TableRead.of(table.metadata), _opener(table), DeleteCache()
    return sum(count_task(read, task, opened, cache) for task in _tasks(table, snapshot_id))


def read_rows(table: Table) -> Iterator[dict[str, Any]]:
    """Yield the current rows by column; `_pos` beside position deletes, as Java's reader does."""
    fields = table.metadata.current_schema.fields
    names = [each.name for each in fields if not isinstance(each.field_type, VariantType)]
    read = TableRead.of(table.metadata, names=[*names, ROW_POSITION.name])
    cache = DeleteCache()
    for task in _tasks(table, table.metadata.current_snapshot_id):
        has_pos = any(one.content == DataFileContent.POSITION_DELETES for one in task.delete_files)
        columns = read.columns if has_pos else read.columns[:-1]
        for batch in read_task(read, task, _opener(table), cache):
            values = [
                [java_json(field.field_type, one) for one in _values(array, field.field_type)]
                for array, field in zip(batch.columns, columns, strict=False)
            ]
            for row in zip(*values, strict=True):
                yield {field.name: value for field, value in zip(columns, row, strict=True)}


def _tasks(table: Table, snapshot_id: int | None) -> list[FileScanTask]:
    if snapshot_id is None:
        return []
    return list(plan_files(table.metadata, read=table.read, snapshot_id=snapshot_id))


def _opener(table: Table) -> Any:
    return lambda location: pa.OSFile(str(table.path(location)))


def _values(array: pa.Array, kind: IcebergType) -> list[object]:
    """Return in-memory values: structs are tuples, maps dicts, dates and times integers."""
    match kind:
        case StructType(fields):
            pairs = zip(array.flatten(), fields, strict=True)
            parts = [_values(part, field.field_type) for part, field in pairs]
            rows = zip(*parts, strict=True) if parts else [()] * len(array)
            valid = array.is_valid().to_pylist()
            return [row if there else None for row, there in zip(rows, valid, strict=True)]
        case ListType():
            return [
                _values(one.values, kind.element_type) if one.is_valid else None for one in array
            ]
        case MapType():
            return [_map(one.values, kind) if one.is_valid else None for one in array]
        case UUIDType():
            found = physical(array).to_pylist()
            return [None if value is None else UUID(bytes=value) for value in found]
        case _:
            values: list[object] = physical(array).to_pylist()
            return values


def _map(entries: pa.Array, kind: MapType) -> dict[object, object]:
    keys, values = entries.flatten()
    return dict(zip(_values(keys, kind.key_type), _values(values, kind.value_type), strict=True))


# --- Java's JSON ---------------------------------------------------------------------------------


def java_json(kind: IcebergType, value: object) -> object:
    """Return a value as the rows of `expected.json` have it."""
    if value is None:
        return None
    match kind, value:
        case StructType(fields), tuple():
            pairs = zip(fields, value, strict=True)
            return {field.name: java_json(field.field_type, part) for field, part in pairs}
        case ListType(), list():
            return [java_json(kind.element_type, element) for element in value]
        case MapType(), dict():
            return [
                [java_json(kind.key_type, key), java_json(kind.value_type, found)]
                for key, found in value.items()
            ]
        case ((FixedType() | BinaryType()), bytes()):
            return f"0x{value.hex()}"
        case ((FloatType() | DoubleType()), float()) if value == 0 and copysign(1, value) < 0:
            return "-0.0"
    printed = print_json_value(kind, value)
    if isinstance(kind, _TIMES) and not isinstance(kind, DateType):
        return _java_time(str(printed))
    return printed


def _java_time(text: str) -> str:
    """Print as Java: omit seconds of 0, fractions in groups of three digits, and UTC as Z."""
    start, zone = text.removesuffix("+00:00"), "Z" if text.endswith("+00:00") else ""
    start, _, fraction = start.partition(".")
    while fraction.endswith("000"):
        fraction = fraction[:-3]
    fraction = fraction.ljust(-(-len(fraction) // 3) * 3, "0")
    if fraction:
        return f"{start}.{fraction}{zone}"
    return f"{start.removesuffix(':00') if start.count(':') == 2 else start}{zone}"
