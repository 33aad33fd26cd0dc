"""Residuals of filters equal those of Iceberg Java, and select the same rows."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from committer.iceberg.expressions.expression import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    And,
    EqualTo,
    LessThan,
    LessThanOrEqual,
    Not,
    NotStartsWith,
    Reference,
    StartsWith,
    rewrite_not,
)
from committer.iceberg.expressions.expression_json import parse_expression, print_expression
from committer.iceberg.pruning.residual import residual_evaluator
from committer.iceberg.schema.partition_spec import (
    UNPARTITIONED,
    PartitionField,
    PartitionSpec,
    parse_partition_fields,
    partition_type,
)
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.single_value import parse_json_value
from committer.iceberg.values.transforms import IDENTITY, TruncateTransform
from committer.iceberg.values.types import (
    DateType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
)
from tests.support.builders.fixtures import vectors
from tests.support.builders.projections import COLUMNS, one_column, one_field
from tests.support.iceberg.expression_builders import filters_of, predicates_of, rows_of
from tests.support.iceberg.java_pruning import is_below_null
from tests.support.iceberg.row_evaluator import row_evaluator
from tests.support.iceberg.vector_values import vector_type

SCHEMA = Schema(
    (
        NestedField(1, "ts", TimestampType(), False),
        NestedField(2, "id", LongType(), False),
        NestedField(3, "s", StringType(), False),
        NestedField(4, "d", DateType(), False),
    )
)


def test_every_vector_leaves_what_java_leaves() -> None:
    cases = vectors("residuals")["cases"]
    assert len(cases) == 840
    for case in cases:
        spec = PartitionSpec(0, parse_partition_fields([json.loads(case["spec"])]))
        kind = partition_type(spec, SCHEMA).fields[0].field_type
        partition = (parse_json_value(kind, case["partition_value"]),)
        residual = residual_evaluator(spec, SCHEMA, parse_expression(case["filter"]))
        expected = print_expression(rewrite_not(parse_expression(case["residual"])))
        assert print_expression(residual(partition)) == expected, case


def test_identity_partitions_leave_what_java_leaves() -> None:
    spec = PartitionSpec(0, (PartitionField((1,), 1000, "c", IDENTITY),))
    asked = 0
    for case in vectors("evaluators")["cases"]:
        kind = vector_type(case["type"])
        schema = Schema((NestedField(1, "c", kind, False), NestedField(2, "r", LongType(), True)))
        partition = (parse_json_value(kind, case["partition_value"]),)
        for predicate in case["predicates"]:
            residual = residual_evaluator(spec, schema, parse_expression(predicate["filter"]))
            found = print_expression(residual(partition))
            if "residual" in predicate and not is_below_null(predicate["filter"], partition):
                assert found == predicate["residual"], predicate
                asked += 1
    assert asked > 5_500


def test_a_null_partition_is_below_no_literal_where_java_deletes_its_rows() -> None:
    for transform in (IDENTITY, TruncateTransform(10)):
        for filter in (LessThan(Reference("c"), 5), LessThanOrEqual(Reference("c"), 5)):
            residual = residual_evaluator(one_field(transform), one_column(LongType()), filter)
            assert residual((None,)) == ALWAYS_FALSE


def test_null_starts_with_nothing_where_java_fails() -> None:
    residual = residual_evaluator(
        one_field(IDENTITY), one_column(StringType()), NotStartsWith(Reference("c"), "a")
    )
    assert residual((None,)) == ALWAYS_TRUE
    residual = residual_evaluator(
        one_field(IDENTITY), one_column(StringType()), StartsWith(Reference("c"), "a")
    )
    assert residual((None,)) == ALWAYS_FALSE


def test_without_partition_fields_the_filter_is_left_as_it_is() -> None:
    filter = Not(And(EqualTo(Reference("id"), 1), EqualTo(Reference("x"), 1)))
    assert residual_evaluator(UNPARTITIONED, SCHEMA, filter)(()) is filter


@pytest.mark.simulation
@settings(max_examples=250, deadline=None)
@given(st.data())
def test_a_residual_asks_of_the_rows_of_its_partition_what_the_filter_asks(
    data: st.DataObject,
) -> None:
    kind, transform = data.draw(st.sampled_from(COLUMNS))
    filter = data.draw(filters_of(predicates_of(Reference("c"), kind)))
    schema = one_column(kind)
    matches = row_evaluator(schema, filter)
    residual = residual_evaluator(one_field(transform), schema, filter)
    for value in data.draw(st.lists(rows_of(kind), max_size=8)):
        left = residual((transform.apply(kind, value),))
        assert row_evaluator(schema, left)((value,)) == matches((value,))
