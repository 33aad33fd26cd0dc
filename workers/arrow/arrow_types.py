"""Iceberg types as Arrow types, with the field id on every level, and Arrow types as Iceberg types.

Types only: no values, no matching of one schema with another.
Source: the specification, "Parquet" (Appendix A): a file's columns carry the table's field ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pyarrow as pa

from committer.errors import UnsupportedError
from committer.iceberg.schema.avro_names import safe_name
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
    VariantType,
)

FIELD_ID = b"PARQUET:field_id"

# The order of Parquet's groups; their fields have no ids of the table.
VARIANT = pa.struct(
    [pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)]
)

_PRIMITIVES: dict[IcebergType, pa.DataType] = {
    BooleanType(): pa.bool_(),
    IntegerType(): pa.int32(),
    LongType(): pa.int64(),
    FloatType(): pa.float32(),
    DoubleType(): pa.float64(),
    DateType(): pa.date32(),
    TimeType(): pa.time64("us"),
    TimestampType(): pa.timestamp("us"),
    TimestamptzType(): pa.timestamp("us", "UTC"),
    TimestampNanoType(): pa.timestamp("ns"),
    TimestamptzNanoType(): pa.timestamp("ns", "UTC"),
    StringType(): pa.string(),
    UUIDType(): pa.uuid(),
    BinaryType(): pa.binary(),
    VariantType(): VARIANT,
}

_UNWRITABLE = (UnknownType, GeometryType, GeographyType)


def is_writable(kind: IcebergType) -> bool:
    """Return whether a Parquet column of this type is written here.

    The others default to null, so a file that lacks them reads as null. spec: Default values.
    """
    return not isinstance(kind, _UNWRITABLE)


def arrow_type(kind: IcebergType) -> pa.DataType:
    """Convert a type to Arrow's.
    Errors: `UnsupportedError` for a type that `is_writable` denies."""
    match kind:
        case DecimalType():
            return pa.decimal128(kind.precision, kind.scale)
        case FixedType():
            return pa.binary(kind.length)
        case StructType():
            return pa.struct([arrow_field(f) for f in kind.fields if is_writable(f.field_type)])
        case ListType():
            return pa.list_(element_field(kind, arrow_type(kind.element_type)))
        case MapType():
            key, value = arrow_type(kind.key_type), arrow_type(kind.value_type)
            return pa.map_(key_field(kind, key), value_field(kind, value))
    if kind not in _PRIMITIVES:
        raise UnsupportedError(f"columns of type {describe(kind)} cannot be written")
    return _PRIMITIVES[kind]


def arrow_field(field: NestedField) -> pa.Field:
    return field_of(field, arrow_type(field.field_type))


def arrow_schema(schema: Schema) -> pa.Schema:
    """Return the columns of a data file that has all columns of the table which can be written."""
    return pa.schema([arrow_field(f) for f in schema.fields if is_writable(f.field_type)])


def field_of(field: NestedField, kind: pa.DataType) -> pa.Field:
    """Make a column or struct member. Its name is made safe as Iceberg's own Parquet writer does
    it: readers find columns by id, but some of them stumble over a dot in a name.
    """
    return _with_id(safe_name(field.name), kind, field.field_id, not field.required)


def element_field(kind: ListType, element: pa.DataType) -> pa.Field:
    return _with_id("element", element, kind.element_id, not kind.element_required)


def key_field(kind: MapType, key: pa.DataType) -> pa.Field:
    return _with_id("key", key, kind.key_id, False)


def value_field(kind: MapType, value: pa.DataType) -> pa.Field:
    return _with_id("value", value, kind.value_id, not kind.value_required)


def _with_id(name: str, kind: pa.DataType, field_id: int, nullable: bool) -> pa.Field:
    return pa.field(name, kind, nullable=nullable, metadata={FIELD_ID: str(field_id)})


def field_id(field: pa.Field) -> int | None:
    """Return the id that an Arrow field carries, if any."""
    metadata = field.metadata or {}
    return int(metadata[FIELD_ID]) if FIELD_ID in metadata else None


def children(kind: pa.DataType) -> list[pa.Field]:
    """Return the fields directly inside a nested type in Parquet's depth-first order, or none."""
    if pa.types.is_struct(kind):
        return [kind.field(index) for index in range(kind.num_fields)]
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [kind.value_field]
    return []


