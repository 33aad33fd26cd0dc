"""Binding gives what Iceberg Java gives, and says what does not fit."""

from __future__ import annotations

import pytest

from committer.errors import InvalidFilterError
from committer.iceberg.expressions.binding import bind, referenced_field_ids
from committer.iceberg.expressions.expression import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    And,
    BoundReference,
    EqualTo,
    Expression,
    GreaterThan,
    In,
    IsNaN,
    IsNull,
    LessThan,
    Not,
    NotEqualTo,
    NotIn,
    NotNull,
    Reference,
    StartsWith,
    Transformed,
)
from committer.iceberg.expressions.expression_json import parse_expression
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.transforms import DAY, IDENTITY, BucketTransform, parse_transform
from committer.iceberg.values.types import (
    DoubleType,
    IntegerType,
    ListType,
    NestedField,
    StringType,
    StructType,
    UnknownType,
)
from tests.support.builders.fixtures import vectors
from tests.support.iceberg.expression_builders import printed, sets_in_order, vector_schema
from tests.support.iceberg.vector_values import vector_type

INT, S = Reference("i"), Reference("s")
SCHEMA = Schema(
    (
        NestedField(1, "i", IntegerType(), False),
        NestedField(2, "s", StringType(), True),
        NestedField(3, "d", DoubleType(), False),
        NestedField(4, "u", UnknownType(), False),
        NestedField(5, "l", ListType(6, IntegerType(), True), True),
        NestedField(
            7,
            "opt",
            StructType((NestedField(8, "req", IntegerType(), True),)),
            False,
        ),
        NestedField(9, "D", DoubleType(), False),
    )
)


def test_every_vector_is_bound_as_java_does() -> None:
    for case in vectors("expressions")["cases"]:
        bound = bind(parse_expression(case["json"]), vector_schema(vector_type(case["type"])))
        assert printed(bound) == sets_in_order(case["bound_json"]), case["text"]


@pytest.mark.parametrize(
    ("unbound", "bound"),
    [
        (IsNull(S), ALWAYS_FALSE),
        (NotNull(S), ALWAYS_TRUE),
        (IsNull(Transformed(BucketTransform(4), S)), None),
        (IsNull(Reference("u")), ALWAYS_TRUE),
        (NotNull(Reference("u")), ALWAYS_FALSE),
        (IsNull(Reference("opt.req")), None),
        (LessThan(INT, 2**31), ALWAYS_TRUE),
        (GreaterThan(INT, 2**31), ALWAYS_FALSE),
        (GreaterThan(INT, -(2**31) - 1), ALWAYS_TRUE),
        (EqualTo(INT, 2**40), ALWAYS_FALSE),
        (NotEqualTo(INT, -(2**40)), ALWAYS_TRUE),
        (In(INT, (2**40,)), ALWAYS_FALSE),
        (NotIn(INT, (2**40,)), ALWAYS_TRUE),
        (In(INT, ()), ALWAYS_FALSE),
        (Not(IsNull(S)), ALWAYS_TRUE),
    ],
)
def test_what_the_schema_answers_is_simplified(
    unbound: Expression, bound: Expression | None
) -> None:
    found = bind(unbound, SCHEMA)
    if bound is None:
        assert isinstance(found, IsNull)
    else:
        assert found == bound


def test_a_set_of_one_literal_is_a_comparison() -> None:
    term = BoundReference(1, "i", IntegerType(), (0,), True)
    assert bind(In(INT, (5, 5, 2**40)), SCHEMA) == EqualTo(term, 5)
    assert bind(NotIn(INT, (5,)), SCHEMA) == NotEqualTo(term, 5)
    assert bind(In(INT, (5, 6, 5)), SCHEMA) == In(term, (5, 6))


def test_the_identity_of_a_column_is_the_column() -> None:
    assert bind(IsNull(Transformed(IDENTITY, INT)), SCHEMA) == bind(IsNull(INT), SCHEMA)


@pytest.mark.parametrize(
    ("unbound", "message"),
    [
        (IsNull(Reference("x")), "there is no column `x`"),
        (EqualTo(Reference("l.element"), 1), "`l.element` is inside a list or a map"),
        (IsNaN(INT), "expected a float or double column"),
        (StartsWith(INT, "a"), "expected a string column"),
        (EqualTo(INT, "a"), "cannot be compared with a str"),
        (In(INT, (1, "a")), "cannot be compared with a str"),
        (EqualTo(Reference("d"), float("nan")), "cannot be NaN"),
        (EqualTo(INT, [1]), "expected a plain value"),
        (EqualTo(Reference("opt"), 1), "cannot be compared with a int"),
        (IsNull(Transformed(DAY, INT)), "day of `i`, which is of type int"),
        (IsNull(Transformed(parse_transform("zorder[3]"), INT)), r"zorder\[3\] of `i`"),
        (IsNull(BoundReference(1, "i", IntegerType(), (0,), True)), "`i` is bound already"),
    ],
)
def test_what_does_not_fit_is_said(unbound: Expression, message: str) -> None:
    with pytest.raises(InvalidFilterError, match=message):
        bind(unbound, SCHEMA)


def test_names_may_be_found_in_either_case() -> None:
    assert bind(IsNull(Reference("I")), SCHEMA, case_sensitive=False) == bind(IsNull(INT), SCHEMA)
    with pytest.raises(InvalidFilterError, match="there is no column `I`"):
        bind(IsNull(Reference("I")), SCHEMA)
    twice = Schema(
        (NestedField(1, "AB", IntegerType(), False), NestedField(2, "ab", IntegerType(), False))
    )
    with pytest.raises(InvalidFilterError, match="several columns are called `Ab`"):
        bind(IsNull(Reference("Ab")), twice, case_sensitive=False)


def test_the_fields_that_are_asked_about_are_known() -> None:
    bound = bind(
        And(Not(EqualTo(INT, 1)), IsNull(Transformed(BucketTransform(4), Reference("opt.req")))),
        SCHEMA,
    )
    assert referenced_field_ids(bound) == {1, 8}
    assert referenced_field_ids(ALWAYS_TRUE) == frozenset()
