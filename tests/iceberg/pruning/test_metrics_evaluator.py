"""Files are kept and proven as by Iceberg Java, and never against their rows."""

from __future__ import annotations

import math
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from committer.errors import InvalidMetadataError
from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.expressions.expression import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    EqualTo,
    Expression,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    NotEqualTo,
    NotIn,
    NotNull,
    Reference,
    Transformed,
)
from committer.iceberg.expressions.expression_json import DEPTH_MAX, parse_expression
from committer.iceberg.pruning.metrics_evaluator import (
    inclusive_metrics_evaluator,
    strict_metrics_evaluator,
)
from committer.iceberg.pruning.residual import residual_evaluator
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.transforms import IDENTITY, BucketTransform, TruncateTransform
from committer.iceberg.values.types import (
    DoubleType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
)
from tests.support.builders.fixtures import vectors
from tests.support.builders.projections import filters_on, one_column, one_field
from tests.support.iceberg.expression_builders import VALUES, rows_of, vector_schema
from tests.support.iceberg.random_metrics import LEFT_OUT, file_of
from tests.support.iceberg.row_evaluator import row_evaluator
from tests.support.iceberg.vector_values import vector_type

C = Reference("c")


def vector_file(file: dict[str, Any]) -> DataFile:
    def counts(key: str) -> dict[int, int] | None:
        found = file.get(key)
        return None if found is None else {int(each): count for each, count in found.items()}

    def bounds(key: str) -> dict[int, bytes] | None:
        return None if file[key] is None else {1: bytes.fromhex(file[key])}

    return DataFile(
        file_path="f",
        record_count=file["record_count"],
        file_size_in_bytes=1,
        value_counts=counts("value_counts"),
        null_value_counts=counts("null_value_counts"),
        nan_value_counts=counts("nan_value_counts"),
        lower_bounds=bounds("lower_hex"),
        upper_bounds=bounds("upper_hex"),
    )


@pytest.mark.thorough
def test_every_vector_is_answered_as_java_does() -> None:
    asked = 0
    for case in vectors("evaluators")["cases"]:
        kind = vector_type(case["type"])
        schema = Schema((NestedField(1, "c", kind, False), NestedField(2, "r", LongType(), True)))
        file = vector_file(case["file"])
        for predicate in case["predicates"]:
            filter = parse_expression(predicate["filter"])
            assert inclusive_metrics_evaluator(schema, filter)(file) == predicate["inclusive"]
            assert strict_metrics_evaluator(schema, filter)(file) == predicate["strict"]
            asked += 1
    assert asked == 5893


@pytest.mark.simulation
@settings(max_examples=250, deadline=None)
@given(st.data())
def test_no_file_is_pruned_that_has_a_row_that_matches(data: st.DataObject) -> None:
    """And where a file surely matches, all its rows do."""
    kind = data.draw(st.sampled_from(list(VALUES)))
    filter = data.draw(filters_on(kind))
    values = data.draw(st.lists(rows_of(kind), min_size=1, max_size=5))
    file = file_of(kind, values, width=data.draw(st.integers(1, 3)), without=data.draw(LEFT_OUT))
    matches = row_evaluator(one_column(kind), filter)
    found = [matches((value,)) for value in values]
    assert inclusive_metrics_evaluator(one_column(kind), filter)(file) >= any(found)
    assert strict_metrics_evaluator(one_column(kind), filter)(file) <= all(found)


# --- What metrics can say of single cases --------------------------------------------------------


def may_match(filter: Expression, values: list[object]) -> bool:
    file = file_of(IntegerType(), values)
    return inclusive_metrics_evaluator(one_column(IntegerType()), filter)(file)


def test_files_are_pruned_by_their_bounds_and_counts() -> None:
    assert may_match(EqualTo(C, 5), [1, 9])
    assert not may_match(EqualTo(C, 10), [1, 9])
    assert not may_match(LessThan(C, 1), [1, 9])
    assert not may_match(In(C, (0, 10)), [1, 9])
    assert may_match(In(C, tuple(range(10, 300))), [1, 9])  # too many to look up
    assert not may_match(Not(EqualTo(C, 5)), [5, 5])
    assert not may_match(IsNull(C), [1, 9])
    assert not may_match(NotNull(C), [None, None])


def test_transforms_that_keep_the_order_keep_the_bounds() -> None:
    schema, file = one_column(StringType()), file_of(StringType(), ["banana", "cherry"])
    for transform, literal, expected in (
        (TruncateTransform(1), "a", False),
        (TruncateTransform(1), "b", True),
        (BucketTransform(4), 2, True),
    ):
        filter = EqualTo(Transformed(transform, C), literal)
        assert inclusive_metrics_evaluator(schema, filter)(file) == expected
        assert not strict_metrics_evaluator(schema, filter)(file)


