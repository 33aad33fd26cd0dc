"""Batches of the reader as Spark takes them: types, nullability, nulls and slices."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyspark.sql import types as spark

from committer.errors import PublishError
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values import types as iceberg
from committer.iceberg.values.types import IcebergType, NestedField
from workers.read.read_types import read_array, read_schema
from workers.spark.spark_batches import as_spark_batch, spark_arrow_schema
from workers.spark.spark_schema import spark_schema

ONE, TWO = UUID(int=1), UUID("f0e1d2c3-b4a5-4697-8877-665544332211")
LONG, TEXT = iceberg.LongType(), iceberg.UUIDType()
PAIR = iceberg.StructType((NestedField(11, "u", TEXT, False), NestedField(12, "n", LONG, True)))
# (type, in-memory values, what Spark gets)
CASES: list[tuple[IcebergType, list[Any], list[Any]]] = [
    (LONG, [1, None, 3], [1, None, 3]),
    (TEXT, [ONE, None, TWO], [str(ONE), None, str(TWO)]),
    (iceberg.FixedType(2), [b"ab", None, b"cd"], [b"ab", None, b"cd"]),
    (iceberg.UnknownType(), [None, None, None], [None, None, None]),
    (
        PAIR,
        [(ONE, 1), None, (None, 3)],
        [{"u": str(ONE), "n": 1}, None, {"u": None, "n": 3}],
    ),
    (
        iceberg.ListType(21, TEXT, False),
        [[ONE, None], None, [TWO]],
        [[str(ONE), None], None, [str(TWO)]],
    ),
    (
        iceberg.ListType(21, LONG, True),
        [[1, 2], None, []],
        [[1, 2], None, []],
    ),
    (
        iceberg.MapType(22, TEXT, 23, PAIR, False),
        [{ONE: (TWO, 5)}, None, {TWO: None}],
        [[(str(ONE), {"u": str(TWO), "n": 5})], None, [(str(TWO), None)]],
    ),
    (
        iceberg.VariantType(),
        [(b"m", b"v"), None, (b"n", b"w")],
        [{"value": b"v", "metadata": b"m"}, None, {"value": b"w", "metadata": b"n"}],
    ),
    (
        iceberg.StructType((NestedField(31, "v", iceberg.VariantType(), False),)),
        [((b"m", b"v"),), None, (None,)],
        [{"v": {"value": b"v", "metadata": b"m"}}, None, {"v": None}],
    ),
    (iceberg.StructType(()), [(), None, ()], [{}, None, {}]),
]


@pytest.mark.parametrize(("kind", "values", "expected"), CASES, ids=lambda each: str(each)[:40])
def test_every_type_arrives_as_sparks_own(
    kind: IcebergType, values: list[Any], expected: list[Any]
) -> None:
    fields = (NestedField(1, "c", kind, False),)
    target = spark_arrow_schema(spark_schema(Schema(fields)))
    batch = pa.RecordBatch.from_arrays([read_array(values, kind)], schema=read_schema(fields))
    for start, stop in ((0, 3), (1, 3), (2, 3), (1, 1)):
        found = as_spark_batch(batch.slice(start, stop - start), target)
        found.validate(full=True)
        assert found.schema.equals(target, check_metadata=True)
        assert found.column(0).to_pylist() == expected[start:stop]


def test_buffers_that_fit_are_not_copied() -> None:
    kind = iceberg.ListType(2, LONG, False)
    fields = (NestedField(1, "c", kind, False),)
    batch = pa.RecordBatch.from_arrays([read_array([[1, 2]], kind)], schema=read_schema(fields))
    target = spark_arrow_schema(
        spark.StructType([spark.StructField("c", spark.ArrayType(spark.LongType()))])
    )
    found = as_spark_batch(batch, target)
    before, after = batch.column(0).values.buffers()[1], found.column(0).values.buffers()[1]
    assert before.address == after.address


def test_texts_of_a_length_come_as_strings_and_elements_of_no_type_as_nulls() -> None:
    inner = spark.StructType([spark.StructField("code", spark.CharType(3), False)])
    schema = spark.StructType(
        [
            spark.StructField("name", spark.VarcharType(7)),
            spark.StructField("places", spark.ArrayType(inner)),
            spark.StructField("nothing", spark.ArrayType(spark.NullType(), containsNull=False)),
            spark.StructField(
                "counts", spark.MapType(spark.VarcharType(2), spark.NullType(), False)
            ),
        ]
    )
    found = spark_arrow_schema(schema)
    assert found.field("name").type == pa.string()
    assert not found.field("places").type.value_type.field("code").nullable
    assert found.field("places").type.value_type.field("code").type == pa.string()
    assert found.field("nothing").type.value_type == pa.null()
    assert found.field("counts").type.key_type == pa.string()


def test_keys_of_no_type_are_refused_with_their_cast() -> None:
    nothing = spark.MapType(spark.NullType(), spark.NullType())
    schema = spark.StructType().add("s", spark.StructType().add("counts", nothing))
    with pytest.raises(PublishError, match=r"`s\.counts`: .*CAST\(s\.counts AS MAP<STRING, STR"):
        spark_arrow_schema(schema)
