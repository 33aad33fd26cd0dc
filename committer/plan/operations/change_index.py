"""The changes of this committer's own recent snapshots, known without reading them. The index
outlives the expiry of the snapshots, and is bounded.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from committer.iceberg.entry.data_file import ManifestEntry
from committer.iceberg.manifest.manifest_list import ManifestFile

SNAPSHOTS_MAX = 5_000
ENTRIES_MAX = 50_000


@dataclass(frozen=True, slots=True)
class SnapshotChanges:
    """The changes of a snapshot: its new manifests, and the files that it has removed, as DELETED
    entries with all that they inherit."""

    parent_id: int | None
    sequence_number: int
    created: tuple[ManifestFile, ...] = ()
    removed: tuple[ManifestEntry, ...] = ()


Changes = Mapping[int, SnapshotChanges]


class ChangeIndex(Changes):
    """By snapshot id, the newest ones."""

    def __init__(self, snapshots_max: int = SNAPSHOTS_MAX, entries_max: int = ENTRIES_MAX) -> None:
        self._snapshots_max = snapshots_max
        self._entries_max = entries_max
        self._known: OrderedDict[int, SnapshotChanges] = OrderedDict()
        self._entries = 0

    def __getitem__(self, snapshot_id: int) -> SnapshotChanges:
        return self._known[snapshot_id]

    def __iter__(self) -> Iterator[int]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def note(self, changes: Changes) -> None:
        """Add the snapshots of a commit, in their order; the oldest ones go."""
        for snapshot_id, one in changes.items():
            self._known[snapshot_id] = one
            self._entries += _size(one)
        while len(self._known) > self._snapshots_max or self._entries > self._entries_max:
            self._entries -= _size(self._known.popitem(last=False)[1])


class ChangesAfter(Changes):
    """The changes of a swap's earlier steps, in front of those that are known from before: these
    are not copied, however many they are."""

    def __init__(self, before: Changes, steps: Mapping[int, SnapshotChanges]) -> None:
        self._before, self._steps = before, steps

    def __getitem__(self, snapshot_id: int) -> SnapshotChanges:
        found = self._steps.get(snapshot_id)
        return self._before[snapshot_id] if found is None else found

    def __iter__(self) -> Iterator[int]:
        yield from self._before
        yield from self._steps

    def __len__(self) -> int:
        return len(self._before) + len(self._steps)

    def followed_by(self, snapshot_id: int, step: SnapshotChanges) -> ChangesAfter:
        """Return these changes with those of one step more."""
        return ChangesAfter(self._before, {**self._steps, snapshot_id: step})


def changes_after(before: Changes, snapshot_id: int, step: SnapshotChanges) -> Changes:
    """Return what is known once a step has added this snapshot."""
    known = before if isinstance(before, ChangesAfter) else ChangesAfter(before, {})
    return known.followed_by(snapshot_id, step)


def _size(one: SnapshotChanges) -> int:
    return len(one.created) + len(one.removed)
