"""The changes of the ledger that are part of a commit: what its requests have landed, and upkeep.

It decides nothing about producers: that is `ledger`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.updates.metadata_update import RemoveProperties, SetProperties, Update
from committer.ledger_entry import (
    NO_SNAPSHOT,
    Landed,
    ProducerEntry,
    parse_property_key,
    print_entry,
    property_key,
    short_fingerprint,
)
from committer.plan.batch.batch import Batch
from committer.plan.ledger.ledger import Ledger
from committer.plan.ledger.one_shots import (
    OneShots,
    may_be_forgotten,
    one_shots_key,
    print_one_shots,
)
from committer.plan.ledger.state import TableState
from committer.request.attempt import nonce_ms
from committer.request.commit_request import CommitRequest


@dataclass(frozen=True, slots=True)
class LedgerCleanup:
    """Upkeep of the ledger that travels with the next commit, by property key.

    `close_gaps`: the landed epoch below which nothing of the producer is outstanding any more.
    `drop`: entries of one-shot producers whose request has left the inbox. `settled`: attempts that
    have landed and left the inbox, so that their details may be forgotten.
    """

    close_gaps: Mapping[str, int] = field(default_factory=dict)
    drop: frozenset[str] = frozenset()
    settled: Mapping[str, frozenset[UUID]] = field(default_factory=dict)

    def of_branch(self, branch: str) -> LedgerCleanup:
        """Return the clean-up of one branch: a catalog may check the head of the branch that a
        commit moves, and nothing else (REST), so an entry of another branch may be older than it
        looks.
        """
        return LedgerCleanup(
            {key: below for key, below in self.close_gaps.items() if _is_of(key, branch)},
            frozenset(key for key in self.drop if _is_of(key, branch)),
            {key: attempts for key, attempts in self.settled.items() if _is_of(key, branch)},
        )


def _is_of(key: str, branch: str) -> bool:
    parsed = parse_property_key(key)
    return parsed is not None and parsed[1] == branch


@dataclass(frozen=True, slots=True)
class LedgerChanges:
    """The properties to set and to remove, and the ledger after that."""

    properties: Mapping[str, str]
    dropped: frozenset[str]
    ledger: Ledger

    @property
    def updates(self) -> tuple[Update, ...]:
        removed = (RemoveProperties(tuple(sorted(self.dropped))),) if self.dropped else ()
        return (SetProperties(self.properties), *removed)


def landed_at(request: CommitRequest, snapshot: Snapshot | None) -> Landed:
    """Return what a request lands as. `snapshot`: its own, or the head of its branch where it has
    none."""
    return Landed(
        request.epoch,
        request.fingerprint.kind,
        short_fingerprint(request.fingerprint.value),
        request.attempt,
        NO_SNAPSHOT if snapshot is None else snapshot.snapshot_id,
        0 if snapshot is None else snapshot.sequence_number,
    )


def change_ledger(
    state: TableState,
    batch: Batch,
    landed: Mapping[str, Landed],
    cleanup: LedgerCleanup,
    now_ms: int,
) -> LedgerChanges:
    """Return the ledger's changes by a commit. `landed` is keyed by inbox key."""
    entries, dropped = _entries(state.ledger, batch, landed, cleanup, now_ms)
    properties = {key: print_entry(entry) for key, entry in entries.items()}
    ledger = state.ledger.changed(entries, dropped)
    if dropped:
        one_shots = _with_forgotten(state, batch.branch, dropped, now_ms)
        properties[one_shots_key(batch.branch)] = print_one_shots(one_shots)
        ledger = replace(ledger, one_shots={**ledger.one_shots, batch.branch: one_shots})
    return LedgerChanges(properties, dropped, ledger)


def _entries(
    ledger: Ledger,
    batch: Batch,
    landed: Mapping[str, Landed],
    cleanup: LedgerCleanup,
    now_ms: int,
) -> tuple[dict[str, ProducerEntry], frozenset[str]]:
    """Return the entries to write and to drop. A producer of this batch is never dropped by it, and
    of one that was frozen since the clean-up was found nothing is forgotten.
    """
    entries: dict[str, ProducerEntry] = {}
    for key, requests in _by_producer(batch).items():
        entry = ledger.entry_of(requests[0])
        entry = entry.with_promises(
            sequential=all(one.producer.sequential for one in requests),
            one_shot_ms=_latest_one_shot_ms(requests),
        )
        for one in requests:
            entry = entry.with_name(one.producer.name)
        entries[key] = entry.with_landed(*(landed[one.inbox_key] for one in requests))
    for key, attempts in cleanup.settled.items():
        known = entries.get(key) or ledger.entries.get(key)
        shorter = known.without_settled(attempts) if known else None
        if shorter is not None and shorter is not known and key not in ledger.frozen:
            entries[key] = shorter
    for key, below in cleanup.close_gaps.items():
        known = entries.get(key) or ledger.entries.get(key)
        if known is not None and key not in ledger.frozen:
            entries[key] = known.without_gaps(below)
    gone = (key for key in cleanup.drop if key in ledger.entries and key not in ledger.frozen)
    dropped = {key for key in gone if may_be_forgotten(ledger.entries[key], now_ms)}
    one_shots = ledger.one_shots.get(batch.branch)
    if one_shots is not None and one_shots.problem is not None:
        dropped.clear()  # they would leave no tombstones
    return entries, frozenset(dropped - entries.keys())


def _by_producer(batch: Batch) -> dict[str, list[CommitRequest]]:
    """Return the requests of a batch by the ledger's property of their producer."""
    found: dict[str, list[CommitRequest]] = {}
    for checked in batch.requests:
        request = checked.request
        found.setdefault(property_key(request.producer.id, request.branch), []).append(request)
    return found


def _latest_one_shot_ms(requests: Sequence[CommitRequest]) -> int | None:
    """Return the latest nonce time, if all of them promise that their producer never publishes
    again."""
    if not all(one.producer.one_shot for one in requests):
        return None
    return max(nonce_ms(one.nonce) or 0 for one in requests)


def _with_forgotten(
    state: TableState, branch: str, dropped: frozenset[str], now_ms: int
) -> OneShots:
    """Return the forgotten one-shot producers once these entries are removed too."""
    known = state.ledger.one_shots.get(branch) or OneShots(state.metadata.require_uuid())
    latest_ms = {
        parsed[0]: state.ledger.entries[key].one_shot_ms or 0
        for key in dropped
        if (parsed := parse_property_key(key)) is not None
    }
    return known.with_forgotten(latest_ms, now_ms)
