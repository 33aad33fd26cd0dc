"""The state of producers in the ledger, and the effect of an operator's decisions on their entries.

Values in, values out: reading what a decision needs, and the swap that makes it true for every
committer at once, are `service/admin/producer_admin.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import takewhile
from uuid import UUID

from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.ledger_entry import (
    ACCEPTED_MAX,
    MAIN,
    EpochRanges,
    Freeze,
    ProducerEntry,
    parse_property_key,
    property_key,
)
from committer.plan.ledger.ledger import Ledger, history_of
from committer.reason import Reason

# The reasons of the ledger alone: an operator can overrule these and no others.
ACCEPTABLE = frozenset(
    (Reason.EPOCH_CONTENT_DIFFERS, Reason.EPOCH_LANDED_UNPROVEN, Reason.PRODUCER_FROZEN)
)


class ProducerState(StrEnum):
    """`frozen`: by an operator. `rolled-back`: by its history. `unreadable`: by its entry."""

    ACTIVE = "active"
    FROZEN = "frozen"
    ROLLED_BACK = "rolled-back"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class ProducerName:
    """A producer on one branch."""

    producer: str
    branch: str = MAIN

    @property
    def key(self) -> str:
        return property_key(self.producer, self.branch)


@dataclass(frozen=True, slots=True)
class ProducerStatus:
    """One producer in the ledger of a table. `why`: of a frozen one. No entry: it is unreadable."""

    name: ProducerName
    state: ProducerState
    entry: ProducerEntry | None
    why: str | None


def standings(ledger: Ledger) -> list[ProducerStatus]:
    """Return all producers that the ledger knows, by branch and name."""
    names = [
        ProducerName(*parsed)
        for key in {*ledger.entries, *ledger.frozen}
        if (parsed := parse_property_key(key)) is not None
    ]
    return [standing(ledger, name) for name in sorted(names, key=lambda n: (n.branch, n.producer))]


def standing(ledger: Ledger, name: ProducerName) -> ProducerStatus:
    """Return how a producer stands; one that the ledger does not know is active, with no entry."""
    entry, why = ledger.entries.get(name.key), ledger.frozen.get(name.key)
    if why is None:
        state = ProducerState.ACTIVE
    elif entry is None:
        state = ProducerState.UNREADABLE
    elif name.key in ledger.broken:
        state = ProducerState.ROLLED_BACK
    else:
        state = ProducerState.FROZEN
    return ProducerStatus(name, state, entry, why)


@dataclass(frozen=True, slots=True)
class RolledBack:
    """Snapshots that were behind the head of a producer's branch and are not any more, newest
    first, of one rollback after another. `is_whole`: they reach back to the history that is left,
    or to the table's beginning.
    """

    snapshots: tuple[Snapshot, ...] = ()
    is_whole: bool = True


def rolled_back(metadata: TableMetadata, name: ProducerName, entry: ProducerEntry) -> RolledBack:
    """Return the epochs that a rollback lost since the producer's last commit, and those that
    landed by permission in between and that a later rollback lost.
    """
    reached = set(history_of(metadata, name.branch).snapshot_ids)
    first = _lost_from(metadata, _last_snapshot_id(entry), reached)
    reached.update(one.snapshot_id for one in first.snapshots)
    later = _lost_from(metadata, _newest_snapshot_id(entry), reached)
    return RolledBack(first.snapshots + later.snapshots, first.is_whole and later.is_whole)


def _lost_from(metadata: TableMetadata, last: int | None, reached: Container[int]) -> RolledBack:
    found: list[Snapshot] = []
    while last is not None and last not in reached:
        snapshot = metadata.snapshot_by_id(last)
        if snapshot is None or snapshot in found:
            return RolledBack(tuple(found), is_whole=False)
        found.append(snapshot)
        last = snapshot.parent_snapshot_id
    # Others than the table's first may have had a parent that expired, and was forgotten.
    is_whole = last is not None or not found or found[-1].sequence_number == 1
    return RolledBack(tuple(found), is_whole)


def landed_since(
    metadata: TableMetadata, name: ProducerName, newest_lost: Sequence[Snapshot]
) -> tuple[Snapshot, ...]:
    """Return the snapshots behind the head of a producer's branch that are newer than the newest
    lost one, if any: epochs that landed in them by permission are present again. New snapshots
    stand at the end.
    """
    kept = history_of(metadata, name.branch).snapshot_ids
    lost = {one.snapshot_id for one in newest_lost}
    if not lost:
        return ()
    younger = takewhile(lambda one: one.snapshot_id not in lost, reversed(metadata.snapshots))
    return tuple(one for one in younger if one.snapshot_id in kept)


def _last_snapshot_id(entry: ProducerEntry) -> int | None:
    if entry.frozen is not None and entry.frozen.lost_snapshot_id is not None:
        return entry.frozen.lost_snapshot_id
    return _newest_snapshot_id(entry)


def _newest_snapshot_id(entry: ProducerEntry) -> int | None:
    newest = max(entry.latest, key=lambda landed: landed.sequence_number, default=None)
    return newest.snapshot_id if newest else None


def epochs_of(numbers: Collection[int]) -> EpochRanges:
    """Return a set of epochs as ranges, without a limit."""
    return EpochRanges(tuple(_runs(sorted(set(numbers)))))


def epochs_text(epochs: EpochRanges) -> str:
    """Print `epoch 7`, `epochs 2-3,7`."""
    return f"{'epoch' if str(epochs).isdigit() else 'epochs'} {epochs}"


def _runs(ascending: list[int]) -> Iterator[tuple[int, int]]:
    start = 0
    for position, number in enumerate(ascending):
        if position + 1 == len(ascending) or ascending[position + 1] != number + 1:
            yield ascending[start], number
            start = position + 1


def frozen(entry: ProducerEntry, why: str, now_ms: int) -> ProducerEntry:
    """Freeze an entry for an operator; one that is frozen stays as it is."""
    return entry if entry.frozen else replace(entry, frozen=Freeze(why, now_ms))


def thawed(entry: ProducerEntry, left: frozenset[int] | None, again: EpochRanges) -> ProducerEntry:
    """Return the entry once its producer may continue from the remaining history.

    `left`: the snapshots of that history, where one was lost. `again`: epochs that may land once
    more. The fingerprints of other lost epochs are forgotten: one that arrives again is
    quarantined, neither added nor acknowledged.
    """
    latest = tuple(
        landed
        for landed in entry.latest
        if landed.epoch not in again and (left is None or landed.snapshot_id in left)
    )
    return replace(entry, epochs=entry.epochs.without(again), latest=latest, frozen=None)


def with_accepted(
    entry: ProducerEntry, wanted: Collection[tuple[int, UUID]], waiting: Collection[str]
) -> tuple[ProducerEntry, frozenset[tuple[int, UUID]]]:
    """Return the entry that permits these (epoch, attempt) pairs to land,
    and the pairs for which it has no room.

    `waiting`: attempts that are still in the inbox or in quarantine: others need no leave any more.
    """
    kept = [one for one in entry.accepted if str(one[1]) in waiting and one not in wanted]
    room = max(0, ACCEPTED_MAX - len(kept))
    taken = sorted(wanted)[:room]
    accepted = (*kept, *taken)
    return replace(entry, accepted=accepted), frozenset(wanted) - set(taken)


def marked_lost(entry: ProducerEntry, why: str, now_ms: int) -> ProducerEntry:
    """Freeze for good a producer that its history froze: epochs that land by permission must not
    look like a history that is whole.
    """
    if entry.frozen is not None and entry.frozen.lost_snapshot_id is not None:
        return entry
    return replace(entry, frozen=Freeze(why, now_ms, _last_snapshot_id(entry)))
