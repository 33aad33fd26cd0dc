"""Partition values in a path, as Hive and Spark write them: `…/country=DE/day=2026-03-01/a.parquet`

The folder's name is that of the column. Values of types whose text has more than one reading
(floating-point numbers, times) are not taken from paths.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote

from committer.errors import UnsupportedError
from committer.iceberg.values.locations import is_shortened
from committer.iceberg.values.single_value import parse_json_value
from committer.iceberg.values.types import (
    BooleanType,
    DateType,
    DecimalType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    UUIDType,
)

_NULL = "__HIVE_DEFAULT_PARTITION__"
_INTEGER = re.compile(r"-?\d{1,19}", re.ASCII)
_WORDS = {"true": True, "false": False}
_BITS = {IntegerType: 32, LongType: 64}


def path_segments(location: str) -> Mapping[str, str | None]:
    """Return the `name=value` folders of a path, decoded; None for a value that Frazil shortened,
    of which the folder says the beginning only.
    Errors: `UnsupportedError` for a name with two values."""
    found: dict[str, str | None] = {}
    for folder in location.split("/")[:-1]:
        name, equals, encoded = folder.partition("=")
        name, text = unquote(name), None if is_shortened(folder) else unquote(encoded)
        if equals and found.setdefault(name, text) != text:
            raise UnsupportedError(f"its path has two values of `{name}`: expected one")
    return found


def parse_segment(name: str, text: str, kind: IcebergType) -> object:
    """Return the value of a column by its text in a path; None for Hive's null.

    Errors: `UnsupportedError` for a text or type that is not read.
    """
    if text == _NULL:
        return None
    try:
        return _parse(text, kind)
    except ValueError as error:
        raise UnsupportedError(
            f"`{name}={text}` in its path: expected a value of type {kind} there, or the column"
            " in the file"
        ) from error


def _parse(text: str, kind: IcebergType) -> object:
    match kind:
        case StringType():
            return text
        case BooleanType() if text.lower() in _WORDS:
            return _WORDS[text.lower()]
        case IntegerType() | LongType() if _INTEGER.fullmatch(text):
            number, limit = int(text), 1 << (_BITS[type(kind)] - 1)
            if -limit <= number < limit:
                return number
        case DateType() | DecimalType() | UUIDType():
            return parse_json_value(kind, text)
    raise ValueError("not a value of this type")
