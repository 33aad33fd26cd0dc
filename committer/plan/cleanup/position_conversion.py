"""Selects position delete files of before version 3, and makes the deletion vectors of their rows.

Readers open each of them for a data file, and writers of version 3 must not add more. A data file
gets a vector of all rows that its position deletes delete; so all of them are read, or none. One
that has a vector keeps it: it holds what they deleted, and readers ignore them. A file for a whole
partition goes once each live data file that it names has a vector.
Reads are asked for as in `reachability.py`; how rows are read is the caller's.
Source: the specification, "Deletion Vectors" and "Position Delete Files".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from committer.errors import InvalidMetadataError
from committer.iceberg.deletes.delete_index import PartitionKey, partition_of
from committer.iceberg.deletes.deletion_vector import DeletionVector
from committer.iceberg.deletes.position_deletes import referenced_data_file
from committer.iceberg.entry.data_file import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
)
from committer.iceberg.manifest.manifest import iter_entries
from committer.iceberg.manifest.manifest_list import ManifestFile, live_manifests
from committer.iceberg.metadata.property_values import is_true
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.plan.cleanup.reachability import Reading, batches
from committer.plan.cleanup.stored_manifests import live_data_files, read_manifests
from committer.plan.operations.change import RemovedDelete, removed_delete
from committer.plan.operations.head import may_hold_any

ENABLED_PROPERTY = "frazil.deletes.convert-positions"
FILES_MAX = 1_000
FILE_BYTES_MAX = 16 * 1024 * 1024
_FILE_ROWS_MAX = 4_000_000
# Where files are for whole partitions, all of a partition are read.
_READ_MAX = 10_000
_READABLE = frozenset({"PARQUET", "AVRO"})

# The deleted positions of each data file that a delete file names.
Rows = Mapping[str, DeletionVector]
ReadRows = Callable[[DataFile, bytes], Rows]


def converts_positions(metadata: TableMetadata) -> bool:
    """Return whether the table wants vectors in the place of its position deletes, and may."""
    wanted = is_true(metadata.properties, ENABLED_PROPERTY, default=False)
    return wanted and metadata.format_version >= 3


@dataclass(frozen=True, slots=True)
class Conversion:
    """Vectors to add, of these data files, and the delete files that go. `left_alone`: how many
    position delete files were seen that cannot be read."""

    vectors: tuple[tuple[DataFile, DeletionVector], ...] = ()
    removed: tuple[RemovedDelete, ...] = ()
    left_alone: int = 0


@dataclass(slots=True)
class _Chosen:
    """Names the deletes that a round converts. `paths`: the data files whose deletes it reads,
    where files name one; `shared`: the partitions with files for all of their data."""

    paths: set[str] = field(default_factory=set)
    shared: set[PartitionKey] = field(default_factory=set)
    partitions: dict[int, dict[PartitionKey, tuple[object, ...]]] = field(default_factory=dict)
    left_alone: int = 0

    def add(self, file: DataFile) -> None:
        path, key = referenced_data_file(file), partition_of(file)
        if path is None:
            self.shared.add(key)
        else:
            self.paths.add(path)
        self.partitions.setdefault(file.spec_id, {})[key] = file.partition

    @property
    def count(self) -> int:
        return len(self.paths) + len(self.shared)

    def may_be_in(self, row: ManifestFile, metadata: TableMetadata) -> bool:
        partitions = self.partitions.get(row.partition_spec_id)
        return partitions is not None and may_hold_any(metadata, row, partitions.values())

    def takes(self, file: DataFile) -> bool:
        """Return whether a delete file may say something of the chosen data files."""
        path, key = referenced_data_file(file), partition_of(file)
        return key in self.shared or path in self.paths or (path is None and self._has(key))

    def covers(self, file: DataFile) -> bool:
        """Return whether all data files that a delete file is for get a vector."""
        return referenced_data_file(file) is not None or partition_of(file) in self.shared

    def of(self, deleted: _Deleted) -> Iterator[str]:
        """Yield the data files that a delete file names, and all of whose deletes are read."""
        is_whole = partition_of(deleted.file) in self.shared
        yield from (path for path in deleted.rows if is_whole or path in self.paths)

    def _has(self, key: PartitionKey) -> bool:
        return key in self.partitions.get(key[0], {})


def find_conversion(
    metadata: TableMetadata,
    rows: Sequence[ManifestFile],
    converted: set[str],
    read_rows: ReadRows,
    files_max: int = FILES_MAX,
) -> Reading[Conversion]:
    """Return the next round of a conversion. `rows`: those of the branch's head. `converted`: the
    manifests that are known to have nothing to convert; more are added.

    Errors: `InvalidMetadataError` for what is gone or cannot be understood; those of `read_rows`.
    """
    deletes = live_manifests(rows, ManifestContent.DELETES)
    chosen = yield from _choose(deletes, converted, files_max)
    if not chosen.count:
        return Conversion(left_alone=chosen.left_alone)
    entries: list[ManifestEntry] = []
    of_interest = [row for row in deletes if chosen.may_be_in(row, metadata)]
    for batch in batches(of_interest):
        for found in (yield from _entries(batch)):
            entries += (
                one for one in found if _is_by_position(one) and chosen.takes(one.data_file)
            )
    vectors = {
        path
        for one in entries
        if one.data_file.is_deletion_vector and (path := one.data_file.referenced_data_file)
    }
    positions = [one for one in entries if not one.data_file.is_deletion_vector]
    readable = _complete(positions)
    if len(readable) > _READ_MAX:
        return Conversion(left_alone=chosen.left_alone + len(readable))
    deleted = yield from _read_positions(readable, read_rows)
    wanted = {path for one in deleted for path in chosen.of(one)} - vectors
    data = yield from _find_data(metadata, rows, chosen, wanted)
    return Conversion(
        _united(deleted, data),
        tuple(removed_delete(one.file) for one in deleted if chosen.covers(one.file)),
        chosen.left_alone,
    )


@dataclass(frozen=True, slots=True)
class _Deleted:
    """A delete file with its rows."""

    entry: ManifestEntry
    rows: Rows

    @property
    def file(self) -> DataFile:
        return self.entry.data_file


# --- Delete files --------------------------------------------------------------------------------


def _choose(
    deletes: Sequence[ManifestFile], converted: set[str], files_max: int
) -> Reading[_Chosen]:
    chosen = _Chosen()
    for batch in batches([row for row in deletes if row.manifest_path not in converted]):
        for row, entries in zip(batch, (yield from _entries(batch)), strict=True):
            files = [one.data_file for one in entries if _is_by_position(one)]
            old = [file for file in files if not file.is_deletion_vector]
            readable = [file for file in old if _is_readable(file)]
            chosen.left_alone += len(old) - len(readable)
            if not readable:
                converted.add(row.manifest_path)
            for file in readable:
                if chosen.count < files_max:
                    chosen.add(file)
        if chosen.count >= files_max:
            break
    return chosen


def _is_by_position(entry: ManifestEntry) -> bool:
    return entry.is_live and entry.data_file.content is DataFileContent.POSITION_DELETES


def _is_readable(file: DataFile) -> bool:
    is_plain = file.file_format.upper() in _READABLE and file.key_metadata is None
    is_small = file.file_size_in_bytes <= FILE_BYTES_MAX and file.record_count <= _FILE_ROWS_MAX
    return is_plain and is_small


def _complete(positions: Sequence[ManifestEntry]) -> list[ManifestEntry]:
    """Leave out data files with an unreadable delete file: all of their delete files stay."""
    unreadable = [one.data_file for one in positions if not _is_readable(one.data_file)]
    paths = {referenced_data_file(file) for file in unreadable} - {None}
    partitions = {partition_of(file) for file in unreadable if referenced_data_file(file) is None}
    # A file for a partition may name each of its data files.
    shared = {partition_of(o.data_file) for o in positions if not referenced_data_file(o.data_file)}
    partitions |= shared & {partition_of(file) for file in unreadable}
    return [
        one
        for one in positions
        if referenced_data_file(one.data_file) not in paths
        and partition_of(one.data_file) not in partitions
    ]


def _read_positions(
    entries: Sequence[ManifestEntry], read_rows: ReadRows
) -> Reading[list[_Deleted]]:
    found: list[_Deleted] = []
    for batch in batches(entries):
        contents = yield [one.data_file.file_path for one in batch]
        for entry, content in zip(batch, contents, strict=True):
            if content is None:
                raise InvalidMetadataError(f"{entry.data_file.file_path}: not there")
            rows = read_rows(entry.data_file, content)
            only = referenced_data_file(entry.data_file)
            if only is not None and rows.keys() - {only}:
                raise InvalidMetadataError(
                    f"{entry.data_file.file_path}: expected rows of {only} alone"
                )
            found.append(_Deleted(entry, rows))
    return found


# --- Data files ----------------------------------------------------------------------------------


def _find_data(
    metadata: TableMetadata, rows: Sequence[ManifestFile], chosen: _Chosen, wanted: set[str]
) -> Reading[dict[str, ManifestEntry]]:
    """Return the live data files of these paths."""
    found: dict[str, ManifestEntry] = {}
    data = live_manifests(rows, ManifestContent.DATA)
    for batch in batches([row for row in data if chosen.may_be_in(row, metadata)]):
        if not wanted - found.keys():
            break
        contents = yield from read_manifests(batch)
        for row, content in zip(batch, contents, strict=True):
            for head, file in live_data_files(content, row, metadata):
                if file.file_path in wanted:
                    found[file.file_path] = ManifestEntry(*head, file)
    return found


def _united(
    deleted: Iterable[_Deleted], data: Mapping[str, ManifestEntry]
) -> tuple[tuple[DataFile, DeletionVector], ...]:
    """Unite what each of these data files loses."""
    united: defaultdict[str, DeletionVector] = defaultdict(DeletionVector)
    for one in deleted:
        for path, positions in one.rows.items():
            if path in data and _applies(one.entry, data[path]):
                united[path] |= positions
    return tuple((data[path].data_file, united[path]) for path in sorted(united))


def _applies(delete: ManifestEntry, data: ManifestEntry) -> bool:
    is_older = (data.sequence_number or 0) <= (delete.sequence_number or 0)
    return is_older and partition_of(delete.data_file) == partition_of(data.data_file)


# --- Manifests -----------------------------------------------------------------------------------


def _entries(rows: Sequence[ManifestFile]) -> Reading[list[list[ManifestEntry]]]:
    contents = yield from read_manifests(rows)
    return [
        list(iter_entries(content, manifest_file=row))
        for row, content in zip(rows, contents, strict=True)
    ]
