"""The files that a branch has lost since a base: those that its later snapshots list as deleted."""

from __future__ import annotations

from committer.iceberg.entry.data_file import ManifestEntry, ManifestEntryStatus
from committer.iceberg.manifest.manifest_list import ManifestFile, decode_manifest_list
from committer.iceberg.metadata.snapshot import Snapshot
from committer.plan.operations.head import Head, ObjectRange
from committer.plan.validation.since import Since


def removed_since(head: Head, since: Since) -> tuple[ManifestEntry, ...] | None:
    """Return the entries of files that were removed after the base, each with the snapshot that
    removed it; None where that history has expired. Errors: `MissingObjectsError`.
    """
    if not since.is_whole:
        return None
    return tuple(_removed_by(head, since.later))


def _removed_by(head: Head, snapshots: tuple[Snapshot, ...]) -> list[ManifestEntry]:
    lists = [ObjectRange(one.manifest_list) for one in snapshots if one.manifest_list is not None]
    ids = {one.snapshot_id for one in snapshots}
    rows: dict[str, ManifestFile] = {}
    for content in head.contents(lists):
        for row in decode_manifest_list(content).rows:
            if row.added_snapshot_id in ids and row.deleted_files_count != 0:
                rows[row.manifest_path] = row
    return [
        entry
        for entries in head.entries(list(rows.values()))
        for entry in entries
        if entry.status is ManifestEntryStatus.DELETED and entry.snapshot_id in ids
    ]
