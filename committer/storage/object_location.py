"""Parses locations in object stores: the bucket, and the key, which is taken literally: nothing in
it is decoded, joined or dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from committer.errors import NotFoundError, SettingsError

# Characters that XML cannot hold: such a key could be written, but neither listed nor deleted.
_UNSPEAKABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class ObjectLocation:
    """A bucket, and a key in it or, of a folder, the start of its keys."""

    bucket: str
    key: str


@dataclass(frozen=True, slots=True)
class LocationForm:
    """The locations of one store. `pattern` has the groups `bucket` and `key`; `problem` says why
    no object can have a key that is not empty and does not end with a slash."""

    pattern: re.Pattern[str]
    example: str
    problem: Callable[[str], str | None]

    def parse_object(self, location: str) -> ObjectLocation:
        """Parse an object's location. Errors: `SettingsError` for one that no object can have."""
        found = self._split(location)
        if problem := self._problem(found.key):
            raise SettingsError(f"location {location!r}: {problem}")
        return found

    def parse_existing(self, location: str) -> ObjectLocation:
        """Parse a location for reads, as `parse_object`:
        `NotFoundError` for a key that no object can have."""
        found = self._split(location)
        if problem := self._problem(found.key):
            raise NotFoundError(f"location {location!r}: {problem}")
        return found

    def parse_folder(self, location: str) -> ObjectLocation:
        """Parse a folder's location: the keys below it start with `key`,
        which is empty or ends with a slash."""
        found = self._split(location)
        key = f"{found.key}/" if found.key and not found.key.endswith("/") else found.key
        if problem := self._problem(f"{key}-"):
            raise SettingsError(f"location {location!r}: {problem}")
        return ObjectLocation(found.bucket, key)

    def _split(self, location: str) -> ObjectLocation:
        match = self.pattern.fullmatch(location)
        if match is None:
            raise SettingsError(f"location {location!r}: expected `{self.example}`")
        return ObjectLocation(match["bucket"], match["key"] or "")

    def _problem(self, key: str) -> str | None:
        if not key or key.endswith("/"):
            return f"expected an object, `{self.example}`"
        if _UNSPEAKABLE.search(key):
            return "no object can have this key"
        return self.problem(key)


def too_long(key: str, bytes_max: int) -> str | None:
    """Return why a key is too long; None if it is not."""
    return f"a key has at most {bytes_max} bytes" if len(key.encode()) > bytes_max else None
