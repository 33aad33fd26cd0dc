"""Finds the entries that are newer than the state that a client has read.

A file is newer if its file sequence number is above the base's. Snapshots of format version 1 have
the number 0: there the snapshots between the base and the head tell.
Source: docs/reference/iceberg-notes.md 6.6; sequence numbers in the specification.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from committer.iceberg.entry.data_file import ManifestContent, ManifestEntry
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.metadata.snapshot import Snapshot
from committer.plan.operations.change import Base
from committer.plan.operations.conflict import Conflict, ConflictCode
from committer.plan.operations.head import Head


@dataclass(frozen=True, slots=True)
class Since:
    """The history of a branch after a base.

    `later`: its retained snapshots, newest first; `is_whole`: all of them are retained, down to the
    base. `is_all`: the base was an empty table, so everything is newer.
    """

    sequence_number: int
    later: tuple[Snapshot, ...]
    is_whole: bool
    is_all: bool = False
    ids: frozenset[int] = field(default=frozenset(), init=False)

    def __post_init__(self) -> None:
        ids = frozenset(one.snapshot_id for one in self.later)
        object.__setattr__(self, "ids", ids)

    def is_new(self, entry: ManifestEntry) -> bool:
        """Return whether a file was added after the base."""
        number = entry.file_sequence_number
        if number is None:
            # Old writers left it out where they carried a file over.
            number = entry.sequence_number or 0
        return self.is_all or number > self.sequence_number or entry.snapshot_id in self.ids

    def may_hold_new(self, row: ManifestFile) -> bool:
        """Return whether a manifest may list files that were added after the base."""
        is_later = row.sequence_number > self.sequence_number
        return self.is_all or is_later or row.added_snapshot_id in self.ids

    def rows(self, head: Head, content: ManifestContent) -> Iterator[ManifestFile]:
        """Yield the manifests of a head that may list files which were added after the base."""
        return filter(self.may_hold_new, head.live_rows(content))


def since_base(base: Base, head: Head) -> Since | Conflict:
    """Return what came after a base, which has an id or a number, or why that cannot be told.

    The branch's history is walked no farther than to the base, if that is retained.
    """
    refused = never_was(base, head)
    if refused is not None:
        return refused
    number = base.sequence_number
    if base.snapshot_id is None or (base.snapshot_id == 0 and not number):
        return _by_number(number or 0, head)
    return _by_id(base.snapshot_id, number, head)


def never_was(base: Base, head: Head) -> Conflict | None:
    """Return the conflict of a base of which the table's metadata alone tells that it never was."""
    number = base.sequence_number
    if number is not None and number > head.metadata.last_sequence_number:
        return _no_ancestor(
            f"its base has the sequence number {number}, and the last one of the table is"
            f" {head.metadata.last_sequence_number}: there was no such state"
        )
    known = None if base.snapshot_id is None else head.metadata.snapshot_by_id(base.snapshot_id)
    if known is None or number in (None, known.sequence_number):
        return None
    return _no_ancestor(
        f"its base, snapshot {known.snapshot_id}, has the sequence number"
        f" {known.sequence_number}, expected {number}"
    )


def _by_number(number: int, head: Head) -> Since | Conflict:
    if number == 0:
        return Since(0, tuple(head.ancestors()), is_whole=True, is_all=True)
    later, first_older = _newer_than(number, head)
    if (first_older or later) and (first_older is None or first_older.sequence_number == number):
        return Since(number, later, _is_whole(number, later, first_older))
    return _no_ancestor(
        f"its base, of sequence number {number}, is not in the history of branch"
        f" `{head.branch}`: it was rolled back, or is of another branch"
    )


def _by_id(snapshot_id: int, number: int | None, head: Head) -> Since | Conflict:
    known = head.metadata.snapshot_by_id(snapshot_id)
    if known is not None:
        later = _down_to(snapshot_id, head)
        if later is not None:
            return Since(known.sequence_number, later, is_whole=True)
        number = known.sequence_number
    return _by_absent_id(snapshot_id, number, head, is_retained=known is not None)


def _by_absent_id(
    snapshot_id: int, number: int | None, head: Head, *, is_retained: bool
) -> Since | Conflict:
    """Return what came after a base that is not in the branch's retained history. `is_retained`:
    the table still has it, for another branch."""
    chain = tuple(head.ancestors())
    last = chain[-1] if chain else None
    if not is_retained and last is not None and last.parent_snapshot_id == snapshot_id:
        # Its own number is lower, and that of whatever it has.
        return Since(max(last.sequence_number - 1, 0), chain, is_whole=True)
    if number is None:
        return _expired(
            f"its base, snapshot {snapshot_id}, has expired or never was: a request that waits"
            " for long names `base-sequence-number` too"
        )
    if last is None or (last.sequence_number <= number and _tells_ancestors(number, last)):
        return _no_ancestor(
            f"its base, snapshot {snapshot_id}, is not in the history of branch `{head.branch}`:"
            " it was rolled back, or is of another branch"
        )
    if number == 0:
        return _expired(f"the history since its base, snapshot {snapshot_id}, has expired")
    # The head alone answers: numbers only rise along a branch.
    later, first_older = _newer_than(number, head)
    return Since(number, later, _is_whole(number, later, first_older))


def _down_to(snapshot_id: int, head: Head) -> tuple[Snapshot, ...] | None:
    """Return the branch's snapshots that are newer than this one, or None if it is not of them."""
    later: list[Snapshot] = []
    for one in head.ancestors():
        if one.snapshot_id == snapshot_id:
            return tuple(later)
        later.append(one)
    return None


def _newer_than(number: int, head: Head) -> tuple[tuple[Snapshot, ...], Snapshot | None]:
    """Return the branch's snapshots above a sequence number, and the first one behind them."""
    later: list[Snapshot] = []
    for one in head.ancestors():
        if one.sequence_number <= number:
            return tuple(later), one
        later.append(one)
    return tuple(later), None


def _is_whole(number: int, later: Sequence[Snapshot], first_older: Snapshot | None) -> bool:
    """Return whether no snapshot of the branch is missing between a base and the head: one is
    retained that is not newer than the base, or the next one after it."""
    return first_older is not None or later[-1].sequence_number <= number + 1


def _tells_ancestors(number: int, last: Snapshot) -> bool:
    """Return whether a snapshot of this number would be in a history that goes back to `last`, were
    it an ancestor."""
    return number > 0 or last.parent_snapshot_id is None


def _no_ancestor(message: str) -> Conflict:
    return Conflict(ConflictCode.NO_ANCESTOR, f"{message}: run the job again on the current table")


def _expired(message: str) -> Conflict:
    return Conflict(ConflictCode.HISTORY, f"{message}: run the job again on the current table")
