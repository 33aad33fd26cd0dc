"""JSON of values that stay the same from one metadata file to the next, printed once.

A schema that was read from a file also keeps what this version does not know of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

import orjson

from committer.errors import InvalidMetadataError

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class PrintedOnce:
    """A value that keeps its own JSON, which is printed once for as long as it lives."""

    _json: bytes | None = field(default=None, init=False, compare=False, repr=False)

    def _to_json(self) -> dict[str, object]:
        """Return the JSON form, ready for a JSON printer."""
        raise NotImplementedError

    @property
    def json_bytes(self) -> bytes:
        printed = self._json
        if printed is None:
            printed = print_to_keep(self._to_json())
            object.__setattr__(self, "_json", printed)
        return printed


class Fragments:
    """Printed values by identity. Each value is held, so that its identity is never given again.

    Shared by all metadata that follow from one file: it only ever grows by schemas, specs and sort
    orders, of which a table has few. Of each long list it holds the last form.
    """

    __slots__ = ("_lists", "_printed", "_sources")

    def __init__(self) -> None:
        self._printed: dict[int, tuple[object, bytes]] = {}
        self._sources: dict[int, tuple[object, object]] = {}
        self._lists: dict[str, tuple[tuple[object, ...], bytes]] = {}

    def remember_source(self, value: object, json_value: object) -> None:
        """Keep the JSON that a value was read from, for what the value itself does not hold."""
        self._sources[id(value)] = (value, json_value)

    def print(self, value: _Value, print_value: Callable[[_Value], object]) -> bytes:
        """Print the JSON of a value, with unknown keys of its source behind the known ones.

        Errors: `InvalidMetadataError` for those that are nested too deeply.
        """
        known = self._printed.get(id(value))
        if known is None:
            printed = print_value(value)
            if id(value) in self._sources:
                printed = _with_unknown_keys(printed, self._sources[id(value)][1])
            known = self._printed[id(value)] = (value, _print(printed))
        return known[1]

    def print_list(self, name: str, values: tuple[PrintedOnce, ...]) -> orjson.Fragment:
        """Print the JSON of a list that mostly grows at its end: what was joined before is kept."""
        known, printed = self._lists.get(name, ((), b"[]"))
        if values[: len(known)] != known:
            known, printed = (), b"[]"
        if len(values) > len(known):
            added = b",".join([value.json_bytes for value in values[len(known) :]])
            # Megabytes, with every commit: copied once.
            before = memoryview(printed)[:-1]
            printed = b"".join((before, b"," if known else b"", added, b"]"))
        self._lists[name] = (values, printed)
        return orjson.Fragment(printed)


def print_to_keep(json_value: object) -> bytes:
    """Print JSON in as many bytes as it takes: orjson's own result keeps at least 4 KiB.

    Errors: `TypeError`, as `orjson.dumps`.
    """
    return bytes(memoryview(orjson.dumps(json_value)))


def _print(json_value: object) -> bytes:
    try:
        return print_to_keep(json_value)
    except TypeError as error:
        raise InvalidMetadataError(
            "schema, partition spec or sort order: unknown keys nested too deeply to be printed"
        ) from error


def json_list(printed: Iterable[bytes]) -> orjson.Fragment:
    """Join values that are printed already to a JSON list."""
    return orjson.Fragment(b"[" + b",".join(printed) + b"]")


def _with_unknown_keys(printed: object, source: object) -> object:
    if isinstance(printed, dict) and isinstance(source, dict):
        kept = {
            key: _with_unknown_keys(value, source[key]) if key in source else value
            for key, value in printed.items()
        }
        return {**kept, **{key: value for key, value in source.items() if key not in printed}}
    if isinstance(printed, list) and isinstance(source, list) and len(printed) == len(source):
        return [_with_unknown_keys(*pair) for pair in zip(printed, source, strict=True)]
    return printed
