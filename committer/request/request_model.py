"""The base of the models of a commit request, and the values that its parts share."""

from __future__ import annotations

from math import isfinite
from typing import Annotated

from pydantic import (
    AfterValidator,
    AliasGenerator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    JsonValue,
)
from pydantic_core import ErrorDetails


class Model(BaseModel):
    """Strict about keys, which are written in kebab-case."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        validate_by_alias=True,
        validate_by_name=True,
        alias_generator=AliasGenerator(alias=lambda name: name.replace("_", "-")),
        hide_input_in_errors=True,
    )


# By the type of pydantic's error, with what its context has. No text quotes the value.
_OBJECT = "expected an object"
_LIST = "expected a list"
_NUMBER = "expected a whole number"
_FLAG = "expected true or false"
_UUID = "expected a UUID"
_PROBLEMS = {
    "missing": "expected a value, found none",
    "extra_forbidden": "expected no such key",
    "string_type": "expected a text",
    "string_too_short": "expected at least {min_length} characters",
    "string_too_long": "expected at most {max_length} characters",
    "string_pattern_mismatch": "expected a text that matches `{pattern}`",
    "int_type": _NUMBER,
    "int_parsing": _NUMBER,
    "int_from_float": _NUMBER,
    "bool_type": _FLAG,
    "bool_parsing": _FLAG,
    "dict_type": _OBJECT,
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
    "list_type": _LIST,
    "tuple_type": _LIST,
    "too_short": "expected at least {min_length}, found {actual_length}",
    "too_long": "expected at most {max_length}",
    "greater_than_equal": "expected at least {ge}",
    "less_than_equal": "expected at most {le}",
    "literal_error": "expected {expected}",
    "uuid_type": _UUID,
    "uuid_parsing": _UUID,
    "enum": "expected {expected}",
    "union_tag_not_found": "expected a key {discriminator}",
    "union_tag_invalid": "expected {discriminator} to be one of {expected_tags}",
}


def problem_text(problem: ErrorDetails) -> str:
    """Say what was expected: in words of our own for what pydantic checks, else as the check that
    failed says it. `problem`: with its context.
    """
    context = problem.get("ctx", {})
    if problem["type"] == "string_too_short" and context["min_length"] == 1:
        return "expected a text that is not empty"
    known = _PROBLEMS.get(problem["type"])
    return known.format(**context) if known else problem["msg"].removeprefix("Value error, ")


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("expected printable characters only")
    return text


# Named once: a union that is written in place is made anew at each look.
_CONTAINERS = (dict, list)


def finite(value: JsonValue) -> JsonValue:
    """Refuse NaN and Infinity, which the parser reads, but no other JSON reader understands."""
    for inner in value.values() if isinstance(value, dict) else _items(value):
        # Most values are integers and text: a call for each would take most of the time.
        if isinstance(inner, _CONTAINERS):
            finite(inner)
        elif isinstance(inner, float) and not isfinite(inner):
            raise ValueError("expected numbers that JSON has, found NaN or an infinity")
    return value


def _items(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def at_most(entries_max: int) -> BeforeValidator:
    """Refuse an object with more keys before its values are looked at: each wrong one is an error
    that pydantic keeps.
    """

    def check(value: object) -> object:
        if isinstance(value, dict) and len(value) > entries_max:
            raise ValueError(f"expected at most {entries_max}")
        return value

    return BeforeValidator(check)


Printable = AfterValidator(_printable)
# Of each list that may be long: a million wrong elements would be as many errors in memory.
FIRST_ERROR = FailFast()
Name = Annotated[str, Field(min_length=1, max_length=255), Printable]
Count = Annotated[int, Field(ge=0, le=2**63 - 1)]
Document = Annotated[dict[str, JsonValue], AfterValidator(finite)]
