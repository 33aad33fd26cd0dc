"""Finds entries of ledgers that are due to be shortened or deleted, by the scans of the inbox.

The entry of a request is needed while the request may be found again: in the inbox or in
quarantine.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

from committer.ports.world import World
from committer.service.ingest.committer_pool import TableCommitters
from committer.service.requests.listing import Folders, Listed
from committer.storage.inbox.inbox import Quarantine, skips_of


@dataclass(eq=False, kw_only=True)
class LedgerCleanup:
    """Tells the ledger upkeep of each table what a scan has seen."""

    tables: TableCommitters
    quarantine: Quarantine
    world: World

    @asynccontextmanager
    async def during_scan(self) -> AsyncIterator[Folders]:
        """Scan the inbox inside, and add the folders of all producers. Errors: the storage's."""
        states = [(one, one.state.ledger) for one in self.tables.all if one.state]
        now_s, now_ms = self.world.monotonic_s(), self.world.now_ms()
        may_find = [
            one for one, ledger in states if one.ledger_upkeep.may_find(ledger, now_s, now_ms)
        ]
        uuids = [one.table_uuid for one in may_find]
        sought = {key for one in may_find for key in one.ledger_upkeep.settled.sought}
        listed = Listed(Folders(sought))
        # Before the inbox, as a replay moves a request, and after it, as a committer does that
        # refuses one: none is missed on its way.
        await self._list_quarantined(uuids, listed.quarantined)
        yield listed.waiting
        await self._list_quarantined(uuids, listed.quarantined)
        for table, ledger in states:
            table.ledger_upkeep.find(ledger, listed, now_s, now_ms)

    async def _list_quarantined(self, tables: Sequence[UUID], folders: Folders) -> None:
        """Add those of producers that have something in quarantine."""
        for table_uuid in tables:
            skips = skips_of(table_uuid)
            async for found in self.quarantine.list(table_uuid, skips=skips):
                folders.add(found.key)
            folders.cannot_see(skips, self.quarantine)
