"""Bounds of text and bytes, cut to a width so that they still bound.

Source: the specification, "Manifests" (lower and upper bounds);
docs/reference/iceberg-notes.md 1.5.
"""

from __future__ import annotations

from typing import cast

from committer.iceberg.values.types import BinaryType, FixedType, IcebergType, StringType

_CODE_POINT_MAX = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


def truncate_lower(kind: IcebergType, value: object, width: int) -> object:
    """Return a value not above `value`: text of `width` code points, or bytes of `width`."""
    if isinstance(kind, StringType | BinaryType | FixedType):
        return cast(str, value)[:width]
    return value


def truncate_upper(kind: IcebergType, value: object, width: int) -> object | None:
    """Return a value not below `value`, cut and then raised;
    None if there is none of that width."""
    if isinstance(kind, StringType):
        return _raise_text(cast(str, value), width)
    if isinstance(kind, BinaryType | FixedType):
        return _raise_bytes(cast(bytes, value), width)
    return value


def _raise_text(text: str, width: int) -> str | None:
    if len(text) <= width:
        return text
    for position in range(width - 1, -1, -1):
        code_point = ord(text[position]) + 1
        if code_point in _SURROGATES:
            code_point = _SURROGATES.stop
        if code_point <= _CODE_POINT_MAX:
            return text[:position] + chr(code_point)
    return None


def _raise_bytes(content: bytes, width: int) -> bytes | None:
    if len(content) <= width:
        return content
    kept = content[:width].rstrip(b"\xff")
    return kept[:-1] + bytes((kept[-1] + 1,)) if kept else None
