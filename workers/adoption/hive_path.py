"""Partition values in a path, as Hive and Spark write them: `…/country=DE/day=2026-03-01/a.parquet`

The folder's name is that of the column, perhaps in lower case, as Hive has it. Values of types
whose text has more than one reading (floating-point numbers, times) are not taken from paths.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Segment:
    """A folder `name=text` of a path. `name` and `text` are decoded, `folder` is not. `text`: None
    of a value that Frazil shortened, of which the folder has the beginning only."""

    folder: str
    name: str
    text: str | None

    @property
    def value(self) -> str:
        """The text, or all of the folder where that is shortened: equal for equal values."""
        return self.folder if self.text is None else self.text


def path_segments(location: str) -> tuple[Segment, ...]:
    """Return the `name=value` folders of a path.

    Errors: `UnsupportedError` for a folder that is no UTF-8 text, with its percent signs decoded.
    """
    folders = location.split("/")[:-1]
    return tuple(_segment(folder) for folder in folders if "=" in folder)


def _segment(folder: str) -> Segment:
    name, _, text = folder.partition("=")
    try:
        name, text = (unquote(part, errors="strict") for part in (name, text))
        # A name on a disk that is no UTF-8 has other characters for its bytes.
        f"{name}{text}".encode()
    except UnicodeError as error:
        raise UnsupportedError(
            f"folder `{ascii(folder)[1:-1]}` of its path is no UTF-8 text: rename it, with each"
            " character that is not ASCII as it is, or percent-encoded in UTF-8"
        ) from error
    return Segment(folder, name, None if is_shortened(folder) else text)


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
