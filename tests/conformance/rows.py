"""The rows of a table as Java's own reader has them: planned, read, deleted from and projected.

Data files are decoded by pyarrow and by the Avro decoder; which file, which deletes, which column
and which default is decided by Frazil. Variants are left out: their text is Java's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from math import copysign
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from committer.iceberg.avro.container import iter_raw_blocks, read_header
from committer.iceberg.avro.decoder import decode_record, record_decoder
from committer.iceberg.deletes.deletion_vector_file import decode_vector_of, vector_range
from committer.iceberg.deletes.position_deletes import POSITION_DELETE_SCHEMA
from committer.iceberg.entry.data_file import DataFile, DataFileContent
from committer.iceberg.scan.column_projection import file_context, project_columns, project_row
from committer.iceberg.scan.plan_files import plan_files
from committer.iceberg.scan.scan_task import FileScanTask
from committer.iceberg.schema.name_mapping import NO_ID, NameMapping, parse_name_mapping
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
    NestedField,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
    VariantType,
)
from tests.conformance.forms import column_types
from tests.conformance.table import Table
from workers.arrow.arrow_types import FIELD_ID, primitive_of
from workers.arrow.arrow_values import physical

NAME_MAPPING = "schema.name-mapping.default"
_ORC_FIELD_ID = b"iceberg.id"
_TIMES = (TimeType, TimestampType, TimestamptzType, TimestampNanoType, TimestamptzNanoType)


@dataclass(frozen=True, slots=True)
class StoredRows:
    """The contents of a file: its fields, and rows with a value for each of them."""

    fields: StructType
    rows: Sequence[tuple[object, ...]]


def count_rows(table: Table, snapshot_id: int | None) -> int:
    """Count the rows. Reads only deletes by value; positions and record counts give the rest."""
    return sum(
        sum(1 for _ in _rows_of(table, task, ()))
        if any(one.content == DataFileContent.EQUALITY_DELETES for one in task.delete_files)
        else task.file.record_count - len(_deleted_positions(table, task))
        for task in _tasks(table, snapshot_id)
    )


def read_rows(table: Table) -> Iterator[dict[str, Any]]:
    """Yield the current rows by column; `_pos` beside position deletes, as Java's reader does."""
    schema = table.metadata.current_schema
    wanted = [each for each in schema.fields if not isinstance(each.field_type, VariantType)]
    for task in _tasks(table, table.metadata.current_snapshot_id):
        with_pos = any(one.content == DataFileContent.POSITION_DELETES for one in task.delete_files)
        for position, row in _rows_of(table, task, wanted):
            printed = {
                field.name: java_json(field.field_type, value)
                for field, value in zip(wanted, row, strict=True)
            }
            yield printed | ({"_pos": position} if with_pos else {})


def _tasks(table: Table, snapshot_id: int | None) -> list[FileScanTask]:
    if snapshot_id is None:
        return []
    return list(plan_files(table.metadata, read=table.read, snapshot_id=snapshot_id))


# --- Rows that are left of a file ----------------------------------------------------------------


def _rows_of(
    table: Table, task: FileScanTask, wanted: Sequence[NestedField]
) -> Iterator[tuple[int, tuple[object, ...]]]:
    file, stored = task.file, _stored(table, task.file)
    deleted = _deleted_positions(table, task)
    by_value = [_DeletedValues.of(table, one, file, stored) for one in task.delete_files]
    for position, row in enumerate(_projected(table, file, stored, wanted)):
        if position not in deleted and not any(one.has(position) for one in by_value):
            yield position, row


def _deleted_positions(table: Table, task: FileScanTask) -> set[int]:
    found: set[int] = set()
    for delete in task.delete_files:
        if delete.is_deletion_vector:
            offset, length = vector_range(delete)
            blob = table.read(delete.file_path)[offset : offset + length]
            found.update(decode_vector_of(delete, blob))
        elif delete.content == DataFileContent.POSITION_DELETES:
            rows = _projected(table, delete, _stored(table, delete), POSITION_DELETE_SCHEMA.fields)
            path = task.file.file_path
            found.update(at for where, at in rows if where == path and isinstance(at, int))
    return found


