"""The table of the model: each version of its metadata, and what a reader sees by it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple


class Request(NamedTuple):
    """A commit request. `stands_for` is its fingerprint."""

    epoch: int
    attempt: int
    stands_for: int

    def __str__(self) -> str:
        return f"{self.epoch}{'abcdef'[self.attempt]}"

    def is_replay_of(self, other: Request) -> bool:
        """Return whether both are one micro-batch."""
        return (self.epoch, self.stands_for) == (other.epoch, other.stands_for)


Requests = frozenset[Request]
NONE: Requests = frozenset()


class Snapshot(NamedTuple):
    """`added` by it, and all `rows` that a reader of it sees. `snapshot_id` names its file, too.

    Its added rows are in its manifest list's header, as evidence.
    """

    snapshot_id: int
    sequence_number: int
    added: Requests
    rows: tuple[Request, ...]


class Entry(NamedTuple):
    """That a request has landed, and in which snapshot."""

    request: Request
    snapshot_id: int
    sequence_number: int


class Mark(NamedTuple):
    """How far a table has come: its newest snapshot, and the highest epoch in its ledger."""

    sequence_number: int = 0
    snapshot_id: int = 0
    epoch: int = -1

    def joined(self, other: Mark) -> Mark:
        return max(self, other)._replace(epoch=max(self.epoch, other.epoch))

    def contradicts(self, other: Mark) -> bool:
        """Return whether one number was given to two snapshots."""
        return self[0] == other[0] and self[1] != other[1]


@dataclass(frozen=True, eq=False)
class Metadata:
    """One version of the table metadata. `snapshots`: the retained ancestors of main, then main.
    `tombstones`: one-shot producers, by epoch, whose entries have gone; `horizon`: the latest of
    those whose tombstones have gone too.

    `base` and `batch` are those of the swap that would make it current. There is one object for
    each version, so that states compare fast, and what follows from it is found out once.
    """

    number: int
    snapshots: tuple[Snapshot, ...]
    last_sequence_number: int
    newest_snapshot_id: int
    ledger: frozenset[Entry]
    base: Metadata | None = None
    batch: Requests = NONE
    tombstones: frozenset[int] = frozenset()
    horizon: int = -1
    _reached: dict[Mark, bool] = field(default_factory=dict, init=False)
    _lost: dict[Mark, bool] = field(default_factory=dict, init=False)

    @property
    def head(self) -> Snapshot:
        return self.snapshots[-1]

    @cached_property
    def mark(self) -> Mark:
        highest = max(self._epochs, default=-1)
        return Mark(self.last_sequence_number, self.newest_snapshot_id, highest)

    def has_reached(self, mark: Mark) -> bool:
        """Return whether the metadata holds all that the mark knows, or is newer. A rolled back
        table does hold all of it.
        """
        found = self._reached.get(mark)
        if found is None:
            found = self._reached[mark] = self._find_reached(mark)
        return found

    def _find_reached(self, mark: Mark) -> bool:
        if self.last_sequence_number < mark.sequence_number:
            return False
        same = (one for one in self.snapshots if one.sequence_number == mark.sequence_number)
        if any(one.snapshot_id != mark.snapshot_id for one in same):
            return False
        return mark.epoch == -1 or mark.epoch in self._epochs

    def has_lost_entries(self, mark: Mark) -> bool:
        """Return whether manifest lists newer than a mark name epochs that the ledger lacks."""
        found = self._lost.get(mark)
        if found is None:
            found = self._lost[mark] = self._find_lost(mark)
        return found

    def _find_lost(self, mark: Mark) -> bool:
        newer = (one for one in self.snapshots if one.sequence_number > mark.sequence_number)
        landed = {request.epoch for one in newer for request in one.added}
        return not landed <= self._epochs

    @cached_property
    def files(self) -> frozenset[int]:
        """Return the files that a reader of it needs."""
        return frozenset((self.number, *(one.snapshot_id for one in self.snapshots)))

    @cached_property
    def is_rolled_back(self) -> bool:
        """Whether the newest entry's snapshot is gone although the history reaches back to it."""
        newest = self._newest_entry
        if newest is None or not self.is_beyond_history:
            return False
        return self.snapshots[0].sequence_number <= newest.sequence_number

    @cached_property
    def is_beyond_history(self) -> bool:
        """Whether the newest entry's snapshot is not in the retained history: expired, or lost."""
        newest = self._newest_entry
        return newest is not None and newest.snapshot_id not in {
            one.snapshot_id for one in self.snapshots
        }

    def has_entry(self, request: Request) -> bool:
        """Return whether the ledger knows of the request's epoch, or one-shot producer."""
        return request.epoch in self._epochs

    def may_have_forgotten(self, request: Request) -> bool:
        """Return whether a one-shot request without an entry may have landed. The order of the
        epochs is that of their nonces.
        """
        return request.epoch in self.tombstones or request.epoch <= self.horizon

    def proves(self, request: Request) -> bool:
        """Return whether a retained manifest list says that the request has landed."""
        return any(request in one.added for one in self.snapshots)

    @cached_property
    def _epochs(self) -> frozenset[int]:
        return frozenset(one.request.epoch for one in self.ledger)

    @cached_property
    def _newest_entry(self) -> Entry | None:
        return max(self.ledger, key=lambda one: one.sequence_number, default=None)


class Versions:
    """All versions that were ever made, one object for each."""

    def __init__(self) -> None:
        self._known: dict[object, Metadata] = {}

    def following(
        self,
        base: Metadata,
        name: object,
        *,
        batch: Requests = NONE,
        without: frozenset[Entry] = frozenset(),
        tombstones: frozenset[int] | None = None,
        horizon: int | None = None,
    ) -> Metadata:
        """Return the next version with one snapshot more; the same object for the same name."""
        known = self._known.get((base, name))
        if known is not None:
            return known
        number, sequence_number = len(self._known) + 1, base.last_sequence_number + 1
        rows = tuple(sorted((*base.head.rows, *batch)))
        head = Snapshot(number, sequence_number, batch, rows)
        entries = frozenset(Entry(one, number, sequence_number) for one in batch)
        made = Metadata(
            number,
            (*base.snapshots, head),
            sequence_number,
            number,
            (base.ledger | entries) - without,
            base,
            batch,
            base.tombstones if tombstones is None else tombstones,
            base.horizon if horizon is None else horizon,
        )
        return self._known.setdefault((base, name), made)

    def like(self, base: Metadata, name: object, other: Metadata) -> Metadata:
        """Return a foreign tool's version of the table; the same object for the same name."""
        known = self._known.get((base, name))
        if known is not None:
            return known
        made = Metadata(
            len(self._known) + 1,
            other.snapshots,
            other.last_sequence_number,
            other.newest_snapshot_id,
            other.ledger,
            base,
            tombstones=other.tombstones,
            horizon=other.horizon,
        )
        return self._known.setdefault((base, name), made)
