"""Ends the work on shards that this committer gives up or has lost."""

from __future__ import annotations

from dataclasses import dataclass

from committer.service.ingest.committer_pool import TableCommitters
from committer.service.requests.deferred_doorbells import DeferredDoorbells
from committer.service.requests.large_requests import LargeRequests
from committer.service.settle.settler import Settler


@dataclass(eq=False, kw_only=True)
class TableHandOver:
    """Stops the tables of released shards and forgets what waits for them in memory: the next owner
    takes it from the inbox.
    """

    tables: TableCommitters
    large: LargeRequests
    deferred: DeferredDoorbells
    settler: Settler

    async def release_shards(self, shards: frozenset[int]) -> None:
        """Return when nothing of these shards is under way any more."""
        self.large.release_shards(shards)
        had_some = await self.tables.stop_tables(shards)
        self.deferred.release_shards(shards)
        if had_some:
            # So that landed requests are not delivered to the next owner.
            await self.settler.flush()
