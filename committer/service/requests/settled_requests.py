"""Tracks which landed requests have left the inbox. No I/O.

The ledger remembers what has landed until then, so that a request which a crash has left behind is
known whatever becomes of the table's history. Most often the committer that landed it has deleted
it as well, and need not look; what another one has left behind, a listing of the inbox tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from committer.ledger_entry import LATEST_MIN, parse_property_key
from committer.plan.ledger.ledger import Ledger
from committer.request.request_key import inbox_key
from committer.service.requests.inbox_keys import InboxKey
from committer.service.requests.listing import Listed

# Beyond this all are forgotten, and the inbox is asked: of some no entry is left that needs them.
GONE_MAX = 100_000


class SettledRequests:
    """Those of one table, by their attempts."""

    def __init__(self, table_uuid: UUID) -> None:
        self._table_uuid = table_uuid
        self._gone: set[UUID] = set()
        # Attempts that the ledger remembers beyond the last epochs, by inbox key.
        self._in_doubt: dict[str, UUID] = {}
        self._shorter: dict[str, None] = {}

    def deleted(self, attempt: UUID) -> None:
        """Note that an attempt's request has left the inbox."""
        if len(self._gone) >= GONE_MAX:
            self._gone.clear()
        self._gone.add(attempt)

    @property
    def sought(self) -> frozenset[str]:
        """Keys of which the inbox is to tell whether they are there: what a committer that ended
        has left behind, or another one has deleted.
        """
        return frozenset(
            key for key, attempt in self._in_doubt.items() if attempt not in self._gone
        )

    def find(self, ledger: Ledger, listed: Listed) -> None:
        """Look which entries may become shorter. All was listed later than the ledger was read.

        A sought key that is not listed has left the inbox: unless it is in quarantine, another
        committer knew that it has landed.
        """
        for key in self.sought:
            if listed.has_left(key):
                self.deleted(self._in_doubt[key])
        self._in_doubt, self._shorter = {}, {}
        for key, entry in ledger.entries.items():
            for one in entry.latest[LATEST_MIN:]:
                if one.attempt in self._gone:
                    self._shorter[key] = None
                elif (named := parse_property_key(key)) is not None:
                    name = inbox_key(self._table_uuid, named[0], one.epoch, one.attempt)
                    self._in_doubt[name] = one.attempt

    def among(self, ledger: Ledger, landing: Iterable[str]) -> Mapping[str, frozenset[UUID]]:
        """Return the settled attempts of entries that may become shorter, and of those that a
        commit writes anyway (`landing`), by the ledger's property.
        """
        found: dict[str, frozenset[UUID]] = {}
        for key in (*landing, *self._shorter):
            entry = ledger.entries.get(key)
            attempts = frozenset(one.attempt for one in entry.latest) if entry else frozenset()
            if settled := attempts & self._gone:
                found[key] = settled
        return found

    def landed(self, done: Mapping[str, frozenset[UUID]], ledger: Ledger) -> None:
        """Forget settled attempts that a landed commit took along,
        as far as this ledger forgot them."""
        for key, attempts in done.items():
            self._shorter.pop(key, None)
            entry = ledger.entries.get(key)
            self._gone -= attempts - {one.attempt for one in (entry.latest if entry else ())}


class SettledByTable:
    """Those of all tables that this process works on."""

    def __init__(self) -> None:
        self._tables: dict[UUID, SettledRequests] = {}

    def of(self, table_uuid: UUID) -> SettledRequests:
        """Return a table's settled requests, which learn of deletions from now on."""
        return self._tables.setdefault(table_uuid, SettledRequests(table_uuid))

    def deleted(self, keys: Iterable[InboxKey]) -> None:
        """Note that these keys have left the inbox."""
        for key in keys:
            table = self._tables.get(key.parts.table_uuid) if key.parts else None
            if table is not None and key.parts is not None:
                table.deleted(key.parts.attempt)

    def forget(self, table_uuid: UUID) -> None:
        """Forget a table that no committer here works on any more."""
        self._tables.pop(table_uuid, None)
