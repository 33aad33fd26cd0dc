"""The files that a branch has lost since a base, and that came: what its later snapshots list.

What is known of a snapshot is not read: our own recent ones tell, also once they have expired.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from committer.iceberg.entry.data_file import ManifestEntry, ManifestEntryStatus
from committer.iceberg.manifest.manifest_list import ManifestFile, decode_manifest_list
from committer.iceberg.metadata.snapshot import Snapshot
from committer.plan.operations.change_index import SnapshotChanges
from committer.plan.operations.head import Head, ObjectRange
from committer.plan.validation.since import Since

_ADDED, _DELETED = ManifestEntryStatus.ADDED, ManifestEntryStatus.DELETED


def removed_since(head: Head, since: Since) -> tuple[ManifestEntry, ...] | None:
    """Return the entries of files that were removed after the base, each with the snapshot that
    removed it; None where that history has expired, and nothing is known of it. Errors:
    `MissingObjectsError`.
    """
    expired = () if since.is_whole else _removed_by_expired(head, since)
    return None if expired is None else (*removed_by(head, since.later), *expired)


def _removed_by_expired(head: Head, since: Since) -> tuple[ManifestEntry, ...] | None:
    """Walk from the oldest snapshot that is retained to the base. None: the chain is broken, or
    numbers do not tell where it ends (format version 1)."""
    if since.sequence_number <= 0 or not since.later:
        return None
    removed: list[ManifestEntry] = []
    parent_id = since.later[-1].parent_snapshot_id
    while parent_id is not None:
        known = head.changes.get(parent_id)
        if known is None:
            return None
        if known.sequence_number <= since.sequence_number:
            return tuple(removed)
        removed += known.removed
        parent_id = known.parent_id
    return None


def removed_by(head: Head, snapshots: Iterable[Snapshot]) -> list[ManifestEntry]:
    """Return the entries of files that these snapshots have removed. Errors: as above."""
    known, others = _known(head, snapshots)
    removed = (entry for one in known.values() for entry in one.removed)
    return [*removed, *_entries(head, _created(head, others), others.keys(), _DELETED)]


def added_by(head: Head, snapshots: Iterable[Snapshot]) -> list[ManifestEntry]:
    """Return the entries of files that these snapshots have added. Errors: as above."""
    known, others = _known(head, snapshots)
    created = [row for one in known.values() for row in one.created]
    ids = {*known, *others}
    return _entries(head, [*created, *_created(head, others)], ids, _ADDED)


def _known(
    head: Head, snapshots: Iterable[Snapshot]
) -> tuple[dict[int, SnapshotChanges], dict[int, Snapshot]]:
    known: dict[int, SnapshotChanges] = {}
    others: dict[int, Snapshot] = {}
    for one in snapshots:
        changes = head.changes.get(one.snapshot_id)
        if changes is None:
            others[one.snapshot_id] = one
        else:
            known[one.snapshot_id] = changes
    return known, others


def _created(head: Head, snapshots: Mapping[int, Snapshot]) -> list[ManifestFile]:
    """Return the manifests that these snapshots have made, by their lists."""
    lists = [one.manifest_list for one in snapshots.values()]
    contents = head.contents([ObjectRange(one) for one in lists if one is not None])
    rows = (row for content in contents for row in decode_manifest_list(content).rows)
    return [row for row in rows if row.added_snapshot_id in snapshots]


def _entries(
    head: Head,
    created: Iterable[ManifestFile],
    snapshot_ids: Iterable[int],
    status: ManifestEntryStatus,
) -> list[ManifestEntry]:
    """Return the entries of this status in these manifests, each of which is read once."""
    ids = frozenset(snapshot_ids)
    rows: dict[str, ManifestFile] = {}
    for row in created:
        count = row.deleted_files_count if status is _DELETED else row.added_files_count
        if count != 0:
            rows[row.manifest_path] = row
    return [
        entry
        for entries in head.entries(list(rows.values()))
        for entry in entries
        if entry.status is status and entry.snapshot_id in ids
    ]
