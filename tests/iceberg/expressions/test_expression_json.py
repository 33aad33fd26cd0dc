"""Expression JSON is read and printed as Iceberg Java does; what it cannot be is refused."""

from __future__ import annotations

import pytest

from committer.errors import InvalidMetadataError
from committer.iceberg.expressions.expression import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    EqualTo,
    In,
    IsNull,
    Not,
    Reference,
    Transformed,
    rewrite_not,
)
from committer.iceberg.expressions.expression_json import (
    DEPTH_MAX,
    parse_expression,
    print_expression,
)
from committer.iceberg.values.transforms import BucketTransform
from tests.support.builders.fixtures import vectors
from tests.support.iceberg.vector_values import json_text

CASES = vectors("expressions")["cases"]


def test_every_vector_survives_a_round_trip() -> None:
    assert len(CASES) == 1284
    for case in CASES:
        assert json_text(print_expression(parse_expression(case["json"]))) == json_text(
            case["json"]
        )


def test_negations_are_rewritten_as_java_does() -> None:
    for case in CASES:
        rewritten = rewrite_not(parse_expression(case["json"]))
        assert json_text(print_expression(rewritten)) == json_text(case["rewrite_not"])


def test_every_form_that_the_specification_allows_is_read() -> None:
    assert parse_expression(True) == ALWAYS_TRUE
    assert parse_expression({"type": "false"}) == ALWAYS_FALSE
    assert parse_expression({"type": "literal", "value": False}) == ALWAYS_FALSE
    column = {"type": "reference", "term": "a.b"}
    assert parse_expression({"type": "is_null", "term": column}) == IsNull(Reference("a.b"))
    literal = {"type": "literal", "value": 7}
    assert parse_expression({"type": "EQ", "term": "a", "value": literal}) == EqualTo(
        Reference("a"), 7
    )
    bucket = {"type": "transform", "transform": "bucket[16]", "term": column}
    term = Transformed(BucketTransform(16), Reference("a.b"))
    found = parse_expression({"type": "in", "term": bucket, "values": [1, literal]})
    assert found == In(term, (1, 7))
    assert print_expression(found) == {
        "type": "in",
        "term": {"type": "transform", "transform": "bucket[16]", "term": "a.b"},
        "values": [1, 7],
    }


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (None, "an object"),
        ("true", "an object"),
        ({"type": 5}, "`type`: expected a string"),
        ({"type": "like", "term": "a"}, "unknown operation `like`"),
        ({"type": "not"}, "an object, found nothing"),
        ({"type": "and", "left": True}, "an object, found nothing"),
        ({"type": "literal", "value": 1}, "`value`: expected a boolean"),
        ({"type": "is-null", "term": "a", "value": 1}, "expected no literal, found `value`"),
        ({"type": "eq", "term": "a"}, "expected `value`, found nothing"),
        ({"type": "eq", "term": "a", "values": [1]}, "expected `value`, found `values`"),
        ({"type": "in", "term": "a", "values": 1}, "`values`: expected a list"),
        ({"type": "eq", "term": "a", "value": None}, "`value`: expected a boolean, a number or"),
        ({"type": "eq", "term": "a", "value": {"type": "reference"}}, "expected a literal"),
        ({"type": "eq", "term": "a", "value": 2**63}, "an integer of 64 bits"),
        ({"type": "eq", "term": 1, "value": 1}, "`term`: expected an object"),
        ({"type": "eq", "term": {"type": "x"}, "value": 1}, "a `reference` or a `transform`"),
        (
            {
                "type": "is-null",
                "term": {
                    "type": "transform",
                    "transform": "day",
                    "term": {"type": "transform", "transform": "day", "term": "a"},
                },
            },
            "expected a transform of a column",
        ),
    ],
)
def test_what_is_no_expression_is_refused_with_its_place(document: object, message: str) -> None:
    with pytest.raises(InvalidMetadataError) as raised:
        parse_expression(document, where="filter")
    assert str(raised.value).startswith("filter")
    assert message in str(raised.value)


def nested(depth: int) -> object:
    document: object = {"type": "is-null", "term": "a"}
    for _ in range(depth):
        document = {"type": "or", "left": {"type": "not-null", "term": "b"}, "right": document}
    return document


def test_depth_is_bounded() -> None:
    deepest = parse_expression(nested(DEPTH_MAX))
    assert print_expression(rewrite_not(Not(deepest))) != print_expression(deepest)
    with pytest.raises(InvalidMetadataError, match="nested deeper than 200"):
        parse_expression(nested(DEPTH_MAX + 1))
