"""A catalog with its committer's inbox, as one of the two sides of a migration, and the names of
tables that wait there for it. The steps are in `table_migration`.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from committer.ports.catalog import Catalog
from committer.ports.storage import Storage
from committer.request.table_identifier import TableIdentifier
from committer.service.settle.high_water_mark_store import HighWaterMarkStore
from committer.storage.inbox.inbox import Inbox
from committer.storage.inbox.moves import Moves

_FENCED = "__frazil_migrating_"
_FENCED_NAME = re.compile(rf"(.*){_FENCED}[0-9a-f]{{8}}")


@dataclass(frozen=True, slots=True)
class CatalogSide:
    """A catalog and its committer's inbox. `storage`: of the files of tables, perhaps by
    credentials that the catalog vends; `own`: of the inbox; `root`: where that is."""

    name: str
    catalog: Catalog
    storage: Storage
    own: Storage
    root: str

    @property
    def inbox(self) -> Inbox:
        return Inbox(self.own, self.root)

    @property
    def moves(self) -> Moves:
        return Moves(self.own, self.root)

    @property
    def high_water_marks(self) -> HighWaterMarkStore:
        return HighWaterMarkStore.at(self.own, self.root)


def fenced_identifier(identifier: TableIdentifier, target: str) -> TableIdentifier:
    """Return the name under which a table waits in its old catalog to move to the catalog
    `target`."""
    digest = hashlib.sha256(target.encode()).hexdigest()[:8]
    return TableIdentifier(identifier.namespace, f"{identifier.name}{_FENCED}{digest}")


def is_fenced(identifier: TableIdentifier, *, of: str = "") -> bool:
    """Return whether a table, one called `of` if that is given, waits under this name to move to
    another catalog.
    """
    found = _FENCED_NAME.fullmatch(identifier.name)
    return found is not None and of in ("", found[1])
