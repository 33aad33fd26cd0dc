"""Reads JSON, however large, without holding the interpreter for all of it.

orjson is the fastest reader, and one call of it: of 40 MB it takes half a second, in which no other
thread runs, not even the event loop. The standard library's reader calls back for each object, and
so lets others in. It takes a third longer, and less memory.
"""

from __future__ import annotations

import json
import re
from typing import NoReturn

import orjson

# Smaller ones take milliseconds.
_LARGE_BYTES = 256 * 1024
# Half of a pair, which is no text: only orjson says so.
_SURROGATE = re.compile(rb"\\u[dD][89abAB]")


def load_json(content: bytes) -> object:
    """Return the value that JSON in UTF-8 says. Errors: `ValueError`."""
    if len(content) < _LARGE_BYTES or _SURROGATE.search(content):
        return orjson.loads(content)
    try:
        return json.loads(
            content.decode(),
            object_hook=_yielding,
            parse_float=_finite,
            parse_constant=_refuse_constant,
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _yielding(json_object: dict[str, object]) -> dict[str, object]:
    """Return it as it is: a call of Python code is where the interpreter may change threads."""
    return json_object


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError("a number is too large")
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"`{name}` is no JSON")
