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


def _size(one: SnapshotChanges) -> int:
    return len(one.created) + len(one.removed)
