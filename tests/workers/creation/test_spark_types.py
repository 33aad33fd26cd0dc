"""Spark's types become Iceberg's as in Iceberg's own runtime."""

from __future__ import annotations

import pytest
from pyspark.sql import types as spark

from committer.errors import UnsupportedError
from committer.iceberg.values.types import ListType, MapType, StructType
from workers.creation.spark_types import refuse_untyped, schema_of

KINDS = {
    "boolean": spark.BooleanType(),
    "int": spark.IntegerType(),
    "long": spark.LongType(),
    "float": spark.FloatType(),
    "double": spark.DoubleType(),
    "date": spark.DateType(),
    "timestamptz": spark.TimestampType(),
    "timestamp": spark.TimestampNTZType(),
    "string": spark.StringType(),
    "binary": spark.BinaryType(),
    "decimal(9, 2)": spark.DecimalType(9, 2),
    "variant": spark.VariantType(),
    "unknown": spark.NullType(),
    "time": spark.TimeType(),
}


@pytest.mark.parametrize(("iceberg", "kind"), KINDS.items())
def test_each_type_has_its_own(iceberg: str, kind: spark.DataType) -> None:
    schema = schema_of(spark.StructType().add("c", kind), all_optional=True)
    assert [str(field.field_type) for field in schema.fields] == [iceberg]


@pytest.mark.parametrize(
    ("kind", "iceberg"),
    [
        (spark.ByteType(), "int"),
        (spark.ShortType(), "int"),
        (spark.VarcharType(7), "string"),
        (spark.CharType(7), "string"),
        (spark.StringType("UTF8_LCASE"), "string"),
    ],
)
def test_a_narrower_type_takes_the_next_one(kind: spark.DataType, iceberg: str) -> None:
    schema = schema_of(spark.StructType().add("c", kind), all_optional=True)
    assert str(schema.fields[0].field_type) == iceberg


def nested() -> spark.StructType:
    inner = spark.StructType([spark.StructField("b", spark.LongType(), False, {"comment": "in"})])
    return spark.StructType(
        [
            spark.StructField("a", inner, False, {"comment": "out"}),
            spark.StructField("l", spark.ArrayType(spark.LongType(), containsNull=False)),
            spark.StructField("m", spark.MapType(spark.StringType(), inner, False), False),
        ]
    )


def test_comments_and_what_is_required_are_kept_at_every_level() -> None:
    struct, element, entries = schema_of(nested(), all_optional=False).fields
    assert (struct.required, struct.doc) == (True, "out")
    assert isinstance(struct.field_type, StructType)
    [inner] = struct.field_type.fields
    assert (inner.required, inner.doc) == (True, "in")
    assert isinstance(element.field_type, ListType)
    assert (element.required, element.field_type.element_required) == (False, True)
    assert isinstance(entries.field_type, MapType)
    assert (entries.required, entries.field_type.value_required) == (True, True)


def test_columns_of_a_dataframe_are_optional_at_every_level() -> None:
    schema = schema_of(nested(), all_optional=True)
    keys = {name for name, field in schema.walk() if field.required}
    assert keys == {"m.key"}
    assert len({field.field_id for _, field in schema.walk()}) == 8


@pytest.mark.parametrize(
    "kind", [spark.DayTimeIntervalType(), spark.YearMonthIntervalType(), spark.GeometryType(4326)]
)
def test_a_type_that_iceberg_has_not_is_refused_with_its_column(kind: spark.DataType) -> None:
    source = spark.StructType().add("s", spark.StructType().add("odd", kind))
    with pytest.raises(UnsupportedError, match=r"column `s\.odd`: Iceberg has no type for Spark's"):
        schema_of(source, all_optional=True)


NOTHING = spark.NullType()


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (spark.ArrayType(NOTHING), r"`c`: Spark knows no type for its elements.*ARRAY<STRING>"),
        (spark.MapType(NOTHING, NOTHING), r"`c`: .* for its keys or values.*MAP<STRING, STRING>"),
        (spark.MapType(spark.StringType(), NOTHING), r"`c`: .* for its keys or values"),
        (spark.ArrayType(spark.ArrayType(NOTHING)), r"`c.element`: .* for its elements"),
        (NOTHING, r"`c`: Spark knows no type for it,.*CAST\(c AS STRING\).*format version 3"),
    ],
)
def test_a_type_that_spark_does_not_know_is_refused_with_its_cast(
    kind: spark.DataType, said: str
) -> None:
    schema = schema_of(spark.StructType().add("c", kind), all_optional=True)
    with pytest.raises(UnsupportedError, match=said):
        refuse_untyped(schema, 2)


def test_a_column_of_nulls_is_one_of_format_version_3() -> None:
    schema = schema_of(spark.StructType().add("c", NOTHING), all_optional=True)
    refuse_untyped(schema, 3)
    with pytest.raises(UnsupportedError, match="elements"):
        refuse_untyped(
            schema_of(spark.StructType().add("c", spark.ArrayType(NOTHING)), all_optional=True), 3
        )
