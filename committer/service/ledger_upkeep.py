"""Upkeep of a table's ledger: what is found to be due, until a commit has taken it along. No I/O.

Entries of one-shot producers go, and gaps of sequential ones are closed, once nothing of the
producer may come any more: nothing is in the inbox, nor in quarantine, nor on its way back. The
details of what has landed are forgotten once its request has left the inbox (`settled.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from committer.ledger_entry import ProducerEntry, parse_property_key, property_key
from committer.plan.commit import LedgerChores
from committer.plan.ledger import Ledger
from committer.plan.one_shots import may_be_forgotten
from committer.request import CommitRequest, producer_prefix
from committer.service.inbox_keys import folder_of
from committer.service.listed import Listed
from committer.service.settled import SettledRequests

# Gaps of empty micro-batches cost some bytes each; closing them costs listings.
GAPS_MAX = 8
# Longer than a publisher that does not hear from the inbox goes on sending one request.
ONE_SHOT_KEPT_S = 900.0


class LedgerUpkeep:
    """The upkeep of one table's ledger."""

    def __init__(self, table_uuid: UUID, settled: SettledRequests) -> None:
        self._table_uuid = table_uuid
        self.settled = settled
        # Since when the one-shot producers were seen to have nothing in the inbox. By our own
        # clock: a snapshot may expire within minutes, and a wall clock jump.
        self._gone_s: dict[str, float] = {}
        self._close_gaps: dict[str, int] = {}
        self._drop: set[str] = set()

    def may_find(self, ledger: Ledger, now_s: float, now_ms: int) -> bool:
        """Whether `find` may find something now, so that its folders have to be listed."""
        return bool(self.settled.sought) or any(
            (self._is_long_gone(key, now_s) and may_be_forgotten(entry, now_ms))
            or _has_many_gaps(entry)
            for key, entry in ledger.entries.items()
            if key not in ledger.frozen
        )

    def find(self, ledger: Ledger, listed: Listed, now_s: float, now_ms: int) -> None:
        """Look for what is due. All was listed later than the ledger was read, so that what landed
        in between is not judged by it.
        """
        self.settled.find(ledger, listed)
        known_s, self._gone_s = self._gone_s, {}
        drop, close_gaps = set(), {}
        for key, entry in ledger.entries.items():
            parsed = parse_property_key(key)
            # Nothing of a frozen producer is forgotten before an operator has decided.
            if parsed is None or key in ledger.frozen:
                continue
            if producer_prefix(self._table_uuid, parsed[0]) in listed:
                # Perhaps found to be due before it came.
                self._forget(key)
                continue
            if entry.one_shot:
                self._gone_s[key] = known_s.get(key, now_s)
                if self._is_long_gone(key, now_s) and may_be_forgotten(entry, now_ms):
                    drop.add(key)
            elif _has_many_gaps(entry):
                close_gaps[key] = entry.epochs.ranges[-1][0]
        self.add(LedgerChores(close_gaps, frozenset(drop)))

    def add(self, chores: LedgerChores) -> None:
        """The next commit takes them along."""
        self._close_gaps.update(chores.close_gaps)
        self._drop.update(chores.drop)

    def _forget(self, key: str) -> None:
        self._drop.discard(key)
        self._close_gaps.pop(key, None)

    def _is_long_gone(self, key: str, now_s: float) -> bool:
        return now_s - self._gone_s.get(key, now_s) >= ONE_SHOT_KEPT_S

    def chores(self, judged: Iterable[str], ledger: Ledger, landing: Iterable[str]) -> LedgerChores:
        """All that wait for a commit, but for producers of which something was refused just now:
        it may be replayed, and they have to be known then. `judged`: the inbox keys of those.
        `landing`: the properties that the commit writes anyway.
        """
        due = {*self._drop, *self._close_gaps}
        folders = {folder_of(key) for key in judged} if due else set()
        for key in due:
            parsed = parse_property_key(key)
            if parsed is not None and producer_prefix(self._table_uuid, parsed[0]) in folders:
                self._forget(key)
        settled = self.settled.among(ledger, landing)
        return LedgerChores(dict(self._close_gaps), frozenset(self._drop), settled)

    def landed(self, done: LedgerChores, requests: Iterable[CommitRequest], ledger: Ledger) -> None:
        """Forget those that are done, and those that were found before a producer went on. The
        commit has led to this ledger.
        """
        self.settled.landed(done.settled, ledger)
        self._drop -= done.drop
        self._drop -= {property_key(one.producer.id, one.branch) for one in requests}
        for key, below in done.close_gaps.items():
            if self._close_gaps.get(key) == below:
                del self._close_gaps[key]


def _has_many_gaps(entry: ProducerEntry) -> bool:
    return entry.sequential and len(entry.epochs.ranges) > GAPS_MAX
