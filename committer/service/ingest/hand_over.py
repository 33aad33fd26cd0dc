"""Ends the work on shards that this committer gives up or has lost."""

from __future__ import annotations

from dataclasses import dataclass

from committer.service.ingest.committer_pool import TableCommitters
from committer.service.ingest.inbox_reader import UnreadObjects
from committer.service.requests.circuit_breakers import CircuitBreakers
from committer.service.requests.deferred_doorbells import DeferredDoorbells
from committer.service.requests.large_requests import LargeRequests
from committer.service.settle.settler import Settler
from committer.service.telemetry.lag import Delay, LagCause


@dataclass(eq=False, kw_only=True)
class TableHandOver:
    """Stops the tables of released shards and forgets what waits for them in memory: the next owner
    takes it from the inbox. Their circuit breakers end: the next owner finds in quarantine which
    producers failed.
    """

    tables: TableCommitters
    large: LargeRequests
    deferred: DeferredDoorbells
    unread: UnreadObjects
    breakers: CircuitBreakers
    settler: Settler

    async def release_shards(self, shards: frozenset[int]) -> None:
        """Return when nothing of these shards is under way any more."""
        self.large.release_shards(shards)
        self.unread.release_shards(shards)
        stopped = await self.tables.stop_tables(shards)
        self.breakers.release_shards(shards)
        self.deferred.release_shards(shards)
        for pending in (one for table in stopped for one in table.waiting.all()):
            # Its doorbell may have come by the shard of another table, which stays.
            if pending.sealed.request.transaction is not None:
                delay = Delay(pending.durable_ms, LagCause.HELD)
                self.deferred.add(pending.key, pending.waiters, delay)
        if stopped:
            # So that landed requests are not delivered to the next owner.
            await self.settler.flush()
