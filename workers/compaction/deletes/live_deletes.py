"""The live delete files of a snapshot, and the data files that each applies to.

Manifests are read, and no other file. Format only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from committer.iceberg.deletes.delete_index import DeleteIndex
from committer.iceberg.entry.data_file import DataFile, ManifestEntry
from committer.iceberg.manifest.manifest import decode_manifest
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.scan.plan_files import (
    LoadedDeletes,
    Scan,
    plan_manifests,
    tasks_of_manifest,
)
from committer.iceberg.scan.scan_filter import ScanFilter
from committer.iceberg.scan.scan_task import FileScanTask
from committer.iceberg.scan.snapshot_manifests import Read, snapshot_manifests

# The path of a delete file; of a deletion vector its place in the Puffin file as well.
DeleteKey = tuple[str, int | None, int | None]


def delete_key(file: DataFile) -> DeleteKey:
    """Return what tells a delete file from all others."""
    return file.file_path, file.content_offset, file.content_size_in_bytes


def stored_bytes(file: DataFile) -> int:
    """Return what a delete file takes: a deletion vector its own part of the Puffin file."""
    size_bytes = file.content_size_in_bytes
    return file.file_size_in_bytes if size_bytes is None else size_bytes


@dataclass(frozen=True, slots=True)
class LiveDeletes:
    """`entries`: all live delete files. `tasks`: all data files that some of them apply to, each
    with all of those: by partition, sequence number, and the metrics of compared columns."""

    entries: tuple[ManifestEntry, ...] = ()
    tasks: tuple[FileScanTask, ...] = ()

    def unused(self) -> Iterator[ManifestEntry]:
        """Yield the delete files that apply to no data file. A file of position deletes is one of
        them where each data file of it has a deletion vector: readers ignore it there."""
        used = {id(file) for task in self.tasks for file in task.delete_files}
        return (entry for entry in self.entries if id(entry.data_file) not in used)


def read_live_deletes(
    metadata: TableMetadata, snapshot: Snapshot | None, read: Read
) -> LiveDeletes:
    """Read the deletes of a snapshot. Errors: as `plan_files`."""
    scan = Scan(metadata, ScanFilter(metadata.partition_specs, metadata.current_schema))
    planned = plan_manifests(scan, snapshot_manifests(snapshot, read))
    entries = tuple(
        entry
        for row in planned.deletes
        for entry in decode_manifest(read(row.manifest_path), manifest_file=row).entries
        if entry.is_live
    )
    if not entries:
        return LiveDeletes()
    specs = {spec.spec_id: spec for spec in metadata.partition_specs}
    index = DeleteIndex(entries, specs=specs, schemas=metadata.schemas)
    compared = frozenset(one for entry in entries for one in entry.data_file.equality_ids or ())
    newest = max(entry.sequence_number or 0 for entry in entries)
    tasks = (
        task
        for row in planned.data
        if row.min_sequence_number <= newest
        for task in tasks_of_manifest(
            scan, row, read(row.manifest_path), LoadedDeletes(index, compared)
        )
    )
    return LiveDeletes(entries, tuple(task for task in tasks if task.delete_files))
