"""Expressions read as they do in Iceberg Java, with their data and without."""

from __future__ import annotations

import re

from committer.iceberg.expressions.binding import bind
from committer.iceberg.expressions.expression import (
    EqualTo,
    Expression,
    In,
    LessThan,
    LiteralPredicate,
    Predicate,
    Reference,
    SetPredicate,
    Transformed,
    map_predicates,
)
from committer.iceberg.expressions.expression_json import parse_expression
from committer.iceberg.expressions.expression_text import print_sanitized, print_text
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.single_value import parse_json_value
from committer.iceberg.values.transforms import BucketTransform
from committer.iceberg.values.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    NestedField,
    TimestampNanoType,
    UUIDType,
)
from tests.iceberg.expression_builders import vector_schema
from tests.iceberg.vector_values import vector_type
from tests.support.builders.fixtures import vectors

CASES = vectors("expressions")["cases"]
# Far from every date in the vectors.
NOW_MS = 1_790_000_000_000


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


def test_sanitized_text_is_that_of_java() -> None:
    for case in CASES:
        expression = as_java_held_it(parse_expression(case["json"]), vector_type(case["type"]))
        assert print_sanitized(expression, now_ms=NOW_MS) == case["sanitized"]


def sanitized(literal: object, now_ms: int = NOW_MS) -> str:
    text = print_sanitized(EqualTo(Reference("c"), literal), now_ms=now_ms)
    return text.removeprefix("c = ")


def test_times_near_now_tell_how_far_they_are() -> None:
    assert sanitized("2026-09-21") == "(date-today)"
    assert sanitized("2026-09-20") == "(date-1-days-ago)"
    assert sanitized("2026-12-19") == "(date-89-days-from-now)"
    assert sanitized("2026-12-20") == "(date)"
    assert sanitized("2026-09-21T14:13:20+00:00") == "(timestamp-about-now)"
    assert sanitized("2026-09-21T10:13:19.9999999") == "(timestamp-4-hours-ago)"
    assert sanitized("2026-09-26T14:13:20Z") == "(timestamp-5-days-from-now)"
    assert sanitized("2026-19-21").startswith("(hash-")
    assert sanitized("10:30") == "(time)"


def test_bound_times_are_told_as_times() -> None:
    schema = Schema(
        (NestedField(1, "d", DateType(), True), NestedField(2, "t", TimestampNanoType(), True))
    )
    for name, literal, shown in (
        ("d", "2026-09-20", "(date-1-days-ago)"),
        ("t", "2026-09-26T14:13:20", "(timestamp-5-days-from-now)"),
    ):
        bound = bind(LessThan(Reference(name), literal), schema)
        assert print_sanitized(bound, now_ms=NOW_MS) == f"{name} < {shown}"


def test_long_lists_are_cut() -> None:
    listed = In(Transformed(BucketTransform(8), Reference("c")), tuple(range(12)))
    assert print_sanitized(listed, now_ms=NOW_MS) == (
        "bucket[8](c) IN ((1-digit-int), (2-digit-int), ... (10 values hidden, 12 in total))"
    )
    assert print_text(listed).startswith('bucket[8](ref(name="c")) in (0, 1, ')
