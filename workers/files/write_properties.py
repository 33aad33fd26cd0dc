"""The properties of a table that say how its files are written: read as values. No I/O.

Source: docs/reference/iceberg-notes.md 10, 11.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

from committer.errors import UnsupportedError

MIB = 1 << 20
FORMAT = "write.format.default"

FormatName = Literal["parquet", "orc", "avro"]
FORMATS: tuple[FormatName, ...] = ("parquet", "orc", "avro")

_TARGET = "write.target-file-size-bytes"


def format_name(properties: Mapping[str, str]) -> FormatName:
    """Return the format of new files. Errors: `UnsupportedError` for an unknown one."""
    return cast(FormatName, choice(properties, FORMAT, "parquet", {one: one for one in FORMATS}))


def target_file_bytes(properties: Mapping[str, str]) -> int:
    return positive(properties, _TARGET, 512 * MIB)


def positive(properties: Mapping[str, str], name: str, default: int) -> int:
    """Read a positive number. Errors: `UnsupportedError` for anything else."""
    text = properties.get(name, str(default))
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise UnsupportedError(f"`{name}` is `{text}`: expected a positive number")
    return int(text)


def choice(
    properties: Mapping[str, str], name: str, default: str, choices: Mapping[str, str]
) -> str:
    """Read one of some words, in any case, as what `choices` has for it."""
    text = properties.get(name, default)
    if text.lower() not in choices:
        raise UnsupportedError(f"`{name}` is `{text}`: expected one of {', '.join(choices)}")
    return choices[text.lower()]


def level(properties: Mapping[str, str], name: str) -> int | None:
    """Read a compression level; None where the table leaves it to its writers."""
    text = properties.get(name)
    if text is None or text == "null":
        return None
    try:
        return int(text)
    except ValueError as error:
        raise UnsupportedError(f"`{name}` is `{text}`: expected a number") from error
