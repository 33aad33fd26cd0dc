"""I23: no durable request stands still while its catalog, storage and inbox answer.

A table of which a request may land must have one leave the inbox within `STANDSTILL_S` of the last
fault and of the one before; each request must leave it within that bound and the time that those of
its tables take which wait with it, a commit for each. The bound counts from the latest of these:

* the last fault: of a call, a server or a process, or a commit of another engine, which costs a
  conflict;
* the moment when the request was durable; of a transaction, when the last of its requests was;
* the last moment when an operator, a lower epoch of an ordered producer or an open circuit breaker
  held it back.

It covers what the design lets a request wait for after a fault: the lease of a committer that died,
and then the pause after a fault that is no passing one. The reconciler, which finds a request whose
doorbell is lost, and the back-off after conflicts and passing faults take less than either. If a
request of the transaction is missing, was refused or discarded, or is held back,
`transaction_wait_s` comes on top: a committer that does not have that table waits so long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from committer.request.transaction import Transaction
from committer.service.requests.pending import FAULT_PAUSE_S
from tests.simulation.invariants import Invariants
from tests.simulation.process import Process, Stage
from tests.simulation.world import START_MS

# The longest that `Replica.restart_otherwise` chooses.
_LEASE_S_MAX = 25.0
STANDSTILL_S = _LEASE_S_MAX + FAULT_PAUSE_S
# On the wire, for each commit.
_COMMIT_CALLS_S = 0.5


@dataclass(slots=True)
class Liveness:
    """Looks at the inbox now and then. `interval_s`: the longest between two commits of a table.
    `longest_s`: the longest wait so far, without what the bound allows for other requests.
    """

    invariants: Invariants
    stage: Stage
    committers: Sequence[Process]
    interval_s: float
    transaction_wait_s: float
    longest_s: float = 0.0
    longest: str = ""
    _fault_s: float = 0.0
    _faults: int = 0
    _waiting: set[str] = field(default_factory=set)
    # The most that waited for a table since the last fault; when a request has last left the inbox
    # of a table; and when a request was last held back.
    _ahead: Counter[UUID] = field(default_factory=Counter)
    _progress_s: dict[UUID, float] = field(default_factory=dict)
    _held_back_s: dict[str, float] = field(default_factory=dict)
    _violated: set[str] = field(default_factory=set)

    def disturbed(self) -> None:
        """Note a fault: all bounds begin anew."""
        self._fault_s = self.stage.loop.time()
        self._ahead.clear()

    def look(self) -> None:
        """Check every request that waits."""
        faults = len(self.stage.faults.fired) + self.invariants.foreign_commits
        is_away = self.stage.outages or self.stage.late or self._are_down()
        if is_away or faults != self._faults:
            self._faults = faults
            self.disturbed()
            return
        waiting, now_s = set(self.invariants.waiting()), self.stage.loop.time()
        for key in self._waiting - waiting:
            self._progress_s[_table_of(key)] = now_s
        self._waiting = waiting
        for table_uuid, count in Counter(map(_table_of, waiting)).items():
            self._ahead[table_uuid] = max(self._ahead[table_uuid], count)
        for key in sorted(waiting):
            self._check(key, now_s)

    def _are_down(self) -> bool:
        loop = self.stage.loop
        return any(not one.is_running or loop.is_paused(one.name) for one in self.committers)

    def _check(self, key: str, now_s: float) -> None:
        if self.invariants.may_wait(key) or self.invariants.waits_for_lower(key):
            self._held_back_s[key] = now_s
            return
        transaction = self.invariants.transaction_of(key)
        since_s = max(
            self._fault_s,
            self._held_back_s.get(key, 0.0),
            *map(self._durable_s, self.invariants.members_of(key)),
        )
        tables = self._tables(key, transaction)
        progress_s = max(self._progress_s.get(table, 0.0) for table in tables)
        idle_s = now_s - max(since_s, progress_s)
        allowed_s = sum(self._ahead[table] for table in tables) * self._commit_s()
        if transaction and not self.invariants.may_land(key, transaction):
            idle_s -= self.transaction_wait_s
            allowed_s += self.transaction_wait_s
        if idle_s > self.longest_s:
            self.longest_s, self.longest = idle_s, key
        waited_s = now_s - since_s
        if max(idle_s, waited_s - allowed_s) > STANDSTILL_S and key not in self._violated:
            self._violated.add(key)
            self.stage.history.violated(
                "I23",
                f"{key} has waited for {waited_s:.0f} s, and its tables have stood still for"
                f" {idle_s:.0f} s",
            )

    def _durable_s(self, key: str) -> float:
        return (self.invariants.durable_ms(key) - START_MS) / 1000

    def _tables(self, key: str, transaction: Transaction | None) -> Sequence[UUID]:
        if transaction is None:
            return (_table_of(key),)
        return [table_uuid for _, table_uuid in transaction.members]

    def _commit_s(self) -> float:
        return self.interval_s + _COMMIT_CALLS_S * self.stage.slowness


def _table_of(key: str) -> UUID:
    return UUID(key[:36])
