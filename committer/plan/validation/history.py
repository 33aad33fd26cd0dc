"""The files that a branch has lost since a base, and that came: what its later snapshots list."""

from __future__ import annotations

from collections.abc import Iterable

from committer.iceberg.entry.data_file import ManifestEntry, ManifestEntryStatus
from committer.iceberg.manifest.manifest_list import ManifestFile, decode_manifest_list
from committer.iceberg.metadata.snapshot import Snapshot
from committer.plan.operations.head import Head, ObjectRange
from committer.plan.validation.since import Since

_ADDED, _DELETED = ManifestEntryStatus.ADDED, ManifestEntryStatus.DELETED


def removed_since(head: Head, since: Since) -> tuple[ManifestEntry, ...] | None:
    """Return the entries of files that were removed after the base, each with the snapshot that
    removed it; None where that history has expired. Errors: `MissingObjectsError`.
    """
    return tuple(removed_by(head, since.later)) if since.is_whole else None


def removed_by(head: Head, snapshots: Iterable[Snapshot]) -> list[ManifestEntry]:
    """Return the entries of files that these snapshots have removed. Errors: as above."""
    return _entries_of(head, snapshots, _DELETED)


def added_by(head: Head, snapshots: Iterable[Snapshot]) -> list[ManifestEntry]:
    """Return the entries of files that these snapshots have added. Errors: as above."""
    return _entries_of(head, snapshots, _ADDED)


def _entries_of(
    head: Head, snapshots: Iterable[Snapshot], status: ManifestEntryStatus
) -> list[ManifestEntry]:
    own = {one.snapshot_id: one.manifest_list for one in snapshots}
    lists = [ObjectRange(one) for one in own.values() if one is not None]
    rows: dict[str, ManifestFile] = {}
    for content in head.contents(lists):
        for row in decode_manifest_list(content).rows:
            count = row.deleted_files_count if status is _DELETED else row.added_files_count
            if row.added_snapshot_id in own and count != 0:
                rows[row.manifest_path] = row
    return [
        entry
        for entries in head.entries(list(rows.values()))
        for entry in entries
        if entry.status is status and entry.snapshot_id in own
    ]
