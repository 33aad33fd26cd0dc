"""Returns requests to the inbox that would fill the memory while they cannot land."""

from __future__ import annotations

from collections.abc import Iterable

from committer.service.requests.circuit_breakers import CircuitBreakers
from committer.service.requests.deferred_doorbells import DeferredDoorbells
from committer.service.requests.pending import Pending, Waiting
from committer.service.table.inflight_batch import BatchSelector


class Eviction:
    """Evicts the requests of one table; their waiters wait with the deferred doorbells."""

    def __init__(
        self,
        waiting: Waiting,
        batches: BatchSelector,
        breakers: CircuitBreakers,
        deferred: DeferredDoorbells,
    ) -> None:
        self._waiting = waiting
        self._batches = batches
        self._breakers = breakers
        self._deferred = deferred

    def evict_blocked(self, *, is_stuck: bool) -> None:
        """Evict the requests of producers with an open breaker, except those in flight: they may
        have landed, and their producers get a receipt. While the table is stuck, evict all large
        requests: other tables need the memory, and the ledger still answers for those that landed.
        """
        if self._breakers.are_open:
            self._return(self._waiting.evict(lambda one: self._breakers.holds_request(one.sealed)))
        if is_stuck and self._waiting.has_large_ready:
            self._batches.drop()
            self._return(self._waiting.evict(lambda one: one.is_large))

    def _return(self, evicted: Iterable[Pending]) -> None:
        for pending in evicted:
            self._deferred.add(pending.key, pending.waiters)
