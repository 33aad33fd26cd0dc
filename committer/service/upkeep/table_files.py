"""Shared by the tasks that delete files of a table: its current state, reads and deletes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID

from committer.errors import InvalidMetadataError
from committer.plan.cleanup.reachability import Reading
from committer.plan.commit.attempt_log import AttemptLog
from committer.ports.catalog import Catalog
from committer.ports.pointer_swap import LoadedTable
from committer.ports.storage import Storage
from committer.ports.world import World
from committer.request.table_identifier import TableIdentifier
from committer.service.requests.inbox_keys import parsed
from committer.service.requests.reading import answer
from committer.service.telemetry.metrics import Metrics, UpkeepKind
from committer.storage.inbox.journal import Entry, ExpiryEntry, GarbageEntry, Journal
from committer.storage.inbox.replays import Replays

DELETES_AT_ONCE = 1_000

T = TypeVar("T")
E = TypeVar("E", ExpiryEntry, GarbageEntry)


@dataclass(frozen=True, slots=True)
class UpkeepParts:
    """The parts that upkeep shares in a process. `is_default`: expire unless a table says no.
    `clustering`: held by the one table whose manifests are in memory to be clustered.
    """

    catalog: Catalog
    storage: Storage
    journal: Journal
    replays: Replays
    world: World
    metrics: Metrics
    is_default: bool
    clustering: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(eq=False)
class TableFiles:
    """The files of one table, and the attempts on it, with its state as this process knows it."""

    table: TableIdentifier
    table_uuid: UUID
    parts: UpkeepParts
    attempts: AttemptLog

    def __post_init__(self) -> None:
        self._unfinished: list[Entry] | None = None

    async def latest(self) -> LoadedTable:
        """Return the table that the pointer names now; read only if it is not our own last commit.

        Errors: `NoSuchTableError`, `InvalidMetadataError` for another table of this name: our table
        may exist under another name and need its files. Those of the catalog and the storage.
        """
        location = await self.parts.catalog.current_location(self.table)
        known = self.attempts.state
        if known is not None and known.table.metadata_location == location:
            return known.table
        table = await self.parts.catalog.load(self.table)
        if table.metadata.table_uuid != self.table_uuid:
            raise InvalidMetadataError(f"{self.table} is another table now: nothing is deleted")
        return table

    async def wanted_attempts(self) -> set[str]:
        """Return the attempts whose data files a durable request names:
        it may land yet, or again."""
        durable = self.parts.replays.all_durable(self.table_uuid)
        keys = [parsed(key) async for _, key in durable]
        return {str(key.attempt) for key in keys if key is not None}

    async def answer(self, reading: Reading[T]) -> T:
        """Answer what a search asks for."""
        return await answer(reading, self.parts.storage)

    async def delete(self, locations: Sequence[str]) -> None:
        """Delete these; absent ones count as deleted."""
        if not locations:
            return
        await self.parts.storage.delete(locations)
        self.parts.metrics.upkeep_done(self.table, UpkeepKind.DELETE_FILES, len(locations))

    async def unfinished(self, kind: type[E]) -> list[E]:
        """Return the journal entries of one kind that another process left. Listed once for all
        kinds, after a commit of ours: no attempt of a process that is gone can land any more.
        """
        if self._unfinished is None:
            listed = self.parts.journal.list(self.table_uuid)
            self._unfinished = [entry async for entry in listed]
        return [entry for entry in self._unfinished if isinstance(entry, kind)]


def delete_batches(locations: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the batches that are deleted at once."""
    for start in range(0, len(locations), DELETES_AT_ONCE):
        yield locations[start : start + DELETES_AT_ONCE]
