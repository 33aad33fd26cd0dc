"""The names that Hive has for Iceberg's types, as Iceberg Java writes them into catalogs. Pure.

A Hive metastore and Glue show them to people and to engines without Iceberg; Iceberg's own clients
read the metadata file. Java's two catalogs differ in a few types (`HIVE`, `GLUE`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

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

_COMMON: Mapping[type[IcebergType], str] = {
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
    FixedType: "binary",
    BinaryType: "binary",
}


@dataclass(frozen=True, slots=True)
class TypeNames:
    """One catalog's names. `own`: of the types that it names otherwise than the other one does;
    `name_of_others`: of those that Hive does not have.
    """

    own: Mapping[type[IcebergType], str]
    name_of_others: Callable[[IcebergType], str]

    def name(self, kind: IcebergType) -> str:
        """Return the name of a type."""
        match kind:
            case DecimalType(precision, scale):
                return f"decimal({precision},{scale})"
            case StructType(fields):
                named = (f"{field.name}:{self.name(field.field_type)}" for field in fields)
                return f"struct<{','.join(named)}>"
            case ListType(element_type=element):
                return f"array<{self.name(element)}>"
            case MapType(key_type=key, value_type=value):
                return f"map<{self.name(key)},{self.name(value)}>"
        return self.own.get(type(kind)) or _COMMON.get(type(kind)) or self.name_of_others(kind)


_ZONED = "timestamp with local time zone"
HIVE = TypeNames(
    own={
        TimestamptzType: _ZONED,
        TimestampNanoType: "timestamp",
        TimestamptzNanoType: _ZONED,
    },
    name_of_others=lambda _: "unknown",
)
"""Those of a Hive metastore."""
# Glue keeps any text: a type without a name in Hive has Iceberg's own, `timestamp_ns` too.
GLUE = TypeNames(own={TimestamptzType: "timestamp"}, name_of_others=str)
"""Those of Glue."""
