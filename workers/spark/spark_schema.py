"""Iceberg schemas as Spark's, as Iceberg's own runtime shows them. Runs on the driver only.

A uuid is text, a fixed column is binary, an unknown one void. Spark has no type for times of day,
nanoseconds and shapes: a column that has one cannot be read, and `columns` leaves it out.
Source: Iceberg Java, `TypeToSparkType`.
"""

from __future__ import annotations

from pyspark.sql import types as spark

from committer.errors import UnsupportedError
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
    TimestampType,
    TimestamptzType,
    UnknownType,
    UUIDType,
    VariantType,
)

_PRIMITIVES: dict[IcebergType, spark.DataType] = {
    BooleanType(): spark.BooleanType(),
    IntegerType(): spark.IntegerType(),
    LongType(): spark.LongType(),
    FloatType(): spark.FloatType(),
    DoubleType(): spark.DoubleType(),
    DateType(): spark.DateType(),
    TimestampType(): spark.TimestampNTZType(),
    TimestamptzType(): spark.TimestampType(),
    StringType(): spark.StringType(),
    UUIDType(): spark.StringType(),
    BinaryType(): spark.BinaryType(),
    UnknownType(): spark.NullType(),
    VariantType(): spark.VariantType(),
}


def spark_schema(schema: Schema) -> spark.StructType:
    """Convert a schema, with comments and nullability.

    Errors: `UnsupportedError` naming every column that Spark has no type for.
    """
    unreadable = [
        f"`{field.name}` ({field.field_type})"
        for field in schema.columns
        if not _has_spark_type(field.field_type)
    ]
    if unreadable:
        others = [field.name for field in schema.columns if _has_spark_type(field.field_type)]
        raise UnsupportedError(
            f"Spark has no type for {', '.join(unreadable)}: name the other columns,"
            f' option("columns", "{",".join(others)}")'
        )
    return _struct(schema.columns)


def quoted(name: str) -> str:
    """Return a column's name as Spark's SQL quotes it."""
    return "`" + name.replace("`", "``") + "`"


def _has_spark_type(kind: IcebergType) -> bool:
    match kind:
        case StructType(fields):
            return all(_has_spark_type(field.field_type) for field in fields)
        case ListType():
            return _has_spark_type(kind.element_type)
        case MapType():
            return _has_spark_type(kind.key_type) and _has_spark_type(kind.value_type)
    return isinstance(kind, DecimalType | FixedType) or kind in _PRIMITIVES


def _struct(fields: tuple[NestedField, ...]) -> spark.StructType:
    return spark.StructType([_field(field) for field in fields])


def _field(field: NestedField) -> spark.StructField:
    metadata = {} if field.doc is None else {"comment": field.doc}
    return spark.StructField(field.name, _type(field.field_type), not field.required, metadata)


def _type(kind: IcebergType) -> spark.DataType:
    match kind:
        case StructType(fields):
            return _struct(fields)
        case ListType():
            return spark.ArrayType(_type(kind.element_type), not kind.element_required)
        case MapType():
            key, value = _type(kind.key_type), _type(kind.value_type)
            return spark.MapType(key, value, not kind.value_required)
        case DecimalType(precision, scale):
            return spark.DecimalType(precision, scale)
        case FixedType():
            return spark.BinaryType()
    return _PRIMITIVES[kind]
