"""Parquet files read with nothing but their own types: fields with ids, rows in file order."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

from committer.iceberg.schema.name_mapping import NO_ID
from committer.iceberg.values.types import IcebergType, ListType, MapType, NestedField, StructType
from workers.arrow.arrow_types import children, field_id, primitive_of


def read_rows(content: bytes) -> tuple[StructType, list[tuple[object, ...]]]:
    """Read the file's fields (`NO_ID` for those without an id) and its rows as in-memory values."""
    table = pq.read_table(BytesIO(content))
    columns = [[_value(scalar) for scalar in column] for column in table.columns]
    return StructType(tuple(_fields(table.schema))), list(zip(*columns, strict=True))


def _fields(fields: Any) -> Iterator[NestedField]:
    for field in fields:
        found = field_id(field)
        number = NO_ID if found is None else found
        yield NestedField(number, field.name, _type(field.type), not field.nullable)


def _type(kind: Any) -> IcebergType:
    parts = list(_fields(children(kind)))
    if pa.types.is_struct(kind):
        return StructType(tuple(parts))
    if pa.types.is_map(kind):
        key, value = parts
        return MapType(
            key.field_id, key.field_type, value.field_id, value.field_type, value.required
        )
    if parts:
        return ListType(parts[0].field_id, parts[0].field_type, parts[0].required)
    found = primitive_of(kind)
    assert found is not None, kind
    return found


def _value(scalar: Any) -> object:
    if not scalar.is_valid:
        return None
    kind = scalar.type
    if kind == pa.uuid():
        return UUID(bytes=scalar.value.as_py())
    if pa.types.is_struct(kind):
        return tuple(_value(scalar[position]) for position in range(kind.num_fields))
    if pa.types.is_map(kind):
        return {_value(pair[0]): _value(pair[1]) for pair in scalar.values}
    if children(kind):
        return [_value(each) for each in scalar.values]
    return scalar.value if pa.types.is_temporal(kind) else scalar.as_py()
