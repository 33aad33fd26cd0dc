"""Ends the work on shards that this committer gives up or has lost."""

from __future__ import annotations

from committer.service.ingest.committer_pool import TableCommitters
from committer.service.requests.deferred_doorbells import DeferredDoorbells
from committer.service.requests.large_requests import LargeRequests
from committer.service.settle.settler import Settler


class TableHandOver:
    """Stops the tables of released shards and forgets what waits for them in memory: the next owner
    takes it from the inbox.
    """

    def __init__(
        self,
        *,
        tables: TableCommitters,
        large: LargeRequests,
        deferred: DeferredDoorbells,
        settler: Settler,
    ) -> None:
        self._tables = tables
        self._large = large
        self._deferred = deferred
        self._settler = settler

    async def release_shards(self, shards: frozenset[int]) -> None:
        """Return when nothing of these shards is under way any more."""
        self._large.release_shards(shards)
        had_some = await self._tables.stop_tables(shards)
        self._deferred.release_shards(shards)
        if had_some:
            # So that landed requests are not delivered to the next owner.
            await self._settler.flush()
