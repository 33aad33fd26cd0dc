"""Counts what a step adds and removes, for its snapshot's summary, as Iceberg Java counts it.

Source: docs/reference/iceberg-notes.md 5.2.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from committer.iceberg.entry.data_file import DataFile, DataFileContent, ManifestEntry
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.schema.partition_spec import partition_path
from committer.plan.batch.batch import schema_of_spec
from committer.plan.batch.partition_totals import partition_entries, partition_limit, print_counts
from committer.plan.batch.submitted_manifest import CheckedManifest

# In the order in which Java prints those of a partition.
_KEYS = (
    "added-data-files",
    "deleted-data-files",
    "added-equality-delete-files",
    "removed-equality-delete-files",
    "added-position-delete-files",
    "removed-position-delete-files",
    "added-delete-files",
    "removed-delete-files",
    "added-dvs",
    "removed-dvs",
    "added-records",
    "deleted-records",
    "added-files-size",
    "removed-files-size",
    "added-position-deletes",
    "removed-position-deletes",
    "added-equality-deletes",
    "removed-equality-deletes",
)


class Tally:
    """Mutable, for one step. Partitions are told apart by their path, as in Java."""

    def __init__(self, metadata: TableMetadata) -> None:
        self._metadata = metadata
        self._limit = partition_limit(metadata.properties)
        self._counts: Counter[str] = Counter()
        self._by_partition: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._paths: dict[tuple[int, str], str] = {}
        self._duplicates = 0

    def add_manifest(self, manifest: CheckedManifest, files: Iterable[DataFile]) -> None:
        """Count a manifest of new data files. `files` are looked at only where the summary has
        each partition."""
        walked = manifest.walked
        if self._limit:
            for file in files:
                self.add(file)
            return
        self._counts["added-data-files"] += walked.added_files_count
        self._counts["added-records"] += walked.added_rows_count
        self._counts["added-files-size"] += walked.added_size_bytes
        for partition in walked.partitions:
            self._by_partition[self._path(manifest.spec_id, partition)].update()

    def add(self, file: DataFile) -> None:
        """Count a new file."""
        self._count(file, "added", "added")

    def remove(self, entries: Iterable[ManifestEntry]) -> None:
        """Count the removed files of one manifest. Java counts a file that it lists twice once."""
        seen: set[tuple[str, int | None, int | None]] = set()
        for entry in entries:
            file = entry.data_file
            key = (file.file_path, file.content_offset, file.content_size_in_bytes)
            if key in seen:
                self._duplicates += 1
                continue
            seen.add(key)
            self._count(file, "deleted", "removed")

    def counts(self) -> dict[str, int]:
        """Return the summary's counts; those of 0 may be among them."""
        found = {key: self._counts[key] for key in _KEYS}
        found["deleted-duplicate-files"] = self._duplicates
        found["changed-partition-count"] = len(self._by_partition)
        return found

    def partition_entries(self) -> dict[str, str]:
        """Return the summary's entries for each partition, within the table's limit."""
        by_path = {path: print_counts(counts, _KEYS) for path, counts in self._by_partition.items()}
        return partition_entries(by_path, self._limit)

    def _count(self, file: DataFile, data: str, other: str) -> None:
        counts = _counts_of(file, data, other)
        self._counts.update(counts)
        self._by_partition[self._path(file.spec_id, file.partition)].update(counts)

    def _path(self, spec_id: int, partition: tuple[object, ...]) -> str:
        # By their text: as keys themselves -0.0 and 0.0 would be one.
        key = (spec_id, repr(partition))
        path = self._paths.get(key)
        if path is None:
            spec = self._metadata.spec_by_id(spec_id)
            path = partition_path(spec, schema_of_spec(spec, self._metadata), partition)
            self._paths[key] = path
        return path


def _counts_of(file: DataFile, data: str, other: str) -> dict[str, int]:
    """Return what one file counts for. `data`: what the keys of data files begin with."""
    size = file.content_size_in_bytes if file.is_deletion_vector else None
    counts = {f"{other}-files-size": file.file_size_in_bytes if size is None else size}
    if file.content == DataFileContent.DATA:
        return {**counts, f"{data}-data-files": 1, f"{data}-records": file.record_count}
    counts[f"{other}-delete-files"] = 1
    if file.content == DataFileContent.EQUALITY_DELETES:
        kind = "equality"
    else:
        kind = "position"
    kinds = f"{other}-dvs" if file.is_deletion_vector else f"{other}-{kind}-delete-files"
    return {**counts, kinds: 1, f"{other}-{kind}-deletes": file.record_count}
