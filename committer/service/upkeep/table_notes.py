"""The stored notes of one table's clean-up: its files to delete, which the tasks note before they
delete any. No decision is made here.
"""

from __future__ import annotations

from typing import TypeVar
from uuid import UUID

from committer.storage.inbox.journal import Entry, ExpiryEntry, GarbageEntry, Journal

E = TypeVar("E", ExpiryEntry, GarbageEntry)


class TableNotes:
    """The journal entries of one table."""

    def __init__(self, table_uuid: UUID, journal: Journal) -> None:
        self._table_uuid = table_uuid
        self._journal = journal
        self._unfinished: list[Entry] | None = None

    async def put(self, entry: Entry) -> None:
        """Return once the entry is durable."""
        await self._journal.put(entry)

    async def delete(self, entry: Entry) -> None:
        await self._journal.delete(entry)

    async def stored_ms(self, entry: Entry) -> int:
        """Return when the entry was written, by the storage's clock."""
        return await self._journal.stored_ms(entry)

    async def unfinished(self, kind: type[E]) -> list[E]:
        """Return the journal entries of one kind that another process left. Listed once for all
        kinds, after a commit of ours: no attempt of a process that is gone can land any more.
        """
        if self._unfinished is None:
            listed = self._journal.list(self._table_uuid)
            self._unfinished = [entry async for entry in listed]
        return [entry for entry in self._unfinished if isinstance(entry, kind)]