_EXACT: list[tuple[Callable[[pa.DataType], bool], IcebergType]] = [
    (pa.types.is_boolean, BooleanType()),
    (pa.types.is_int8, IntegerType()),
    (pa.types.is_int16, IntegerType()),
    (pa.types.is_int32, IntegerType()),
    (pa.types.is_int64, LongType()),
    (pa.types.is_float32, FloatType()),
    (pa.types.is_float64, DoubleType()),
    (pa.types.is_date32, DateType()),
    (pa.types.is_time, TimeType()),
    (pa.types.is_string, StringType()),
    (pa.types.is_large_string, StringType()),
    (pa.types.is_string_view, StringType()),
    (pa.types.is_binary, BinaryType()),
    (pa.types.is_large_binary, BinaryType()),
    (pa.types.is_binary_view, BinaryType()),
    (pa.types.is_null, UnknownType()),
]


def primitive_of(kind: pa.DataType) -> IcebergType | None:
    """Return the Iceberg primitive that holds every value of an Arrow type, or None."""
    if pa.types.is_dictionary(kind):
        return primitive_of(kind.value_type)
    if pa.types.is_timestamp(kind):
        return _timestamp(nanos=kind.unit == "ns", zoned=kind.tz is not None)
    if pa.types.is_decimal(kind):
        return DecimalType(kind.precision, kind.scale) if kind.precision <= 38 else None
    if pa.types.is_fixed_size_binary(kind):
        return FixedType(kind.byte_width)
    if kind == pa.uuid():
        return UUIDType()
    return next((iceberg for test, iceberg in _EXACT if test(kind)), None)


def _timestamp(*, nanos: bool, zoned: bool) -> IcebergType:
    if nanos:
        return TimestamptzNanoType() if zoned else TimestampNanoType()
    return TimestamptzType() if zoned else TimestampType()


def iceberg_type(kind: pa.DataType, ids: Iterator[int]) -> IcebergType:
    """Return the table type for an Arrow type; nested fields take their ids from `ids`.

    Errors: `UnsupportedError` for an Arrow type that Iceberg has nothing for.
    """
    nested = [(f, next(ids)) for f in children(kind)]
    if pa.types.is_struct(kind):
        return StructType(tuple(_nested_field(f, number, ids) for f, number in nested))
    if pa.types.is_map(kind):
        (key, key_id), (value, value_id) = nested
        inner = iceberg_type(key.type, ids), iceberg_type(value.type, ids)
        return MapType(key_id, inner[0], value_id, inner[1], not value.nullable)
    if nested:
        [(element, element_id)] = nested
        return ListType(element_id, iceberg_type(element.type, ids), not element.nullable)
    found = primitive_of(kind)
    if found is None:
        raise UnsupportedError(f"Iceberg has no type for Arrow's {kind}")
    return found


def _nested_field(field: pa.Field, number: int, ids: Iterator[int]) -> NestedField:
    return NestedField(number, field.name, iceberg_type(field.type, ids), not field.nullable)


def describe(kind: IcebergType) -> str:
    """Print the type as a person would write it in a sentence: `decimal(9, 2)`, `list<long>`."""
    match kind:
        case StructType():
            return (
                f"struct<{', '.join(f'{f.name}: {describe(f.field_type)}' for f in kind.fields)}>"
            )
        case ListType():
            return f"list<{describe(kind.element_type)}>"
        case MapType():
            return f"map<{describe(kind.key_type)}, {describe(kind.value_type)}>"
    return str(kind)


def describe_arrow(kind: pa.DataType) -> str:
    """Describe an Arrow type in Iceberg's words, or in Arrow's own if Iceberg has none."""
    try:
        return describe(iceberg_type(kind, count(1)))
    except UnsupportedError:
        return str(kind)
