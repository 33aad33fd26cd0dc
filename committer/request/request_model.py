"""The base of the models of a commit request, and the values that its parts share."""

from __future__ import annotations

from math import isfinite
from typing import Annotated

from pydantic import (
    AfterValidator,
    AliasGenerator,
    BaseModel,
    ConfigDict,
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


def problem_text(problem: ErrorDetails) -> str:
    """Return pydantic's sentence without the class of the error that made it."""
    return problem["msg"].removeprefix("Value error, ")


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


Printable = AfterValidator(_printable)
Name = Annotated[str, Field(min_length=1, max_length=255), Printable]
Count = Annotated[int, Field(ge=0, le=2**63 - 1)]
Document = Annotated[dict[str, JsonValue], AfterValidator(finite)]
