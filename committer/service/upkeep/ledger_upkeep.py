"""Finds due clean-up of a table's ledger, and keeps it until a commit includes it. No I/O.

Entries of one-shot producers are dropped, and gaps of sequential ones are closed, once the producer
has no request in the inbox, in quarantine or in a replay. The details of a landed request are
forgotten once it has left the inbox (`settled_requests.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import islice
from uuid import UUID

from committer.ledger_entry import ProducerEntry, parse_property_key
from committer.plan.commit.landed_commit import LandedCommit
from committer.plan.commit.ledger_changes import LedgerCleanup
from committer.plan.ledger.ledger import Ledger
from committer.plan.ledger.one_shots import may_be_forgotten
from committer.ports.queue import shard_of
from committer.request.request_key import producer_prefix
from committer.request.table_identifier import TableIdentifier
from committer.service.requests.inbox_keys import folder_of
from committer.service.requests.listing import Listed
from committer.service.requests.settled_requests import SettledRequests

# Gaps of empty micro-batches cost some bytes each; closing them costs listings.
GAPS_MAX = 8
# Longer than a publisher that does not hear from the inbox goes on sending one request.
ONE_SHOT_KEPT_S = 900.0
# Of one table that rests, and of all, some hundred bytes each. Those of more are found anew.
RESTED_MAX = 1_000
ALL_RESTED_MAX = 10_000


@dataclass(frozen=True, slots=True)
class GoneProducer:
    """A one-shot producer that has had nothing in the inbox since `since_s`, while the ledger has
    said `entry` of it. By our own clock: a snapshot may expire within minutes, and a wall clock
    jump.
    """

    entry: ProducerEntry
    since_s: float


class LedgerUpkeep:
    """The upkeep of one table's ledger. `before`: that of the table's committer before this one, if
    it ended idle.
    """

    def __init__(
        self,
        table_uuid: UUID,
        settled: SettledRequests,
        before: LedgerUpkeep | None = None,
        recently_quarantined: Iterable[str] = (),
    ) -> None:
        """Continue the upkeep of `before`.
        `recently_quarantined`: inbox keys, at any time those of the last minutes."""
        self._table_uuid = table_uuid
        self._recently_quarantined = recently_quarantined
        self.settled = settled
        gone = before._gone.items() if before else ()
        due = before._due.items() if before else ()
        self._gone: dict[str, GoneProducer] = dict(islice(gone, RESTED_MAX))
        # With what the ledger said of them when they were found.
        self._due: dict[str, ProducerEntry] = dict(islice(due, RESTED_MAX))
        self._close_gaps: dict[str, int] = {}

    @property
    def gone_count(self) -> int:
        """How many one-shot producers are known to have nothing in the inbox."""
        return len(self._gone)

    def may_find(self, ledger: Ledger, now_s: float, now_ms: int) -> bool:
        """Return whether `find` may find something now, so that its folders have to be listed."""
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
        known, self._gone, self._due = self._gone, {}, {}
        for key, entry in ledger.entries.items():
            parsed = parse_property_key(key)
            # Nothing of a frozen producer is forgotten before an operator has decided.
            if parsed is None or key in ledger.frozen:
                continue
            if producer_prefix(self._table_uuid, parsed[0]) in listed:
                # Perhaps found to be due before it came.
                self._close_gaps.pop(key, None)
                continue
            if entry.one_shot:
                self._gone[key] = _still_gone(known.get(key), entry, now_s)
                if self._is_long_gone(key, now_s) and may_be_forgotten(entry, now_ms):
                    self.found_due(key, entry)
            elif _has_many_gaps(entry):
                self._close_gaps[key] = entry.epochs.ranges[-1][0]

    def found_due(self, key: str, entry: ProducerEntry) -> None:
        """Note an entry that the next commit drops, if it is the same then."""
        self._due[key] = entry

    def _is_long_gone(self, key: str, now_s: float) -> bool:
        gone = self._gone.get(key)
        return gone is not None and now_s - gone.since_s >= ONE_SHOT_KEPT_S

    def cleanup(self, ledger: Ledger, landing: Iterable[str]) -> LedgerCleanup:
        """Return all clean-up that waits for a commit.

        It leaves out producers with a request that was quarantined just now: a replay of that
        request still needs their entries. `landing`: the properties that the commit writes anyway.
        """
        due = {*self._due, *self._close_gaps}
        folders = {folder_of(key) for key in self._recently_quarantined} if due else set()
        for key in due:
            parsed = parse_property_key(key)
            if parsed is not None and producer_prefix(self._table_uuid, parsed[0]) in folders:
                self._due.pop(key, None)
                self._close_gaps.pop(key, None)
        settled = self.settled.among(ledger, landing)
        # A producer that has landed again since, perhaps by another process, may have a request in
        # the inbox.
        drop = (key for key, entry in self._due.items() if ledger.entries.get(key) == entry)
        return LedgerCleanup(dict(self._close_gaps), frozenset(drop), settled)

    def landed(self, commit: LandedCommit) -> None:
        """Forget those that the commit has included."""
        done = commit.plan.cleanup
        self.settled.landed(done.settled, commit.state.ledger)
        for key in done.drop:
            self._due.pop(key, None)
        for key, below in done.close_gaps.items():
            if self._close_gaps.get(key) == below:
                del self._close_gaps[key]


class IdleTableUpkeep:
    """The ledger upkeep of idle tables: one-shot producers that may be dropped. A committer ends
    sooner than their entries are due, so without this the entries of a table with one request an
    hour would stay for ever.
    """

    def __init__(self) -> None:
        self._tables: dict[tuple[TableIdentifier, UUID], LedgerUpkeep] = {}

    def ended(self, identifier: TableIdentifier, table_uuid: UUID, upkeep: LedgerUpkeep) -> None:
        """Keep the upkeep of a table whose committer ended idle."""
        if upkeep.gone_count == 0:
            return
        rested = LedgerUpkeep(table_uuid, SettledRequests(table_uuid), upkeep)
        self._tables[identifier, table_uuid] = rested
        count = sum(one.gone_count for one in self._tables.values())
        while count > ALL_RESTED_MAX:
            count -= self._tables.pop(next(iter(self._tables))).gone_count

    def take(self, identifier: TableIdentifier, table_uuid: UUID) -> LedgerUpkeep | None:
        """Return the state from which the table's next committer continues."""
        return self._tables.pop((identifier, table_uuid), None)

    def left(self, shards: Collection[int]) -> None:
        """Forget the tables of shards that another committer owns now."""
        for key in [key for key in self._tables if shard_of(key[1]) in shards]:
            del self._tables[key]


def _still_gone(known: GoneProducer | None, entry: ProducerEntry, now_s: float) -> GoneProducer:
    """Return since when a producer is gone. One that has landed again, even within two looks, has
    not been gone for longer than since now.
    """
    return known if known is not None and known.entry == entry else GoneProducer(entry, now_s)


def _has_many_gaps(entry: ProducerEntry) -> bool:
    return entry.sequential and len(entry.epochs.ranges) > GAPS_MAX
