"""Iceberg's types as Spark's; expected ones are those of Iceberg Java's `TypeToSparkType`."""

from __future__ import annotations

import pytest
from pyspark.sql import types as spark

from committer.errors import UnsupportedError
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values import types as iceberg
from committer.iceberg.values.types import IcebergType, NestedField
from workers.spark.spark_schema import spark_schema

PRIMITIVES: list[tuple[IcebergType, spark.DataType]] = [
    (iceberg.BooleanType(), spark.BooleanType()),
    (iceberg.IntegerType(), spark.IntegerType()),
    (iceberg.LongType(), spark.LongType()),
    (iceberg.FloatType(), spark.FloatType()),
    (iceberg.DoubleType(), spark.DoubleType()),
    (iceberg.DecimalType(9, 2), spark.DecimalType(9, 2)),
    (iceberg.DateType(), spark.DateType()),
    (iceberg.TimestampType(), spark.TimestampNTZType()),
    (iceberg.TimestamptzType(), spark.TimestampType()),
    (iceberg.StringType(), spark.StringType()),
    (iceberg.UUIDType(), spark.StringType()),
    (iceberg.FixedType(4), spark.BinaryType()),
    (iceberg.BinaryType(), spark.BinaryType()),
    (iceberg.UnknownType(), spark.NullType()),
    (iceberg.VariantType(), spark.VariantType()),
]
UNREADABLE: list[IcebergType] = [
    iceberg.TimeType(),
    iceberg.TimestampNanoType(),
    iceberg.TimestamptzNanoType(),
    iceberg.GeometryType(),
    iceberg.GeographyType(),
]


def column(kind: IcebergType, name: str = "c", field_id: int = 1) -> NestedField:
    return NestedField(field_id, name, kind, False)


@pytest.mark.parametrize(("kind", "expected"), PRIMITIVES, ids=lambda kind: str(kind))
def test_each_primitive_has_its_type(kind: IcebergType, expected: spark.DataType) -> None:
    assert spark_schema(Schema((column(kind),))).fields[0].dataType == expected


def test_every_type_is_either_shown_or_refused() -> None:
    """No type is forgotten in these lists."""
    simple = {type(kind) for kind, _ in PRIMITIVES} | {type(kind) for kind in UNREADABLE}
    nested = {iceberg.StructType, iceberg.ListType, iceberg.MapType}
    every = {
        each
        for each in vars(iceberg).values()
        if isinstance(each, type) and issubclass(each, IcebergType)
    }
    assert every - {IcebergType, iceberg.SimpleType} == simple | nested


def test_nullability_and_comments_are_kept_at_every_level() -> None:
    inner = NestedField(5, "x", iceberg.LongType(), True, "how many")
    schema = Schema(
        (
            NestedField(1, "s", iceberg.StructType((inner,)), False),
            NestedField(2, "l", iceberg.ListType(6, iceberg.StringType(), True), True),
            NestedField(
                3,
                "m",
                iceberg.MapType(7, iceberg.StringType(), 8, iceberg.LongType(), False),
                False,
            ),
        )
    )
    x = spark.StructField("x", spark.LongType(), False, {"comment": "how many"})
    assert spark_schema(schema) == spark.StructType(
        [
            spark.StructField("s", spark.StructType([x]), True),
            spark.StructField("l", spark.ArrayType(spark.StringType(), False), False),
            spark.StructField("m", spark.MapType(spark.StringType(), spark.LongType(), True), True),
        ]
    )


@pytest.mark.parametrize("kind", UNREADABLE, ids=str)
def test_a_type_that_spark_lacks_is_named_with_the_columns_that_can_be_read(
    kind: IcebergType,
) -> None:
    hidden = iceberg.StructType((column(iceberg.ListType(9, kind, False), "inside", 8),))
    schema = Schema((column(iceberg.LongType(), "id", 1), column(hidden, "bad", 2)))
    with pytest.raises(UnsupportedError, match=r'`bad` \(struct.*option\("columns", "id"\)'):
        spark_schema(schema)
