"""Filters on rows are projected onto partitions as Iceberg Java does, and never lose a row."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from committer.iceberg.expressions.compiling import compiled
from committer.iceberg.expressions.expression import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    EqualTo,
    Expression,
    GreaterThan,
    GreaterThanOrEqual,
    IsNull,
    LessThan,
    LessThanOrEqual,
    NotStartsWith,
    Or,
    Reference,
    StartsWith,
)
from committer.iceberg.expressions.expression_json import parse_expression
from committer.iceberg.expressions.expression_text import print_text
from committer.iceberg.expressions.row_evaluator import predicate_evaluator
from committer.iceberg.pruning.projection import inclusive_projection
from committer.iceberg.schema.partition_spec import PartitionField, PartitionSpec, partition_type
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.transforms import (
    IDENTITY,
    BucketTransform,
    TruncateTransform,
    parse_transform,
)
from committer.iceberg.values.types import (
    DecimalType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestamptzType,
)
from tests.support.builders.fixtures import vectors
from tests.support.builders.projections import (
    COLUMNS,
    filters_on,
    one_column,
    one_field,
    strict_projection,
)
from tests.support.iceberg.expression_builders import (
    printed,
    rows_of,
    sets_in_order,
    unbound,
)
from tests.support.iceberg.java_pruning import believing_wrapped, wraps_its_literal
from tests.support.iceberg.row_evaluator import row_evaluator
from tests.support.iceberg.vector_values import vector_type

CASES = vectors("projections")["cases"]


def as_floats(json_value: object) -> object:
    """Round floats of 4 bytes: Java 17 prints some with a digit more than they need."""
    match json_value:
        case float():
            return f"{json_value:.7g}"
        case dict():
            return {key: as_floats(value) for key, value in json_value.items()}
    return json_value


@pytest.mark.thorough
def test_every_vector_of_one_field_is_projected_as_java_does() -> None:
    cases = [case for case in CASES if "schema" not in case]
    assert len(cases) == 7088
    for case in cases:
        kind = vector_type(case["type"])
        schema, spec = one_column(kind), one_field(parse_transform(case["transform"]))
        filter = parse_expression(case["filter"])
        read = as_floats if kind == FloatType() else lambda found: found
        if wraps_its_literal(case, kind):
            continue
        for key, project in (("inclusive", inclusive_projection), ("strict", strict_projection)):
            found = believing_wrapped(project(spec, schema, filter), spec, schema)
            assert read(printed(unbound(found))) == read(sets_in_order(case[key])), (case, key)


# --- Several fields ------------------------------------------------------------------------------

EVENTS = Schema(
    (
        NestedField(1, "ts", TimestamptzType(), False),
        NestedField(2, "id", LongType(), True),
        NestedField(3, "s", StringType(), False),
    )
)
EVENTS_SPEC = PartitionSpec(
    0,
    tuple(
        PartitionField((source_id,), 1000 + position, name, parse_transform(transform))
        for position, (name, transform, source_id) in enumerate(
            [("h", "hour", 1), ("d", "day", 1), ("b", "bucket[8]", 2), ("s", "identity", 3)]
        )
    ),
)
SHORTENED = {"type": "transform", "transform": "truncate[2]", "term": "s"}


def test_every_vector_of_several_fields_is_projected_as_java_does() -> None:
    cases = [case for case in CASES if "schema" in case]
    assert len(cases) == 12
    for case in cases:
        if isinstance(case["filter"], dict) and case["filter"].get("term") == SHORTENED:
            continue  # the next test
        filter = parse_expression(case["filter"])
        for key, project in (("inclusive", inclusive_projection), ("strict", strict_projection)):
            projected = believing_wrapped(project(EVENTS_SPEC, EVENTS, filter), EVENTS_SPEC, EVENTS)
            found = print_text(unbound(projected))
            assert found == case[f"{key}_text"], case


def test_a_transform_of_a_column_is_asked_of_the_column_s_own_partition_field() -> None:
    """Where Java asks `s = 'ab'` for `truncate[2](s) = 'ab'`, and so loses a row with `abc`."""
    (case,) = (
        case
        for case in CASES
        if isinstance(case["filter"], dict) and case["filter"].get("term") == SHORTENED
    )
    assert case["inclusive_text"] == 'ref(name="s") == "ab"'
    projected = inclusive_projection(EVENTS_SPEC, EVENTS, parse_expression(case["filter"]))
    matches = compiled(projected, predicate_evaluator)
    assert matches((0, 0, 0, "abc"))
    assert not matches((0, 0, 0, "acb"))
    assert projected == strict_projection(EVENTS_SPEC, EVENTS, parse_expression(case["filter"]))


def test_a_prefix_is_as_long_as_its_code_points() -> None:
    """Where Java counts two UTF-16 units, asks for equality, and so loses longer values."""
    spec, schema = one_field(TruncateTransform(2)), one_column(StringType())
    prefix, value = "\U00010000", "\U00010000abc"
    term = Reference("c")
    inclusive = inclusive_projection(spec, schema, StartsWith(term, prefix))
    assert compiled(inclusive, predicate_evaluator)((value[:2],))
    strict = strict_projection(spec, schema, NotStartsWith(term, prefix))
    assert not compiled(strict, predicate_evaluator)((value[:2],))


def test_a_partition_that_wrapped_around_lies_at_the_other_end() -> None:
    """Truncated by 10,000, -2147483648 is 2147477296: where Java deletes it with `x > 1000000`."""
    schema, spec = one_column(IntegerType()), one_field(TruncateTransform(10_000))
    c, wrapped, others = Reference("c"), (2_147_477_296,), (2_000_000,)
    for project in (inclusive_projection, strict_projection):
        for above in (GreaterThan(c, 1_000_000), GreaterThanOrEqual(c, 1_000_000)):
            matches = compiled(project(spec, schema, above), predicate_evaluator)
            assert matches(others) and not matches(wrapped)
        for below in (LessThan(c, 0), LessThanOrEqual(c, -(2**31) + 9_999)):
            matches = compiled(project(spec, schema, below), predicate_evaluator)
            assert matches(wrapped) and not matches(others)
    for among in (LessThan(c, -(2**31) + 5), GreaterThan(c, -(2**31) + 5)):
        assert compiled(inclusive_projection(spec, schema, among), predicate_evaluator)(wrapped)
        assert not compiled(strict_projection(spec, schema, among), predicate_evaluator)(wrapped)


def test_numbers_beyond_all_decimals_are_projected_too() -> None:
    schema = one_column(DecimalType(9, 2))
    c, digits = Reference("c"), Decimal("9" * 99 + ".99")
    for transform in (IDENTITY, TruncateTransform(10), BucketTransform(4)):
        spec = one_field(transform)
        for literal in (1e200, digits, str(digits)):
            assert inclusive_projection(spec, schema, LessThan(c, literal)) == ALWAYS_TRUE
            assert inclusive_projection(spec, schema, EqualTo(c, literal)) == ALWAYS_FALSE
        assert strict_projection(spec, schema, GreaterThan(c, -1e300)) == ALWAYS_TRUE


def test_fields_that_say_nothing_are_left_out() -> None:
    schema = Schema(
        (NestedField(1, "c", IntegerType(), True), NestedField(2, "d", IntegerType(), True))
    )
    spec = PartitionSpec(
        0,
        (
            PartitionField((1, 2), 1000, "several", BucketTransform(4)),
            PartitionField((1,), 1001, "later", parse_transform("zorder[3]")),
            PartitionField((9,), 1002, "gone", parse_transform("void")),
        ),
    )
    filter = EqualTo(Reference("c"), 1)
    assert inclusive_projection(spec, schema, filter) == ALWAYS_TRUE
    assert strict_projection(spec, schema, filter) == ALWAYS_FALSE
    both = Or(filter, IsNull(Reference("d")))
    assert inclusive_projection(PartitionSpec(), schema, both) == ALWAYS_TRUE


# --- No row is ever lost -------------------------------------------------------------------------


@pytest.mark.simulation
@settings(max_examples=400, deadline=None)
@given(st.data())
def test_no_row_that_matches_is_in_a_partition_that_does_not(data: st.DataObject) -> None:
    """And all rows of a partition that surely matches do."""
    kind, transform = data.draw(st.sampled_from(COLUMNS))
    filter = data.draw(filters_on(kind))
    schema, spec = one_column(kind), one_field(transform)
    matches = row_evaluator(schema, filter)
    may_match = compiled(inclusive_projection(spec, schema, filter), predicate_evaluator)
    must_match = compiled(strict_projection(spec, schema, filter), predicate_evaluator)
    for value in data.draw(st.lists(rows_of(kind), max_size=12)):
        partition = (transform.apply(kind, value),)
        assert may_match(partition) >= matches((value,)) >= must_match(partition), value


def test_the_partition_type_is_what_projections_are_bound_to() -> None:
    projections: list[Callable[..., Expression]] = [inclusive_projection, strict_projection]
    spec, schema = one_field(BucketTransform(16)), one_column(StringType())
    for project in projections:
        found = project(spec, schema, IsNull(Reference("c")))
        assert isinstance(found, IsNull)
        assert found.term.value_type == partition_type(spec, schema).fields[0].field_type  # type: ignore[union-attr]
