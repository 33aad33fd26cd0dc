"""What a job reads of a branch before it changes it: files, deletes, and the rows that live."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from committer.iceberg.entry.data_file import DataFile, DataFileContent, ManifestEntry
from committer.iceberg.metadata.snapshot import MAIN, Snapshot
from committer.iceberg.metadata.table_metadata import TableMetadata
from tests.simulation.engine import Worker
from tests.simulation.rows import (
    DataAt,
    Deleted,
    Positions,
    Row,
    WrittenRows,
    deleted_rows,
    read_vector,
)


@dataclass(frozen=True, slots=True)
class Scan:
    """A branch as it was read. `by_position`: what is deleted without equality deletes."""

    metadata: TableMetadata
    head: Snapshot | None
    data: Sequence[ManifestEntry]
    deletes: Sequence[ManifestEntry]
    deleted: Deleted
    by_position: Deleted
    written: WrittenRows

    @property
    def live(self) -> list[DataFile]:
        """Return the data files. One that is held twice, as an operator let a request land once
        more, is none that a job may choose."""
        times = Counter(entry.data_file.file_path for entry in self.data)
        files = (entry.data_file for entry in self.data)
        return [file for file in files if times[file.file_path] == 1]

    def rows_of(self, file: DataFile) -> list[tuple[int, Row]]:
        """Return the live rows of a data file, with their positions."""
        gone = self.deleted.of(file.file_path)
        rows = self.written.rows(file.file_path, file.record_count)
        return [(place, row) for place, row in enumerate(rows) if place not in gone]

    def rows_of_all(self, files: Iterable[DataFile]) -> list[Row]:
        return [row for file in files for _, row in self.rows_of(file)]


async def scan_branch(worker: Worker, branch: str = MAIN) -> Scan:
    """Read a branch, with the deletion vectors that it has."""
    written = worker.ports.history.written
    entries = [
        replace(entry, data_file=replace(entry.data_file, spec_id=row.partition_spec_id))
        for row in await worker.rows(branch)
        for entry in await worker.entries(row)
        if entry.is_live
    ]
    data = [one for one in entries if one.data_file.content is DataFileContent.DATA]
    deletes = [one for one in entries if one.data_file.content is not DataFileContent.DATA]
    vectors = await _vectors(worker, deletes)
    at = {one.data_file.file_path: _data_at(one) for one in data}

    def vector(file: DataFile) -> Positions:
        return read_vector(file, vectors[file.file_path])

    positions = [
        one for one in deletes if one.data_file.content is not DataFileContent.EQUALITY_DELETES
    ]
    return Scan(
        worker.metadata,
        worker.metadata.branch_head(branch),
        data,
        deletes,
        deleted_rows(at.get, deletes, written, vector),
        deleted_rows(at.get, positions, written, vector),
        written,
    )


async def _vectors(worker: Worker, deletes: Iterable[ManifestEntry]) -> dict[str, bytes]:
    paths = {one.data_file.file_path for one in deletes if one.data_file.is_deletion_vector}
    return {path: await worker.ports.storage.get(path) for path in sorted(paths)}


def _data_at(entry: ManifestEntry) -> DataAt:
    file = entry.data_file
    scope = file.spec_id, file.partition
    return DataAt(file.file_path, scope, file.record_count, entry.sequence_number or 0)
