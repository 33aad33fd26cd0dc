"""Rows of partitions: what the live files of a snapshot add up to in each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from operator import itemgetter

from committer.iceberg.entry.data_file import DataFile, DataFileContent
from committer.iceberg.inspection.file_rows import FoundEntry
from committer.iceberg.inspection.values import Row, describe_partition
from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.schema.partition_spec import partition_path


@dataclass(slots=True)
class _Tally:
    """Files and rows of a partition, under the keys of its row and in their order."""

    record_count: int = 0
    file_count: int = 0
    total_data_file_size_in_bytes: int = 0
    position_delete_record_count: int = 0
    position_delete_file_count: int = 0
    equality_delete_record_count: int = 0
    equality_delete_file_count: int = 0
    last_updated_ms: int | None = None
    last_updated_snapshot_id: int | None = None

    def add(self, file: DataFile) -> None:
        match file.content:
            case DataFileContent.DATA:
                self.file_count += 1
                self.record_count += file.record_count
                self.total_data_file_size_in_bytes += file.file_size_in_bytes
            case DataFileContent.POSITION_DELETES:
                self.position_delete_file_count += 1
                self.position_delete_record_count += file.record_count
            case DataFileContent.EQUALITY_DELETES:
                self.equality_delete_file_count += 1
                self.equality_delete_record_count += file.record_count

    def note_update(self, snapshot: Snapshot) -> None:
        if self.last_updated_ms is None or snapshot.timestamp_ms > self.last_updated_ms:
            self.last_updated_ms = snapshot.timestamp_ms
            self.last_updated_snapshot_id = snapshot.snapshot_id


def partition_rows(metadata: TableMetadata, live: Iterable[FoundEntry]) -> Iterator[Row]:
    """Yield one row per spec and partition tuple, by spec and path; memory grows with partitions.

    `record_count`, `file_count` and bytes are of data files; a deletion vector counts as a position
    delete file. `last_updated_…` is the newest retained snapshot that added a file, null if none is
    retained.
    """
    tallies: dict[tuple[int, str, str], tuple[Row, _Tally]] = {}
    for found in live:
        file, snapshot_id = found.entry.data_file, found.entry.snapshot_id
        partition = file.partition
        path = partition_path(found.spec, found.schema, partition)
        # By its text too: null and the string `null` have one path, and as keys 0.0 equals -0.0.
        key = (found.spec.spec_id, path, repr(partition))
        known = tallies.get(key)
        if known is None:
            described = describe_partition(found.partition_type, partition)
            known = tallies[key] = (described, _Tally())
        known[1].add(file)
        snapshot = None if snapshot_id is None else metadata.snapshot_by_id(snapshot_id)
        if snapshot is not None:
            known[1].note_update(snapshot)
    for (spec_id, path, _), (described, tally) in sorted(tallies.items(), key=itemgetter(0)):
        identity = {"partition": described, "partition_path": path, "spec_id": spec_id}
        yield {**identity, **asdict(tally)}
