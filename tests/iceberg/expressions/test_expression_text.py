"""Expressions read as they do in Iceberg Java."""

from __future__ import annotations

import re

import pytest

from committer.iceberg.expressions.binding import bind
from committer.iceberg.expressions.expression import (
    Expression,
    In,
    LiteralPredicate,
    Predicate,
    Reference,
    SetPredicate,
    Transformed,
    map_predicates,
)
from committer.iceberg.expressions.expression_json import parse_expression
from committer.iceberg.expressions.expression_text import print_text
from committer.iceberg.values.single_value import parse_json_value
from committer.iceberg.values.transforms import BucketTransform
from committer.iceberg.values.types import (
    BinaryType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    UUIDType,
)
from tests.support.builders.fixtures import vectors
from tests.support.iceberg.expression_builders import vector_schema
from tests.support.iceberg.vector_values import vector_type

CASES = vectors("expressions")["cases"]


def as_java_held_it(expression: Expression, kind: IcebergType) -> Expression:
    """Parse literals that JSON spells as text, but that Java held as values."""
    if not isinstance(
        kind, DecimalType | UUIDType | FixedType | BinaryType | FloatType | DoubleType
    ):
        return expression

    def read(value: object) -> object:
        if isinstance(kind, FloatType | DoubleType):
            return float(str(value))
        return parse_json_value(kind, value)

    def replace(predicate: Predicate) -> Expression:
        match predicate:
            case LiteralPredicate(term, value):
                return type(predicate)(term, read(value))
            case SetPredicate(term, values):
                return type(predicate)(term, tuple(map(read, values)))
        return predicate

    return map_predicates(expression, replace)


def sets_in_order(text: str) -> str:
    """Sort the literals of bound sets: Java keeps them hashed, and prints them without quotes."""
    return re.sub(
        r" in \(([^()]*)\)",
        lambda match: f" in {sorted(match[1].replace(chr(34), '').split(', '))}",
        text,
    )


def test_text_is_that_of_java() -> None:
    for case in CASES:
        kind = vector_type(case["type"])
        expression = parse_expression(case["json"])
        assert print_text(as_java_held_it(expression, kind)) == case["text"]
        if "HeapByteBuffer" not in case["bound_text"]:  # an address of Java's for a set of bytes
            bound = print_text(bind(expression, vector_schema(kind)))
            assert sets_in_order(bound) == sets_in_order(case["bound_text"])


@pytest.mark.thorough
def test_terms_of_lists_are_told() -> None:
    listed = In(Transformed(BucketTransform(8), Reference("c")), tuple(range(12)))
    assert print_text(listed).startswith('bucket[8](ref(name="c")) in (0, 1, ')
