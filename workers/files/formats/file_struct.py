"""The struct of a data file in Iceberg's types: those columns of its table that it has."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from committer.errors import InvariantError
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.types import (
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)
from workers.arrow.arrow_types import children, field_id


def file_struct(schema: pa.Schema, table: Schema) -> StructType:
    """Return the columns of a file as the table has them, with their own names."""
    return StructType(tuple(_field(field, table) for field in schema))


def _field(field: pa.Field, table: Schema) -> NestedField:
    number = field_id(field)
    found = None if number is None else table.field(number)
    if found is None:
        raise InvariantError(f"column {field.name} of a data file is not one of its table's")
    kind = _type(found.field_type, field.type, table)
    return replace(found, field_type=kind, required=not field.nullable)


def _type(kind: IcebergType, arrow: pa.DataType, table: Schema) -> IcebergType:
    match kind:
        case StructType():
            return StructType(tuple(_fields(children(arrow), table)))
        case ListType():
            [element] = _fields(children(arrow), table)
            return replace(kind, element_type=element.field_type)
        case MapType():
            key, value = _fields(children(arrow), table)
            return replace(kind, key_type=key.field_type, value_type=value.field_type)
    return kind


def _fields(fields: Iterable[pa.Field], table: Schema) -> list[NestedField]:
    return [_field(field, table) for field in fields]