@dataclass(frozen=True, slots=True)
class _DeletedValues:
    """The values of an equality delete file, and those of each row of a data file."""

    deleted: frozenset[str]
    rows: Sequence[str]

    @classmethod
    def of(
        cls, table: Table, delete: DataFile, file: DataFile, stored: StoredRows
    ) -> _DeletedValues:
        if delete.content != DataFileContent.EQUALITY_DELETES:
            return cls(frozenset(), ())
        known = {each.field_id: each for one in table.metadata.schemas for each in one.fields}
        columns = [known[field_id] for field_id in delete.equality_ids or ()]
        deleted = _projected(table, delete, _stored(table, delete), columns)
        # As text: NaN is equal to itself here, and 0.0 is not -0.0.
        rows = [repr(row) for row in _projected(table, file, stored, columns)]
        return cls(frozenset(map(repr, deleted)), rows)

    def has(self, position: int) -> bool:
        return bool(self.deleted) and self.rows[position] in self.deleted


def _projected(
    table: Table, file: DataFile, stored: StoredRows, wanted: Sequence[NestedField]
) -> list[tuple[object, ...]]:
    context = file_context(file, table.metadata.spec_by_id(file.spec_id))
    projected = project_columns(wanted, stored.fields, context, _mapping(table))
    return [project_row(projected, row, at) for at, row in enumerate(stored.rows)]


def _mapping(table: Table) -> NameMapping | None:
    text = table.metadata.properties.get(NAME_MAPPING)
    return None if text is None else parse_name_mapping(text)


# --- Files ---------------------------------------------------------------------------------------


def _stored(table: Table, file: DataFile) -> StoredRows:
    content = table.read(file.file_path)
    types = column_types(*table.metadata.schemas) | {
        each.field_id: each.field_type for each in POSITION_DELETE_SCHEMA.fields
    }
    match file.file_format.upper():
        case "PARQUET":
            return _of_arrow(pq.ParquetFile(BytesIO(content)).read(), types)
        case "ORC":
            return _of_arrow(orc.ORCFile(BytesIO(content)).read(), types)
        case _:
            return _of_avro(content, types)


def _of_avro(content: bytes, types: Mapping[int, IcebergType]) -> StoredRows:
    """Read flat records only: the fixtures have no others."""
    header = read_header(content)
    decoder = record_decoder(header.metadata["avro.schema"])
    schema: Any = header.schema_json
    ids = [field["field-id"] for field in schema["fields"]]
    rows = []
    for block, raw in iter_raw_blocks(content, header):
        position = 0
        for _ in range(block.count):
            record, position = decode_record(decoder, raw, position)
            rows.append(tuple(record[field_id] for field_id in ids))
    fields = [NestedField(each, str(each), types[each], False) for each in ids]
    return StoredRows(StructType(tuple(fields)), rows)


def _of_arrow(content: pa.Table, types: Mapping[int, IcebergType]) -> StoredRows:
    fields = StructType(tuple(_field(each, types) for each in content.schema))
    columns = [
        _values(column.combine_chunks(), field.field_type)
        for column, field in zip(content.columns, fields.fields, strict=True)
    ]
    return StoredRows(fields, list(zip(*columns, strict=True)))


def _field(field: pa.Field, types: Mapping[int, IcebergType]) -> NestedField:
    metadata = field.metadata or {}
    found = metadata.get(FIELD_ID, metadata.get(_ORC_FIELD_ID))
    field_id = NO_ID if found is None else int(found)
    kind = _type(field.type, types.get(field_id), types)
    return NestedField(field_id, field.name, kind, not field.nullable)


def _type(
    kind: pa.DataType, known: IcebergType | None, types: Mapping[int, IcebergType]
) -> IcebergType:
    if isinstance(known, VariantType):
        return known
    if pa.types.is_struct(kind):
        return StructType(tuple(_field(kind.field(at), types) for at in range(kind.num_fields)))
    if pa.types.is_map(kind):
        key, value = _field(kind.key_field, types), _field(kind.item_field, types)
        return MapType(key.field_id, key.field_type, value.field_id, value.field_type, False)
    if pa.types.is_list(kind):
        element = _field(kind.value_field, types)
        return ListType(element.field_id, element.field_type, False)
    found = primitive_of(kind)
    if found is None:
        raise ValueError(f"no type for {kind}")
    # The reader of Parquet may give a uuid as its 16 bytes.
    return UUIDType() if found == FixedType(16) and known == UUIDType() else found


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
        case VariantType():
            return [None] * len(array)
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
