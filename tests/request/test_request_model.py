"""The sentences for values that a model does not take."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import Field, TypeAdapter, ValidationError

from committer.request.alterations import TableChanges
from committer.request.request_model import Count, Model, Name, problem_text


class _Kind(StrEnum):
    A = "a"
    B = "b"


class _Model(Model):
    name: Name = "x"
    long: Annotated[str, Field(min_length=3, pattern="^x")] = "xxx"
    count: Count = 0
    flag: bool = False
    names: Annotated[tuple[Name, ...], Field(min_length=2, max_length=3)] = ("a", "b")
    word: Literal["asc", "desc"] = "asc"
    kind: _Kind = _Kind.A
    id: UUID = UUID(int=0)
    values: Annotated[dict[str, int], Field(default_factory=dict)]
    inner: _Model | None = None


def said(kind: Any, value: object) -> str:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(kind).validate_python(value)
    return problem_text(caught.value.errors()[0])


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("name", "", "expected a text that is not empty"),
        ("name", "n" * 256, "expected at most 255 characters"),
        ("name", 5, "expected a text"),
        ("name", "a\n", "expected printable characters only"),
        ("long", "x", "expected at least 3 characters"),
        ("long", "abc", "expected a text that matches `^x`"),
        ("count", -1, "expected at least 0"),
        ("count", 2**63, f"expected at most {2**63 - 1}"),
        ("count", "many", "expected a whole number"),
        ("count", 1.5, "expected a whole number"),
        ("count", None, "expected a whole number"),
        ("flag", "perhaps", "expected true or false"),
        ("flag", None, "expected true or false"),
        ("names", "a", "expected a list"),
        ("names", ["a"], "expected at least 2, found 1"),
        ("names", ["a"] * 4, "expected at most 3"),
        ("word", "up", "expected 'asc' or 'desc'"),
        ("kind", "c", "expected 'a' or 'b'"),
        ("id", "a", "expected a UUID"),
        ("id", 5, "expected a UUID"),
        ("values", [], "expected an object"),
        ("inner", 5, "expected an object"),
        ("other", 5, "expected no such key"),
    ],
)
def test_what_was_expected_is_said_in_words_of_our_own(
    key: str, value: object, expected: str
) -> None:
    assert said(_Model, {key: value}) == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"action": "drop-column"}, "expected a value, found none"),
        ({}, "expected a key 'action'"),
        ({"action": "no"}, "expected 'action' to be one of 'create-branch', 'create-tag'"),
    ],
)
def test_a_change_that_lacks_its_keys_is_told_which(
    change: dict[str, object], expected: str
) -> None:
    assert said(TableChanges, (change,)).startswith(expected)
