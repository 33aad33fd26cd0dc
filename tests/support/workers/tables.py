"""Builders for the workers' tests: schemas, and values that make writers stumble."""

from __future__ import annotations

from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
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
    UUIDType,
)

PRIMITIVES: dict[str, IcebergType] = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "decimal9": DecimalType(9, 2),
    "decimal18": DecimalType(18, 4),
    "decimal38": DecimalType(38, 10),
    "date": DateType(),
    "time": TimeType(),
    "timestamp": TimestampType(),
    "timestamptz": TimestamptzType(),
    "timestamp_ns": TimestampNanoType(),
    "timestamptz_ns": TimestamptzNanoType(),
    "string": StringType(),
    "uuid": UUIDType(),
    "fixed": FixedType(4),
    "binary": BinaryType(),
}


def optional(field_id: int, name: str, kind: IcebergType, *, default: object = None) -> NestedField:
    return NestedField(field_id, name, kind, False, write_default=default)


def required(field_id: int, name: str, kind: IcebergType, *, default: object = None) -> NestedField:
    return NestedField(field_id, name, kind, True, write_default=default)


def struct(*fields: NestedField) -> StructType:
    return StructType(fields)


def schema(*fields: NestedField) -> Schema:
    return Schema(fields)


def all_primitives() -> Schema:
    """Return a schema with one optional column of each type that a Parquet file can hold."""
    numbered = enumerate(PRIMITIVES.items(), 1)
    return Schema(tuple(optional(field_id, name, kind) for field_id, (name, kind) in numbered))


def nested() -> Schema:
    """Return a schema with structs, lists and maps, and each of them inside another."""
    point = struct(
        optional(10, "x", DoubleType()),
        required(11, "y", IntegerType()),
        optional(12, "deep", struct(optional(13, "text", StringType()))),
    )
    return schema(
        required(1, "id", LongType()),
        optional(2, "point", point),
        optional(3, "tags", ListType(14, StringType(), True)),
        optional(4, "attributes", MapType(15, StringType(), 16, DoubleType(), False)),
        optional(
            5,
            "points",
            ListType(
                17,
                struct(required(18, "x", LongType()), optional(19, "at", DateType())),
                False,
            ),
        ),
        optional(6, "matrix", ListType(20, ListType(21, FloatType(), False), False)),
    )
