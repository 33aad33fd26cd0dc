"""Returns requests to the inbox that would fill the memory while they cannot land."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from committer.service.requests.circuit_breakers import CircuitBreakers
from committer.service.requests.deferred_doorbells import DeferredDoorbells
from committer.service.requests.inbox_keys import table_folder_of
from committer.service.requests.pending import Pending, Stage, Waiting
from committer.service.table.inflight_batch import BatchSelector
from committer.service.telemetry.lag import Delay, LagCause
from committer.service.telemetry.table_condition import TableCondition

# Of the deferred requests of all tables: less than half of the room of small requests
# (`committer_pool.py`), and of large ones, each of which counts thrice (`large_requests.py`).
HELD_BYTES_MAX = 72 * 1024 * 1024
# A returned request is read again so late, if no other of its producer is left in memory ...
PAUSE_S = 120.0
# ... or if others of it are: it is read again once those have ended.
PAUSE_BEHIND_S = 600.0


class HeldRoom:
    """The memory of the deferred requests of all tables of a process. A table may take as much as
    is left free, so that there is always room for one more.
    """

    def __init__(self) -> None:
        self._held_bytes: dict[object, int] = {}

    def surplus(self, table: object, held_bytes: int) -> int:
        """Note how much a table holds, and return how much of that it has to give up."""
        self._held_bytes[table] = held_bytes
        total_bytes = sum(self._held_bytes.values())
        # The table may fill the room that it gives up, too.
        return max(0, (held_bytes + total_bytes - HELD_BYTES_MAX + 1) // 2)

    def leave(self, table: object) -> None:
        self._held_bytes.pop(table, None)


@dataclass(eq=False)
class Eviction:
    """Evicts the requests of one table; their waiters wait with the deferred doorbells."""

    waiting: Waiting
    batches: BatchSelector
    breakers: CircuitBreakers
    deferred: DeferredDoorbells
    held_room: HeldRoom
    condition: TableCondition

    def __post_init__(self) -> None:
        # The folder of the table, from the first returned request on, until all are read again.
        self._table: str | None = None
        # The folders of producers with deferred requests both here and in the inbox.
        self._behind: set[str] = set()

    def evict_blocked(self, *, is_stuck: bool) -> None:
        """Evict the requests of producers with an open breaker, except those in flight: they may
        have landed, and their producers get a receipt. While the table is stuck, evict all large
        requests: other tables need the memory, and the ledger still answers for those that landed.
        Evict deferred requests beyond the table's share of memory.
        """
        if self.breakers.are_open:
            held = self.waiting.evict(lambda one: self.breakers.holds_request(one.sealed))
            self._return(held, LagCause.HELD)
        if is_stuck and self.waiting.has_large_ready:
            self.batches.drop()
            large = self.waiting.evict(lambda one: one.is_large)
            self._return(large, self.condition.lag_cause)
        if self.waiting.failing:
            self._evict_failing()
        else:
            self.held_room.leave(self)
        if self._table is not None:
            self._read_again(self._table)

    def _evict_failing(self) -> None:
        failing = self.waiting.failing
        surplus_bytes = self.held_room.surplus(self, sum(one.held_bytes for one in failing))
        if not surplus_bytes:
            return
        returned = [self.waiting.give_up(one) for one in _beyond(failing, surplus_bytes)]
        self._return(returned)
        kept = _producers(failing)
        for pending in returned:
            is_behind = pending.key.folder in kept
            self.deferred.pause(pending.key, PAUSE_BEHIND_S if is_behind else PAUSE_S)
            self._table = table_folder_of(pending.key)
        self._behind |= kept & _producers(returned)
        if returned:
            self.condition.returned()

    def _read_again(self, table: str) -> None:
        """End the pauses of producers of which no deferred request is left in memory."""
        done = self._behind - _producers(self.waiting.failing)
        if done:
            self.deferred.resume(done)
            self._behind -= done
        if not self.waiting.failing and not self.deferred.has_paused(table):
            self.condition.none_returned()
            self._table = None

    def _return(self, evicted: Iterable[Pending], cause: LagCause | None = None) -> None:
        for pending in evicted:
            delay = Delay(pending.durable_ms, cause or pending.lag_cause)
            self.deferred.add(pending.key, pending.waiters, delay)

    def close(self) -> None:
        """Leave the memory to others: the table's committer ends."""
        self.held_room.leave(self)
        self.condition.none_returned()


def _producers(requests: Iterable[Pending]) -> set[str]:
    """Return the folders of the requests' producers."""
    return {one.key.folder for one in requests}


def _beyond(failing: Collection[Pending], surplus_bytes: int) -> list[Pending]:
    """Return the deferred requests to give up, in order: the highest epochs of the producers that
    have the most. A lower one may be what the others wait for. One with a verdict stays: its record
    may be in quarantine.
    """
    ranks = Counter[str]()
    ranked: list[tuple[int, int, Pending]] = []
    for one in sorted(failing, key=lambda one: one.sealed.request.epoch):
        ranks[one.key.folder] += 1
        ranked.append((ranks[one.key.folder], one.sealed.request.epoch, one))
    ranked.sort(key=lambda each: each[:2], reverse=True)
    beyond: list[Pending] = []
    for *_, one in ranked:
        if surplus_bytes <= 0:
            break
        if one.stage is Stage.DEFERRED and one.suspicion is None:
            surplus_bytes -= one.held_bytes
            beyond.append(one)
    return beyond[::-1]
