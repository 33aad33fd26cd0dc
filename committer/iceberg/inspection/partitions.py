"""Rows of partitions: what the live files of a snapshot add up to in each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter

from committer.iceberg.entry.data_file import DataFileContent, ManifestEntry
from committer.iceberg.inspection.file_rows import FoundEntry
from committer.iceberg.inspection.values import Row, describe_partition
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.schema.partition_spec import partition_path


@dataclass(slots=True)
class _Tally:
    """Files and rows of a partition. `updated`: time in ms and id of the last snapshot in it."""

    data_files: int = 0
    data_rows: int = 0
    data_bytes: int = 0
    position_files: int = 0
    position_rows: int = 0
    equality_files: int = 0
    equality_rows: int = 0
    updated: tuple[int, int] | None = None

    def add(self, entry: ManifestEntry) -> None:
        file = entry.data_file
        match file.content:
            case DataFileContent.DATA:
                self.data_files += 1
                self.data_rows += file.record_count
                self.data_bytes += file.file_size_in_bytes
            case DataFileContent.POSITION_DELETES:
                self.position_files += 1
                self.position_rows += file.record_count
            case DataFileContent.EQUALITY_DELETES:
                self.equality_files += 1
                self.equality_rows += file.record_count


def partition_rows(metadata: TableMetadata, live: Iterable[FoundEntry]) -> Iterator[Row]:
    """Yield one row per spec and partition tuple, by spec and path; memory grows with partitions.

    `record_count`, `file_count` and bytes are of data files; a deletion vector counts as a position
    delete file. `last_updated_…` is the newest retained snapshot that added a file, null if none is
    retained.
    """
    tallies: dict[tuple[int, str, str], tuple[Row, _Tally]] = {}
    for found in live:
        partition = found.entry.data_file.partition
        path = partition_path(found.spec, found.schema, partition)
        # By its text too: null and the string `null` have one path, and as keys 0.0 equals -0.0.
        key = (found.spec.spec_id, path, repr(partition))
        known = tallies.get(key)
        if known is None:
            described = describe_partition(found.partition_type, partition)
            known = tallies[key] = (described, _Tally())
        known[1].add(found.entry)
        _note_update(known[1], metadata, found.entry.snapshot_id)
    for (spec_id, path, _), (partition_row, tally) in sorted(tallies.items(), key=itemgetter(0)):
        yield _row(spec_id, path, partition_row, tally)


def _note_update(tally: _Tally, metadata: TableMetadata, snapshot_id: int | None) -> None:
    snapshot = None if snapshot_id is None else metadata.snapshot_by_id(snapshot_id)
    if snapshot is not None:
        update = (snapshot.timestamp_ms, snapshot.snapshot_id)
        if tally.updated is None or update[0] > tally.updated[0]:
            tally.updated = update


def _row(spec_id: int, path: str, partition: Row, tally: _Tally) -> Row:
    timestamp_ms, snapshot_id = tally.updated or (None, None)
    return {
        "partition": partition,
        "partition_path": path,
        "spec_id": spec_id,
        "record_count": tally.data_rows,
        "file_count": tally.data_files,
        "total_data_file_size_in_bytes": tally.data_bytes,
        "position_delete_record_count": tally.position_rows,
        "position_delete_file_count": tally.position_files,
        "equality_delete_record_count": tally.equality_rows,
        "equality_delete_file_count": tally.equality_files,
        "last_updated_ms": timestamp_ms,
        "last_updated_snapshot_id": snapshot_id,
    }
