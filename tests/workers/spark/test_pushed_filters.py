"""Spark's filters as the reader's: every one that is taken keeps the rows that Spark keeps.

Spark's answers are those of its documentation of NaN and null semantics, written down here as a
small model; `tests/integration/test_spark_reader.py` asks Spark itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from pyspark.sql import datasource as spark

from committer.iceberg.schema.schema import Schema
from committer.iceberg.values import types as iceberg
from committer.iceberg.values.types import IcebergType, NestedField
from tests.support.iceberg.row_evaluator import row_evaluator
from workers.spark.pushed_filters import push_filters

NAN, INF = math.nan, math.inf
SOME_UUID = UUID("f0e1d2c3-b4a5-4697-8877-665544332211")
NOON = datetime(2024, 5, 1, 12, 0, 0, 5)
_EPOCH = datetime(1970, 1, 1)


def micros(time: datetime) -> int:
    return (time.replace(tzinfo=None) - _EPOCH) // timedelta(microseconds=1)


# Each type: what Spark's filters hold, and the same values as the reader has them.
VALUES: dict[IcebergType, list[tuple[Any, Any]]] = {
    iceberg.IntegerType(): [(v, v) for v in (-1, 0, 1, 2**31 - 1)],
    iceberg.LongType(): [(v, v) for v in (-(2**63), -1, 0, 5)],
    iceberg.FloatType(): [(v, v) for v in (-INF, -1.5, 0.0, 1.5, INF, NAN)],
    iceberg.DoubleType(): [(v, v) for v in (-INF, -1.5, -0.0, 0.0, 2.25, INF, NAN)],
    iceberg.DecimalType(9, 2): [(Decimal(v), Decimal(v)) for v in ("-1.50", "0.00", "7.25")],
    iceberg.BooleanType(): [(False, False), (True, True)],
    iceberg.StringType(): [(v, v) for v in ("", "a", "ab", "b")],
    iceberg.BinaryType(): [(bytearray(v), v) for v in (b"", b"a", b"\xff")],
    iceberg.FixedType(1): [(bytearray(v), v) for v in (b"a", b"\xff")],
    iceberg.UUIDType(): [(str(v), v) for v in (UUID(int=0), SOME_UUID)],
    iceberg.DateType(): [(date(1969, 12, 31), -1), (date(1970, 1, 2), 1)],
    iceberg.TimestampType(): [(v, micros(v)) for v in (datetime(1969, 1, 1), NOON)],
    iceberg.TimestamptzType(): [
        (v.replace(tzinfo=UTC), micros(v)) for v in (datetime(1969, 1, 1), NOON)
    ],
}
Test = Callable[[Any], bool | None]
Model = Callable[[Any, Any], bool]


def order(value: Any) -> Any:
    """Return the place of a value in Spark's order: NaN is above all numbers."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    return bytes(value) if isinstance(value, bytearray) else value


COMPARISONS: dict[type[spark.Filter], Model] = {
    spark.EqualTo: lambda value, literal: order(value) == order(literal),
    spark.LessThan: lambda value, literal: order(value) < order(literal),
    spark.LessThanOrEqual: lambda value, literal: order(value) <= order(literal),
    spark.GreaterThan: lambda value, literal: order(value) > order(literal),
    spark.GreaterThanOrEqual: lambda value, literal: order(value) >= order(literal),
}


def kept_by_spark(found: spark.Filter, value: Any) -> bool | None:
    """Return Spark's answer for a value: true, false or null."""
    match found:
        case spark.Not(child):
            answer = kept_by_spark(child, value)
            return None if answer is None else not answer
        case spark.IsNull():
            return value is None
        case spark.IsNotNull():
            return value is not None
        case spark.EqualNullSafe(_, literal):
            if value is None or literal is None:
                return value is literal
            return bool(order(value) == order(literal))
        case spark.In(_, literals):
            return None if value is None else order(value) in [order(each) for each in literals]
        case spark.StringStartsWith(_, prefix):
            return None if value is None else str(value).startswith(prefix)
    return None if value is None else COMPARISONS[type(found)](value, getattr(found, "value"))  # noqa: B009


def all_filters(literals: list[Any]) -> list[spark.Filter]:
    name = ("c",)
    found: list[spark.Filter] = [spark.IsNull(name), spark.IsNotNull(name)]
    found += [spark.EqualNullSafe(name, None), spark.In(name, tuple(literals))]
    for literal in literals:
        found += [kind(name, literal) for kind in COMPARISONS]
        found += [spark.EqualNullSafe(name, literal), spark.In(name, (literal,))]
        if isinstance(literal, str):
            found.append(spark.StringStartsWith(name, literal))
    return found + [spark.Not(each) for each in found]


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_a_filter_that_is_taken_keeps_the_rows_that_spark_keeps(kind: IcebergType) -> None:
    schema = Schema((NestedField(1, "c", kind, False),))
    pairs = [(None, None), *VALUES[kind]]
    taken = 0
    for each in all_filters([literal for literal, _ in VALUES[kind]]):
        pushed = push_filters([each], schema)
        if pushed.remaining:
            assert pushed.remaining == (each,)
            continue
        taken += 1
        test = row_evaluator(schema, pushed.expression)
        for value, own in pairs:
            assert test((own,)) == bool(kept_by_spark(each, value)), (each, value)
    # Of uuids those that ask for equality; of floats not those with a zero or an infinity.
    assert taken >= (10 if isinstance(kind, iceberg.UUIDType) else 24), taken


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        (iceberg.StringType(), spark.StringEndsWith(("c",), "a")),
        (iceberg.StringType(), spark.StringContains(("c",), "a")),
        (iceberg.DoubleType(), spark.EqualTo(("c",), 0.0)),
        (iceberg.DoubleType(), spark.LessThan(("c",), NAN)),
        (iceberg.UUIDType(), spark.LessThan(("c",), str(SOME_UUID))),
        (iceberg.UUIDType(), spark.EqualTo(("c",), str(SOME_UUID).upper())),
        (iceberg.UUIDType(), spark.EqualTo(("c",), "no uuid")),
        (iceberg.DecimalType(9, 2), spark.EqualTo(("c",), Decimal("1.005"))),
        (iceberg.LongType(), spark.EqualTo(("c",), None)),
        (iceberg.LongType(), spark.In(("c",), (1, None))),
        (iceberg.LongType(), spark.EqualTo(("other",), 1)),
        (iceberg.VariantType(), spark.EqualTo(("c",), 1)),
    ],
    ids=str,
)
def test_what_iceberg_answers_otherwise_stays_with_spark(
    kind: IcebergType, found: spark.Filter
) -> None:
    schema = Schema((NestedField(1, "c", kind, False),))
    for each in (found, spark.Not(found)):
        assert push_filters([each], schema).remaining == (each,)


def test_filters_are_joined_and_a_field_of_a_struct_is_found() -> None:
    point = iceberg.StructType((NestedField(2, "x", iceberg.LongType(), False),))
    schema = Schema((NestedField(1, "p", point, False),))
    left = spark.StringContains(("p",), "?")
    filters = [spark.GreaterThan(("p", "x"), 1), left, spark.LessThan(("p", "x"), 4)]
    pushed = push_filters(filters, schema)
    assert pushed.remaining == (left,)
    test = row_evaluator(schema, pushed.expression)
    assert [x for x in range(6) if test(((x,),))] == [2, 3]
