"""Typed values out of JSON objects, with errors that name key and place, and nothing lost.

Keys that were not taken stay in `rest`, so that keys of a later version survive.
"""

from __future__ import annotations

import json
from typing import cast
from uuid import UUID

from committer.errors import InvalidMetadataError


def expected(where: str, what: str, found: object) -> InvalidMetadataError:
    """Return the error for a wrong value. Only its type is named: it may be large."""
    seen = "nothing" if found is None else f"a JSON {_NAMES.get(type(found), 'value')}"
    return InvalidMetadataError(f"{where}: expected {what}, found {seen}")


_NAMES: dict[type, str] = {
    dict: "object",
    list: "list",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "fraction",
}


# Of integers by their bits: other languages keep them in so many.
_LIMITS = {32: 1 << 31, 64: 1 << 63}


def is_integer(json_value: object, bits: int) -> bool:
    """Return whether a value is an integer (no boolean) of so many bits, 32 or 64."""
    limit = _LIMITS[bits]
    return type(json_value) is int and -limit <= json_value < limit


# Printers fail at 254 levels, and a kept value is nested in others.
_DEPTH_MAX = 200


def _is_printable(json_value: object, depth: int) -> bool:
    if isinstance(json_value, dict):
        return _is_printable(list(json_value.values()), depth)
    if not isinstance(json_value, list):
        return True
    return depth < _DEPTH_MAX and all(_is_printable(each, depth + 1) for each in json_value)


# --- Repeated keys -------------------------------------------------------------------------------

_CONTAINERS = (dict, list)
# Quotes and colons alone mark the keys of valid JSON.
_ALL_BUT_QUOTES_AND_COLONS = bytes(sorted({*range(256)} - {*b'":'}))
_ALL_BUT_QUOTES_AND_OPENINGS = bytes(sorted({*range(256)} - {*b'"{['}))


def keys_repeated(text: bytes, keys: int, colons: int) -> int:
    """Count how many keys of valid JSON stand in one object a second time. `keys`: those that its
    parser kept, of one of which it has dropped a value. Which one differs from parser to parser, so
    that what one program has checked is not what another reads.

    `colons`: at least so many are in texts that the parser kept, which saves most of the time.
    """
    # Without escapes each key that is written has a colon, and so has each of these.
    if b"\\" not in text and text.count(b":") == keys + colons:
        return 0
    return keys_written(text) - keys


def keys_written(text: bytes) -> int:
    """Count the keys of valid JSON, repeated ones each time."""
    # A colon outside of strings follows a key.
    return _count_outside_strings(text, _ALL_BUT_QUOTES_AND_COLONS)


def containers_written(text: bytes) -> int:
    """Count the objects and lists of valid JSON; of other text, the count means nothing."""
    return _count_outside_strings(text, _ALL_BUT_QUOTES_AND_OPENINGS)


def _count_outside_strings(text: bytes, others: bytes) -> int:
    """Count the bytes of valid JSON that are neither in a string nor among `others`."""
    if b"\\" in text:
        text = text.replace(rb"\\", b"").replace(rb"\"", b"")
    marks = text.translate(None, others)
    # Every other piece is between two strings.
    return sum(map(len, marks.split(b'"')[::2]))


class _RepeatedKeyError(Exception):
    """An object has a key twice."""


def outer_keys(text: bytes) -> list[str] | None:
    """Return the keys of the outermost object of valid JSON; None if any object has a key twice.
    Keeps no more of the text than one object at a time.
    """
    keys: list[str] = []

    def check(pairs: list[tuple[str, object]]) -> None:
        # The outermost object ends last.
        keys[:] = (key for key, _ in pairs)
        if len(set(keys)) < len(keys):
            raise _RepeatedKeyError

    try:
        # Not `int`, which refuses thousands of digits.
        json.loads(
            text, object_pairs_hook=check, parse_int=len, parse_float=len, parse_constant=len
        )
    except _RepeatedKeyError:
        return None
    return keys


