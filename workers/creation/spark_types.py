"""Spark's types as Iceberg's, for new tables. Types only.

As Iceberg's own Spark runtime maps them: the short integers become `int`, a timestamp has a zone,
`timestamp_ntz` has none, and comments become docs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from pyspark.sql import types as spark

from committer.errors import UnsupportedError
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
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
    TimeType,
    UnknownType,
    VariantType,
)

# By the name that Spark has for the type: some of the classes are newer than PySpark 4.0.
_PRIMITIVES: dict[str, IcebergType] = {
    "boolean": BooleanType(),
    "tinyint": IntegerType(),
    "smallint": IntegerType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "date": DateType(),
    "timestamp": TimestamptzType(),
    "timestamp_ntz": TimestampType(),
    "string": StringType(),
    "char": StringType(),
    "varchar": StringType(),
    "time": TimeType(),
    "binary": BinaryType(),
    "variant": VariantType(),
    "void": UnknownType(),
}
_COMMENT = "comment"
# The format version that has columns of unknown type.
_UNKNOWN_SINCE = 3


def schema_of(source: spark.StructType, *, all_optional: bool) -> Schema:
    """Return the schema of a new table for such rows. `all_optional`: whatever Spark says of nulls.

    Errors: `UnsupportedError` naming the column whose type Iceberg has not.
    """
    return Schema(_Converter(count(1), all_optional).fields(source, ""))


class _Converter:
    def __init__(self, ids: Iterator[int], all_optional: bool) -> None:
        self._ids = ids
        self._all_optional = all_optional

    def fields(self, struct: spark.StructType, path: str) -> tuple[NestedField, ...]:
        numbered = [(field, next(self._ids)) for field in struct.fields]
        return tuple(self._field(field, number, path) for field, number in numbered)

    def _field(self, field: spark.StructField, number: int, path: str) -> NestedField:
        kind = self._type(field.dataType, f"{path}{field.name}")
        doc = (field.metadata or {}).get(_COMMENT)
        required = self._required(field.nullable) and not isinstance(kind, UnknownType)
        return NestedField(number, field.name, kind, required=required, doc=doc)

    def _required(self, nullable: bool) -> bool:
        return not nullable and not self._all_optional

    def _type(self, kind: spark.DataType, path: str) -> IcebergType:
        if isinstance(kind, spark.StructType):
            return StructType(self.fields(kind, f"{path}."))
        if isinstance(kind, spark.ArrayType):
            number = next(self._ids)
            element = self._type(kind.elementType, f"{path}.element")
            return ListType(number, element, self._required(kind.containsNull))
        if isinstance(kind, spark.MapType):
            key_id, value_id = next(self._ids), next(self._ids)
            key = self._type(kind.keyType, f"{path}.key")
            value = self._type(kind.valueType, f"{path}.value")
            return MapType(key_id, key, value_id, value, self._required(kind.valueContainsNull))
        if isinstance(kind, spark.DecimalType):
            return DecimalType(kind.precision, kind.scale)
        return _primitive(kind, path)


def refuse_untyped(schema: Schema, format_version: int) -> None:
    """Refuse columns of a type that Spark does not know, as of `NULL`, `array()` and `map()`, where
    no file holds them. Errors: `UnsupportedError` naming the column.
    """
    for name, field in schema.walk():
        match field.field_type:
            case ListType(element_type=UnknownType()):
                what, kind, but = "its elements", "ARRAY<STRING>", ""
            case MapType(key_type=UnknownType()) | MapType(value_type=UnknownType()):
                what, kind, but = "its keys or values", "MAP<STRING, STRING>", ""
            case UnknownType() if format_version < _UNKNOWN_SINCE:
                what, kind = "it", "STRING"
                but = f"; only a table of format version {_UNKNOWN_SINCE} may have it as it is"
            case _:
                continue
        raise UnsupportedError(
            f"column `{name}`: Spark knows no type for {what}, where all values are null or none is"
            f" there: cast it, as in CAST({name} AS {kind}){but}"
        )


def _primitive(kind: spark.DataType, path: str) -> IcebergType:
    name = kind.simpleString()
    is_user_defined = isinstance(kind, spark.UserDefinedType)
    found = None if is_user_defined else _PRIMITIVES.get(name.partition("(")[0].partition(" ")[0])
    if found is None:
        raise UnsupportedError(
            f"column `{path}`: Iceberg has no type for Spark's {name}: cast it, or leave it out"
        )
    return found
