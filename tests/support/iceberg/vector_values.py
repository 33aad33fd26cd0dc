"""Types and JSON as the vectors spell them."""

from __future__ import annotations

import json
import re

from committer.iceberg.values.type_json import parse_type
from committer.iceberg.values.types import IcebergType, ListType, MapType, NestedField, StructType

_LIST = re.compile(r"list<(.*)>")
_MAP = re.compile(r"map<(\w+), (.*)>")
_STRUCT = re.compile(r"struct<(.*)>")
_FIELD = re.compile(r"(\d+): (\w+): (optional|required) (.*)")


def vector_type(text: str) -> IcebergType:
    """Parse a type; nested ones too, which have no text form in metadata."""
    if match := _LIST.fullmatch(text):
        return ListType(900, vector_type(match[1]), False)
    if match := _MAP.fullmatch(text):
        return MapType(901, vector_type(match[1]), 902, vector_type(match[2]), False)
    if match := _STRUCT.fullmatch(text):
        return StructType(tuple(_field(part) for part in re.split(r", (?=\d+: )", match[1])))
    return parse_type(text)


def _field(text: str) -> NestedField:
    match = _FIELD.fullmatch(text)
    assert match is not None, text
    return NestedField(int(match[1]), match[2], vector_type(match[4]), match[3] == "required")


def json_text(value: object) -> str:
    """Return equal text for equal JSON of equal key order; 1 and 1.0 differ."""
    return json.dumps(value, ensure_ascii=False)
