"""Returns requests to the inbox that would fill the memory while they cannot land."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from committer.service.requests.circuit_breakers import CircuitBreakers
from committer.service.requests.deferred_doorbells import DeferredDoorbells
from committer.service.requests.pending import Pending, Waiting
from committer.service.table.inflight_batch import BatchSelector


@dataclass(eq=False)
class Eviction:
    """Evicts the requests of one table; their waiters wait with the deferred doorbells."""

    waiting: Waiting
    batches: BatchSelector
    breakers: CircuitBreakers
    deferred: DeferredDoorbells

    def evict_blocked(self, *, is_stuck: bool) -> None:
        """Evict the requests of producers with an open breaker, except those in flight: they may
        have landed, and their producers get a receipt. While the table is stuck, evict all large
        requests: other tables need the memory, and the ledger still answers for those that landed.
        """
        if self.breakers.are_open:
            self._return(self.waiting.evict(lambda one: self.breakers.holds_request(one.sealed)))
        if is_stuck and self.waiting.has_large_ready:
            self.batches.drop()
            self._return(self.waiting.evict(lambda one: one.is_large))

    def _return(self, evicted: Iterable[Pending]) -> None:
        for pending in evicted:
            self.deferred.add(pending.key, pending.waiters)
