"""Filters as people write them are read for what they say, and refused where they say nothing."""

from __future__ import annotations

import pytest

from committer.errors import InvalidFilterError
from committer.iceberg.expressions.expression import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    And,
    EqualTo,
    Expression,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    NotEqualTo,
    NotIn,
    NotNaN,
    NotNull,
    NotStartsWith,
    Or,
    Reference,
    StartsWith,
    Transformed,
)
from committer.iceberg.expressions.expression_json import DEPTH_MAX
from committer.iceberg.expressions.where_text import parse_where
from committer.iceberg.values.transforms import DAY, BucketTransform, TruncateTransform

A, B, C, D = (Reference(name) for name in "abcd")


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        (
            "a = 1 and (b is null or c in ('x', 'y')) and not starts_with(d, 'p')",
            And(And(EqualTo(A, 1), Or(IsNull(B), In(C, ("x", "y")))), Not(StartsWith(D, "p"))),
        ),
        ("a = 1 or b = 2 and c = 3", Or(EqualTo(A, 1), And(EqualTo(B, 2), EqualTo(C, 3)))),
        (
            "a = 1 or b = 2 or c = 3 and d = 4",
            Or(Or(EqualTo(A, 1), EqualTo(B, 2)), And(EqualTo(C, 3), EqualTo(D, 4))),
        ),
        ("not a = 1 and b = 2", And(Not(EqualTo(A, 1)), EqualTo(B, 2))),
        ("NOT NOT A IS NULL", IsNull(Reference("A"))),
        ("true", ALWAYS_TRUE),
        ("a = 1 and False", ALWAYS_FALSE),
        ("a==-1", EqualTo(A, -1)),
        ("a<>+2", NotEqualTo(A, 2)),
        ("a != 1.5e3", NotEqualTo(A, 1500.0)),
        ("a<.5", LessThan(A, 0.5)),
        ("a <= true", LessThanOrEqual(A, True)),
        ("a > 9223372036854775807", GreaterThan(A, 2**63 - 1)),
        ("a >= '2026-01-31'", GreaterThanOrEqual(A, "2026-01-31")),
        ("a = 'it''s'", EqualTo(A, "it's")),
        ("a = X'00fF'", EqualTo(A, b"\x00\xff")),
        ("a is not null", NotNull(A)),
        ("a is nan", IsNaN(A)),
        ("a is not nan", NotNaN(A)),
        ("is_nan(a)", IsNaN(A)),
        ("a not in (1)", NotIn(A, (1,))),
        (
            "a between 1 and 2 and b = 3",
            And(And(GreaterThanOrEqual(A, 1), LessThanOrEqual(A, 2)), EqualTo(B, 3)),
        ),
        ("a not between 1 and 2", Or(LessThan(A, 1), GreaterThan(A, 2))),
        ("a like 'p%'", StartsWith(A, "p")),
        ("a not like 'p%'", NotStartsWith(A, "p")),
        ("a like 'p'", EqualTo(A, "p")),
        ("a.b.`odd``name` = 1", EqualTo(Reference("a.b.odd`name"), 1)),
        ('"a b"."c""d" = 1', EqualTo(Reference('a b.c"d'), 1)),
        ("größe = 1", EqualTo(Reference("größe"), 1)),
        ("`in` in (1)", In(Reference("in"), (1,))),
        ("bucket(16, a.b) = 3", EqualTo(Transformed(BucketTransform(16), Reference("a.b")), 3)),
        ("truncate(4, a) in ('ab')", In(Transformed(TruncateTransform(4), A), ("ab",))),
        ("days(a) = '2026-01-31'", EqualTo(Transformed(DAY, A), "2026-01-31")),
        ("day = 1", EqualTo(Reference("day"), 1)),
        ("  a\n=\t1  ", EqualTo(A, 1)),
    ],
)
def test_text_is_read(text: str, expression: Expression) -> None:
    assert parse_where(text) == expression


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at character 1: expected a column, found the end"),
        ("a", "at character 2: expected a comparison, `is`, `in`, `between` or `like`"),
        ("a = ", "at character 5: expected a literal, found the end"),
        ("a = b", "at character 5: expected a literal, found `b`"),
        ("a = null", "expected a literal, found `null`"),
        ("a = 1 b = 2", "at character 7: expected `and`, `or` or the end, found `b`"),
        ("(a = 1", "expected `)`, found the end"),
        ("a = 1)", "expected `and`, `or` or the end"),
        ("a is 5", "expected `null` or `nan`"),
        ("a in ()", "expected a literal, found `)`"),
        ("a in 1", "expected `(`"),
        ("a like 'x%y'", "expected a prefix and `%` alone"),
        ("a like 'x_'", "expected a prefix and `%` alone"),
        ("a like 5", "expected text in single quotes"),
        ("a = 'x", "at character 5: expected a word, a literal or a sign"),
        ("a = 5x", "at character 5: expected a word"),
        ("a = x'0'", "expected bytes in hexadecimal"),
        ("a = 9223372036854775808", "expected a whole number of 64 bits"),
        ("a = " + "9" * 5_000, "expected a whole number of 64 bits"),
        ("a = 1e999", "expected a number that a double can hold"),
        ("f(a) = 1", "expected a column, a transform of one"),
        ("bucket(0, a) = 1", "expected a whole number from 1 to 2147483647"),
        ("starts_with(a) = 1", "expected `,`"),
        ("a..b = 1", "expected a column"),
        ("a = 1; drop table a", "expected a word, a literal or a sign"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(InvalidFilterError) as raised:
        parse_where(text)
    assert str(raised.value).startswith("where: ")
    assert message in str(raised.value)


def test_depth_is_bounded() -> None:
    assert parse_where("(" * DEPTH_MAX + "a = 1" + ")" * DEPTH_MAX) == EqualTo(A, 1)
    for text in ("(" * 5_000, "not " * 5_000, " or ".join(["a = 1"] * 5_000)):
        with pytest.raises(InvalidFilterError, match="more than 200 times"):
            parse_where(text)