def test_the_deepest_expression_that_is_read_is_evaluated_too() -> None:
    document: object = {"type": "eq", "term": "c", "value": 10}
    for _ in range(DEPTH_MAX):
        document = {
            "type": "or",
            "left": {"type": "eq", "term": "c", "value": 0},
            "right": document,
        }
    filter, schema = parse_expression(document), one_column(IntegerType())
    assert not inclusive_metrics_evaluator(schema, filter)(file_of(IntegerType(), [1, 9]))
    assert strict_metrics_evaluator(schema, filter)(file_of(IntegerType(), [10]))
    assert row_evaluator(schema, Not(filter))((1,))
    residual = residual_evaluator(one_field(IDENTITY), schema, filter)
    assert (residual((10,)), residual((1,))) == (ALWAYS_TRUE, ALWAYS_FALSE)


def test_an_empty_file_matches_nothing_and_surely_everything() -> None:
    schema = one_column(IntegerType())
    empty, unknown = (
        file_of(IntegerType(), []),
        DataFile(file_path="f", record_count=-1, file_size_in_bytes=1),
    )
    assert not inclusive_metrics_evaluator(schema, NotNull(C))(empty)
    assert strict_metrics_evaluator(schema, NotNull(C))(empty)
    assert inclusive_metrics_evaluator(schema, NotNull(C))(unknown)
    assert not strict_metrics_evaluator(schema, NotNull(C))(unknown)


def test_columns_inside_structs_are_never_sure() -> None:
    """The struct around them may be null, which their counts do not tell."""
    schema = vector_schema(IntegerType())
    file = DataFile(
        file_path="f",
        record_count=2,
        file_size_in_bytes=1,
        value_counts={4: 2},
        null_value_counts={4: 0},
        lower_bounds={4: b"\x05\0\0\0"},
        upper_bounds={4: b"\x06\0\0\0"},
    )
    filter = GreaterThan(Reference("st.in"), 4)
    assert not strict_metrics_evaluator(schema, filter)(file)
    assert not inclusive_metrics_evaluator(schema, Not(filter))(file)


def test_a_lower_bound_of_nan_proves_nothing() -> None:
    """Old writers left NaN where values had been compared with it: who knows what was skipped."""
    schema, file = one_column(DoubleType()), nan_to_nine()
    for kept in (
        LessThan(C, -5.0),
        LessThanOrEqual(C, -5.0),
        EqualTo(C, -5.0),
        In(C, (10.0, 11.0)),
    ):
        assert inclusive_metrics_evaluator(schema, kept)(file)
    for unproven in (NotEqualTo(C, 10.0), NotIn(C, (10.0, 11.0)), GreaterThan(C, 1.0)):
        assert not strict_metrics_evaluator(schema, unproven)(file)


def test_an_upper_bound_beside_a_lower_one_of_nan_is_believed_where_java_believes_it() -> None:
    """`InclusiveMetricsEvaluator` of Java 1.12: `lt`, `ltEq` and `in` stop at a lower bound of NaN,
    `eq` goes on to the upper bound, `gt` and `gtEq` look at no other."""
    schema, file = one_column(DoubleType()), nan_to_nine()
    for filter in (EqualTo(C, 10.0), GreaterThan(C, 9.0), GreaterThanOrEqual(C, 10.0)):
        assert not inclusive_metrics_evaluator(schema, filter)(file)
    for filter in (EqualTo(C, 9.0), GreaterThan(C, 8.0), GreaterThanOrEqual(C, 9.0)):
        assert inclusive_metrics_evaluator(schema, filter)(file)


def nan_to_nine() -> DataFile:
    """Return a file with a lower bound of NaN and an upper one of 9."""
    return DataFile(
        file_path="f",
        record_count=2,
        file_size_in_bytes=1,
        value_counts={1: 2},
        null_value_counts={1: 0},
        nan_value_counts={1: 1},
        lower_bounds={1: struct.pack("<d", math.nan)},
        upper_bounds={1: struct.pack("<d", 9.0)},
    )


def test_numbers_that_wrap_around_lie_outside_of_their_truncated_bounds() -> None:
    filter = GreaterThan(Transformed(TruncateTransform(10), C), 1_000)
    assert may_match(filter, [-(2**31), 50])
    assert may_match(Not(filter), [-(2**31), 50])
    assert not may_match(filter, [-(2**31) + 10, 50])
    truncated, wrapped = Transformed(TruncateTransform(10), C), 2**31 - 2
    for literal, expected in ((50, True), (-90, True), (wrapped, True), (1_000, False)):
        assert may_match(EqualTo(truncated, literal), [-(2**31), 50]) == expected
        assert may_match(In(truncated, (literal, 2_000)), [-(2**31), 50]) == expected


def test_bounds_that_are_no_values_are_refused_with_the_file_s_name() -> None:
    file = DataFile(
        file_path="s3://b/t/f.parquet",
        record_count=2,
        file_size_in_bytes=1,
        lower_bounds={1: b"\x05\0"},
        upper_bounds={1: b"\x05\0"},
    )
    for evaluator in (inclusive_metrics_evaluator, strict_metrics_evaluator):
        with pytest.raises(InvalidMetadataError, match=r"s3://b/t/f.parquet: expected bounds"):
            evaluator(one_column(IntegerType()), LessThan(C, 1))(file)
