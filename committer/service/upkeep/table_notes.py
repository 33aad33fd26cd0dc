"""The stored notes of one table's clean-up: its files to delete, which the tasks note before they
delete any, and the replays of its requests.
"""

from __future__ import annotations

from typing import TypeVar
from uuid import UUID

from committer.service.requests.inbox_keys import parsed
from committer.storage.inbox.journal import Entry, ExpiryEntry, GarbageEntry, Journal
from committer.storage.inbox.replays import Replays

E = TypeVar("E", ExpiryEntry, GarbageEntry)


class TableNotes:
    """The journal entries and the replays of one table."""

    def __init__(self, table_uuid: UUID, journal: Journal, replays: Replays) -> None:
        self._table_uuid = table_uuid
        self._journal = journal
        self._replays = replays
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

    async def wanted_attempts(self) -> set[str]:
        """Return the attempts whose data files a durable request names:
        it may land yet, or again."""
        durable = self._replays.all_durable(self._table_uuid)
        keys = [parsed(key) async for _, key in durable]
        return {str(key.attempt) for key in keys if key is not None}
