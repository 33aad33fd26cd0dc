"""The names of types in a Hive metastore and in Glue, and where the two differ."""

from __future__ import annotations

import pytest

from committer.catalog.hive_type_names import GLUE, HIVE
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
    UnknownType,
    UUIDType,
    VariantType,
)


def struct_of(kind: IcebergType) -> StructType:
    return StructType(
        (
            NestedField(3, "a", IntegerType(), required=False),
            NestedField(4, "b", ListType(5, kind, True), required=True),
        )
    )


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (BooleanType(), "boolean"),
        (IntegerType(), "int"),
        (LongType(), "bigint"),
        (FloatType(), "float"),
        (DoubleType(), "double"),
        (DateType(), "date"),
        (TimeType(), "string"),
        (StringType(), "string"),
        (UUIDType(), "string"),
        (TimestampType(), "timestamp"),
        (BinaryType(), "binary"),
        (FixedType(16), "binary"),
        (DecimalType(9, 2), "decimal(9,2)"),
        (ListType(3, IntegerType(), True), "array<int>"),
        (MapType(3, StringType(), 4, BinaryType(), False), "map<string,binary>"),
        (struct_of(LongType()), "struct<a:int,b:array<bigint>>"),
    ],
    ids=str,
)
def test_both_name_most_types_alike(kind: IcebergType, name: str) -> None:
    assert HIVE.name(kind) == GLUE.name(kind) == name


@pytest.mark.parametrize(
    ("kind", "in_hive", "in_glue"),
    [
        (TimestamptzType(), "timestamp with local time zone", "timestamp"),
        (TimestampNanoType(), "timestamp", "timestamp_ns"),
        (TimestamptzNanoType(), "timestamp with local time zone", "timestamptz_ns"),
        (VariantType(), "unknown", "variant"),
        (UnknownType(), "unknown", "unknown"),
        (
            struct_of(TimestamptzType()),
            "struct<a:int,b:array<timestamp with local time zone>>",
            "struct<a:int,b:array<timestamp>>",
        ),
    ],
    ids=str,
)
def test_they_differ_as_the_two_catalogs_of_java_do(
    kind: IcebergType, in_hive: str, in_glue: str
) -> None:
    assert (HIVE.name(kind), GLUE.name(kind)) == (in_hive, in_glue)
