"""Chooses the vended credential of a location. No I/O and no clock here.

A catalog may vend one credential for a whole bucket, and another table may lie in the same bucket.
So a prefix counts only for the folders of its own table, unless it names a place beside them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from committer.errors import FrazilError
from committer.iceberg.values.locations import ComparableLocation, comparable_location
from committer.ports.table_credentials import Renew, VendedCredential
from committer.request.table_identifier import TableIdentifier

# `s3` and `s3://` are for every bucket.
_WHOLE_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)(?::/*)?")
_Scope = tuple[str, str]


@dataclass(slots=True, eq=False)
class VendedTable:
    """The credentials of one table, and how to get new ones."""

    identifier: TableIdentifier
    folders: tuple[str, ...]
    credentials: tuple[VendedCredential, ...]
    renew: Renew
    kept_ms: int
    asked_s: float
    """When the catalog was last asked, by the event loop's clock, as the wall clock may jump.
    `kept_ms` stays as it is where the catalog repeats its credentials."""
    failure: FrazilError | None = None
    """Why the last renewal failed."""
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    scopes: dict[_Scope, VendedCredential] = field(default_factory=dict)

    def __post_init__(self) -> None:
        folders = [comparable_location(folder) for folder in self.folders]
        # The longest prefix of a folder is the last to be entered.
        for credential in sorted(self.credentials, key=lambda one: len(one.prefix)):
            for scope in _scopes(credential.prefix, folders):
                self.scopes[scope] = credential


@dataclass(frozen=True, slots=True, eq=False)
class Cover:
    """The credential for a location, and the table that it was vended for."""

    table: VendedTable
    credential: VendedCredential


class VendedScopes:
    """The credentials of all tables, by the folders that they are for."""

    def __init__(self) -> None:
        self._covers: dict[_Scope, Cover] = {}
        self._stores: dict[str, int] = {}

    def add(self, table: VendedTable) -> None:
        for scope, credential in table.scopes.items():
            if scope not in self._covers:
                self._stores[scope[0]] = self._stores.get(scope[0], 0) + 1
            self._covers[scope] = Cover(table, credential)

    def remove(self, table: VendedTable) -> None:
        for scope in table.scopes:
            found = self._covers.get(scope)
            if found is not None and found.table is table:
                del self._covers[scope]
                self._stores[scope[0]] -= 1

    def find(self, location: str) -> Cover | None:
        """Return the credential of the innermost folder around the location."""
        if not self._covers:
            return None
        place = comparable_location(location)
        if not self._stores.get(place.store):
            return None
        path = place.path.rstrip("/")
        while True:
            if (found := self._covers.get((place.store, path))) is not None:
                return found
            if not path:
                return None
            path = path.rpartition("/")[0]


def _scopes(prefix: str, folders: Iterable[ComparableLocation]) -> list[_Scope]:
    """Return the table's folders below the prefix; the prefix itself where there is none."""
    if whole := _WHOLE_SCHEME.fullmatch(prefix):
        store = comparable_location(f"{whole[1]}://").store
        return [_scope(folder) for folder in folders if folder.store.startswith(store)]
    if not prefix:
        return [_scope(folder) for folder in folders]
    place = comparable_location(prefix)
    below = [
        _scope(folder)
        for folder in folders
        if folder.store == place.store and folder.path.startswith(place.path)
    ]
    return below or [_scope(place)]


def _scope(place: ComparableLocation) -> _Scope:
    return place.store, place.path.rstrip("/")