def count_keys(json_value: object) -> int:
    """Count the keys of all objects in a parsed value."""
    if isinstance(json_value, dict):
        keys, inner = len(json_value), list(json_value.values())
    else:
        keys, inner = 0, json_value if isinstance(json_value, list) else []
    for each in inner:
        # Most are numbers and text: a call for each would take most of the time.
        if isinstance(each, _CONTAINERS):
            keys += count_keys(each)
    return keys


# --- Objects -------------------------------------------------------------------------------------


class Reader:
    """Takes values out of one JSON object."""

    __slots__ = ("rest", "where")

    def __init__(self, json_value: object, where: str) -> None:
        if not isinstance(json_value, dict):
            raise expected(where, "an object", json_value)
        self.rest: dict[str, object] = json_value.copy()
        self.where = where

    def take(self, key: str) -> object:
        """Return the value, None for null and for no key."""
        return self.rest.pop(key, None)

    def unknown(self) -> dict[str, object]:
        """Return the keys that were not taken, to be kept.

        Errors: `InvalidMetadataError` for what is nested too deeply to be printed.
        """
        for key, value in self.rest.items():
            if isinstance(value, dict | list) and not _is_printable(value, 0):
                raise InvalidMetadataError(
                    f"{self.where}: `{key}`: JSON nested deeper than {_DEPTH_MAX}"
                )
        return self.rest

    def integer(self, key: str, bits: int = 64) -> int:
        found = self.rest.pop(key, None)
        limit = _LIMITS[bits]
        # Not by `is_integer`: a large file has a hundred thousand of them.
        if type(found) is int and -limit <= found < limit:
            return found
        raise self._not_an_integer(key, found, bits)

    def optional_integer(self, key: str, bits: int = 64) -> int | None:
        found = self.rest.pop(key, None)
        if found is None:
            return None
        limit = _LIMITS[bits]
        if type(found) is int and -limit <= found < limit:
            return found
        raise self._not_an_integer(key, found, bits)

    def _not_an_integer(self, key: str, found: object, bits: int) -> InvalidMetadataError:
        wanted = f"an integer of {bits} bits" if type(found) is int else "an integer"
        return self.expected(key, wanted, found)

    def text(self, key: str) -> str:
        found = self.rest.pop(key, None)
        if type(found) is not str:
            raise self.expected(key, "a string", found)
        return found

    def uuid(self, key: str) -> UUID:
        """Take the uuid of a key. Errors: `InvalidMetadataError`."""
        text = self.text(key)
        try:
            return UUID(text)
        except ValueError as error:
            raise InvalidMetadataError(
                f"{self.where}: `{key}`: expected a uuid, found `{text[:100]}`"
            ) from error

    def optional_text(self, key: str) -> str | None:
        found = self.rest.pop(key, None)
        if found is not None and type(found) is not str:
            raise self.expected(key, "a string", found)
        return found

    def items(self, key: str) -> list[object]:
        """Return a list; a missing one is empty."""
        return self.optional_list(key) or []

    def optional_list(self, key: str) -> list[object] | None:
        found = self.rest.pop(key, None)
        if found is not None and not isinstance(found, list):
            raise self.expected(key, "a list", found)
        return found

    def integers(self, key: str, bits: int = 64) -> tuple[int, ...]:
        found = self.rest.pop(key, None)
        if not isinstance(found, list) or not all(is_integer(each, bits) for each in found):
            raise self.expected(key, f"a list of integers of {bits} bits", found)
        return tuple(found)

    def texts(self, key: str) -> tuple[str, ...]:
        found = self.rest.pop(key, None)
        if not isinstance(found, list) or any(type(each) is not str for each in found):
            raise self.expected(key, "a list of strings", found)
        return tuple(found)

    def optional_text_map(self, key: str) -> dict[str, str] | None:
        found = self.rest.pop(key, None)
        if found is None:
            return None
        if not isinstance(found, dict) or any(type(each) is not str for each in found.values()):
            raise self.expected(key, "an object of strings", found)
        return cast(dict[str, str], found)

    def expected(self, key: str, what: str, found: object) -> InvalidMetadataError:
        return expected(f"{self.where}: `{key}`", what, found)
