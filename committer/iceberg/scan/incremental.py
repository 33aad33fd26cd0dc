"""Scans of the files that were appended between two snapshots.

No I/O, as in `plan_files.py`. Snapshots count along the lineage of the last one. Errors: as
`plan_files`, and `NotFoundError` where the first snapshot is not in that lineage.
Source: the reference's incremental append scan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from committer.errors import NotFoundError
from committer.iceberg.entry.data_file import ManifestContent, ManifestEntryStatus
from committer.iceberg.expressions.expression import ALWAYS_TRUE, Expression
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.scan.entry_reader import FileFilter, FoundFile, iter_matching_files
from committer.iceberg.scan.plan_files import Scan
from committer.iceberg.scan.scan_filter import scan_filter
from committer.iceberg.scan.scan_task import FileScanTask
from committer.iceberg.scan.snapshot_manifests import Read, snapshot_manifests
from committer.iceberg.scan.time_travel import find_snapshot

_APPEND = "append"


@dataclass(frozen=True, slots=True)
class SnapshotRange:
    """Snapshots after one and up to another. `after` None: from the oldest that is retained; it
    may have expired itself. `up_to` None: the current snapshot. `with_first`: `after` counts too.
    """

    after: int | None = None
    up_to: int | None = None
    with_first: bool = False


def plan_appends(
    metadata: TableMetadata,
    found_in: SnapshotRange,
    *,
    read: Read,
    filter: Expression = ALWAYS_TRUE,
    case_sensitive: bool = True,
) -> Iterator[FileScanTask]:
    """Plan the data files that append snapshots of a range have added, the newest snapshot first.

    Other operations are left out, and no deletes apply: rows are those that were appended.
    """
    scan = Scan(metadata, scan_filter(metadata, filter, case_sensitive=case_sensitive))
    lineage = snapshots_between(metadata, found_in)
    return added_files(scan, [one for one in lineage if one.operation == _APPEND], read)


def added_files(scan: Scan, snapshots: Sequence[Snapshot], read: Read) -> Iterator[FileScanTask]:
    """Plan the data files that these snapshots have added, in the order of the snapshots, and of
    their manifests. No deletes apply."""
    found = _added_files(scan, snapshots, read)
    return (FileScanTask(file, (), residual, head) for head, file, residual in found)


# --- Snapshots of a range ------------------------------------------------------------------------


def snapshots_between(metadata: TableMetadata, found_in: SnapshotRange) -> list[Snapshot]:
    """Return the snapshots of a range, the newest first. Errors: `NotFoundError`."""
    newest = find_snapshot(metadata, snapshot_id=found_in.up_to)
    after, found = found_in.after, list[Snapshot]()
    for current in metadata.ancestors(None if newest is None else newest.snapshot_id):
        if current.snapshot_id == after:
            return [*found, current] if found_in.with_first else found
        found.append(current)
        if current.parent_snapshot_id == after is not None and not found_in.with_first:
            return found
    if after is not None:
        raise NotFoundError(
            f"snapshot {after} is not in the lineage that was asked for, or a snapshot between them"
            " has expired"
        )
    return found


# --- Files of a range ----------------------------------------------------------------------------


def _added_files(scan: Scan, snapshots: Sequence[Snapshot], read: Read) -> Iterator[FoundFile]:
    """Yield the files that these snapshots added, in the order of the snapshots."""
    for snapshot in snapshots:
        for row in snapshot_manifests(snapshot, read):
            is_own = row.added_snapshot_id == snapshot.snapshot_id
            is_data = row.content == ManifestContent.DATA
            if is_own and is_data and scan.filter.may_match_manifest(row):
                yield from _files_of_manifest(scan, row, read)


def _files_of_manifest(scan: Scan, row: ManifestFile, read: Read) -> Iterator[FoundFile]:
    asked = scan.filter
    added, snapshot_id = ManifestEntryStatus.ADDED, row.added_snapshot_id
    wanted = FileFilter(
        residual=asked.residual(row.partition_spec_id),
        may_match=asked.may_match_file,
        field_ids=asked.field_ids,
        # A manifest that a snapshot of version 1 names itself may be of snapshots before it too.
        keeps=lambda head: head[0] == added and head[1] == snapshot_id,
    )
    spec = scan.metadata.spec_by_id(row.partition_spec_id)
    return iter_matching_files(read(row.manifest_path), row, spec, wanted)
