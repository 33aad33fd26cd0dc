"""The columns of a table as Hive's own type names, as Iceberg Java writes them. Pure.

They are for readers of the metastore; every Iceberg engine reads the metadata file instead.
"""

from __future__ import annotations

from committer.catalog.hive.thrift_values import Field, Struct, structs, text
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
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

_NAMES: dict[type[IcebergType], str] = {
    BooleanType: "boolean",
    IntegerType: "int",
    LongType: "bigint",
    FloatType: "float",
    DoubleType: "double",
    DateType: "date",
    TimeType: "string",
    StringType: "string",
    UUIDType: "string",
    TimestampType: "timestamp",
    TimestampNanoType: "timestamp",
    TimestamptzType: "timestamp with local time zone",
    TimestamptzNanoType: "timestamp with local time zone",
    FixedType: "binary",
    BinaryType: "binary",
}


def columns(schema: Schema) -> Field:
    """Return the list of Hive's `FieldSchema` for the columns of a schema."""
    return structs(
        _column(field.name, field.field_type, field.doc or "") for field in schema.fields
    )


def _column(name: str, kind: IcebergType, comment: str) -> Struct:
    column = {1: text(name), 2: text(hive_type(kind))}
    return column | {3: text(comment)} if comment else column


def hive_type(kind: IcebergType) -> str:
    """Return the name of a type. One that Hive does not have is `unknown`."""
    match kind:
        case DecimalType():
            return f"decimal({kind.precision},{kind.scale})"
        case StructType():
            inner = ",".join(f"{each.name}:{hive_type(each.field_type)}" for each in kind.fields)
            return f"struct<{inner}>"
        case ListType():
            return f"array<{hive_type(kind.element_type)}>"
        case MapType():
            return f"map<{hive_type(kind.key_type)},{hive_type(kind.value_type)}>"
    return _NAMES.get(type(kind), "unknown")
