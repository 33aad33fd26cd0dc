"""Reads the contents of snapshots from manifest lists and manifests, and checks them (I2, I6, I7).

Manifests and lists never change, so each is decoded once. Reading is synchronous, as the checks run
in the moment of a swap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from committer.errors import FrazilError
from committer.iceberg.entry.data_file import (
    DataFile,
    DataFileContent,
    ManifestEntry,
    ManifestEntryStatus,
)
from committer.iceberg.manifest.manifest import decode_manifest, inherit
from committer.iceberg.manifest.manifest_list import KnownRows, ManifestFile, decode_manifest_list
from committer.iceberg.metadata.snapshot import Snapshot
from committer.plan.ledger.evidence import EpochEvidence, read_evidence

# Answers None for an object that is not there.
Read = Callable[[str], bytes | None]

_STATUSES = (
    ManifestEntryStatus.EXISTING,
    ManifestEntryStatus.ADDED,
    ManifestEntryStatus.DELETED,
)


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A live data file: its partition, its rows, its size, and the snapshot and numbers it was
    added with."""

    path: str
    spec_id: int
    partition: tuple[object, ...]
    record_count: int
    size_bytes: int
    snapshot_id: int | None
    sequence_number: int | None
    file_sequence_number: int | None
    first_row_id: int | None


@dataclass(frozen=True, slots=True)
class SnapshotContents:
    """The contents of a snapshot. `live`: its data files by path; `deletes`: its delete files.
    `added`: paths that this very snapshot added, repeats included, without deletion vectors: the
    committer may unite these, which I21 judges.

    `problems` break I6 or I7: objects that are missing, manifests that their rows belie.
    """

    snapshot: Snapshot
    rows: tuple[ManifestFile, ...]
    live: Mapping[str, LiveFile]
    deletes: tuple[ManifestEntry, ...]
    repeated: tuple[str, ...]
    added: tuple[str, ...]
    evidence: EpochEvidence
    problems: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Manifest:
    """`live_count`: of live data files, each path as often as it is there."""

    row: ManifestFile
    live: Mapping[str, LiveFile]
    deletes: tuple[ManifestEntry, ...]
    entries: tuple[ManifestEntry, ...]
    problems: tuple[tuple[str, str], ...]
    live_count: int


class Contents:
    """Reads snapshots through `read`, each manifest once for each row that it is listed with."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._rows: KnownRows = {}
        self._manifests: dict[str, _Manifest] = {}
        self._snapshots: dict[str, SnapshotContents] = {}

    def of(self, snapshot: Snapshot) -> SnapshotContents:
        """Return the contents of a snapshot, cached by its manifest list."""
        location = snapshot.manifest_list or ""
        known = self._snapshots.get(location)
        if known is None:
            known = self._snapshots[location] = self._load(snapshot, location)
        return known

    def _load(self, snapshot: Snapshot, location: str) -> SnapshotContents:
        content = self._read(location)
        if content is None:
            return _unreadable(snapshot, f"the manifest list {location} does not exist")
        try:
            rows = decode_manifest_list(content, known=self._rows).rows
        except FrazilError as error:
            return _unreadable(snapshot, f"the manifest list {location}: {error}")
        manifests = [self._manifest(row) for row in rows]
        live: dict[str, LiveFile] = {}
        for manifest in manifests:
            live.update(manifest.live)
        added = tuple(
            entry.data_file.file_path
            for manifest in manifests
            if manifest.row.added_snapshot_id == snapshot.snapshot_id
            for entry in manifest.entries
            if entry.status == ManifestEntryStatus.ADDED
            and entry.snapshot_id == snapshot.snapshot_id
            and not entry.data_file.is_deletion_vector
        )
        deletes = tuple(entry for manifest in manifests for entry in manifest.deletes)
        problems = [problem for manifest in manifests for problem in manifest.problems]
        return SnapshotContents(
            snapshot,
            rows,
            live,
            deletes,
            (*_repeated(manifests, live), *_repeated_deletes(deletes)),
            added,
            read_evidence(content, snapshot),
            tuple(problems),
        )

    def _manifest(self, row: ManifestFile) -> _Manifest:
        """Read a manifest once: nearly always its row is the same in all lists."""
        path = row.manifest_path
        known = self._manifests.get(path)
        if known is None or (known.row is not row and known.row != row):
            known = self._manifests[path] = _read_manifest(row, self._read(path))
        return known


def _unreadable(snapshot: Snapshot, problem: str) -> SnapshotContents:
    return SnapshotContents(snapshot, (), {}, (), (), (), {}, (("I6", problem),))


def _repeated(manifests: list[_Manifest], live: Mapping[str, LiveFile]) -> tuple[str, ...]:
    """Return the paths that are live more than once."""
    if sum(manifest.live_count for manifest in manifests) == len(live):
        return ()
    counted = Counter(path for manifest in manifests for path in _live_paths(manifest))
    return tuple(path for path, count in counted.items() if count > 1)


def _live_paths(manifest: _Manifest) -> Iterator[str]:
    return (entry.data_file.file_path for entry in manifest.entries if _is_live_data(entry))


def _is_live_data(entry: ManifestEntry) -> bool:
    return entry.is_live and entry.data_file.content is DataFileContent.DATA


def _repeated_deletes(deletes: Collection[ManifestEntry]) -> tuple[str, ...]:
    """Return the paths of delete files that are live more than once."""
    if not deletes:
        return ()
    counted = Counter(delete_key(entry.data_file) for entry in deletes)
    return tuple(key[0] for key, count in counted.items() if count > 1)


def delete_key(file: DataFile) -> tuple[str, int | None, int | None]:
    """Return the identity of a delete file: vectors of one Puffin file differ in their places."""
    return file.file_path, file.content_offset, file.content_size_in_bytes


def _read_manifest(row: ManifestFile, content: bytes | None) -> _Manifest:
    if content is None:
        problem = ("I6", f"the manifest {row.manifest_path} does not exist")
        return _Manifest(row, {}, (), (), (problem,), 0)
    try:
        # Without its row, which is compared below.
        decoded = decode_manifest(content)
        entries = tuple(inherit(decoded.entries, row))
    except FrazilError as error:
        problem = ("I6", f"the manifest {row.manifest_path}: {error}")
        return _Manifest(row, {}, (), (), (problem,), 0)
    live = {
        entry.data_file.file_path: LiveFile(
            entry.data_file.file_path,
            row.partition_spec_id,
            entry.data_file.partition,
            entry.data_file.record_count,
            entry.data_file.file_size_in_bytes,
            entry.snapshot_id,
            entry.sequence_number,
            entry.file_sequence_number,
            entry.data_file.first_row_id,
        )
        for entry in entries
        if _is_live_data(entry)
    }
    deletes = tuple(
        replace(entry, data_file=replace(entry.data_file, spec_id=row.partition_spec_id))
        for entry in entries
        if entry.is_live and entry.data_file.content is not DataFileContent.DATA
    )
    problems = tuple(_row_problems(row, len(content), entries))
    if decoded.content != row.content:
        problems += (("I6", f"the manifest {row.manifest_path} is not of {row.content.name}"),)
    return _Manifest(row, live, deletes, entries, problems, sum(map(_is_live_data, entries)))


def _row_problems(
    row: ManifestFile,
    length: int,
    entries: tuple[ManifestEntry, ...],
) -> Iterator[tuple[str, str]]:
    """Yield where a row of a manifest list contradicts the manifest."""
    where = f"the row of {row.manifest_path}"
    if row.manifest_length != length:
        yield "I6", f"{where} says {row.manifest_length} bytes, it has {length}"
    files = tuple(sum(entry.status == status for entry in entries) for status in _STATUSES)
    said = (row.existing_files_count, row.added_files_count, row.deleted_files_count)
    if said != files:
        yield "I7", f"{where} says {said} files (existing, added, deleted), it has {files}"
    rows = tuple(
        sum(entry.data_file.record_count for entry in entries if entry.status == status)
        for status in _STATUSES
    )
    said = (row.existing_rows_count, row.added_rows_count, row.deleted_rows_count)
    if said != rows:
        yield "I7", f"{where} says {said} rows (existing, added, deleted), it has {rows}"
    numbers = [entry.sequence_number or 0 for entry in entries if entry.is_live]
    if numbers and min(numbers) < row.min_sequence_number:
        lowest = min(numbers)
        yield "I5", f"{where} says lowest number {row.min_sequence_number}, it has {lowest}"
    yield from _summary_problems(row, entries)


def _summary_problems(
    row: ManifestFile, entries: tuple[ManifestEntry, ...]
) -> Iterator[tuple[str, str]]:
    """Check I7: a partition summary that denies nulls or values that are there hides files."""
    for position, summary in enumerate(row.partitions or ()):
        has_null = any(entry.data_file.partition[position] is None for entry in entries)
        if has_null and not summary.contains_null:
            yield "I7", f"the row of {row.manifest_path} denies a null partition {position}"
        has_value = any(entry.data_file.partition[position] is not None for entry in entries)
        if has_value and summary.lower_bound is None:
            yield "I7", f"the row of {row.manifest_path} has no bounds for partition {position}"


# --- Rules ---------------------------------------------------------------------------------------


def unique_paths(contents: SnapshotContents, again: Collection[str] = ()) -> Iterator[str]:
    """Check I2: no file is in a snapshot twice, however listed, except the paths of `again`."""
    repeated = [path for path in contents.repeated if path not in again]
    if repeated:
        snapshot_id = contents.snapshot.snapshot_id
        yield f"snapshot {snapshot_id} has {len(repeated)} files twice: {', '.join(repeated[:3])}"


def summary_totals(contents: SnapshotContents) -> Iterator[str]:
    """Check I7: the totals in the summary, as far as it has them, match the files."""
    summary = contents.snapshot.summary or {}
    live, deletes = contents.live.values(), [entry.data_file for entry in contents.deletes]
    by_key = [one for one in deletes if one.content is DataFileContent.EQUALITY_DELETES]
    counted = {
        "total-data-files": len(contents.live),
        "total-delete-files": len(deletes),
        "total-records": sum(file.record_count for file in live),
        "total-equality-deletes": sum(file.record_count for file in by_key),
        "total-position-deletes": sum(file.record_count for file in deletes)
        - sum(file.record_count for file in by_key),
        "total-files-size": sum(file.size_bytes for file in live) + sum(map(_size_of, deletes)),
    }
    for key, found in counted.items():
        if key in summary and summary[key] != str(found):
            snapshot_id = contents.snapshot.snapshot_id
            yield f"snapshot {snapshot_id}: `{key}` is {summary[key]}, counted {found}"


def _size_of(file: DataFile) -> int:
    """Return what a delete file counts for: a vector has a part of its Puffin file."""
    return file.content_size_in_bytes or file.file_size_in_bytes


def inherited_numbers(contents: SnapshotContents) -> Iterator[str]:
    """Check I5: the files that a snapshot has added inherit the sequence number of its list."""
    snapshot = contents.snapshot
    for row in contents.rows:
        is_new = row.added_snapshot_id == snapshot.snapshot_id
        if is_new and row.sequence_number != snapshot.sequence_number:
            found = row.sequence_number
            yield (
                f"{row.manifest_path} has sequence number {found} in the list of snapshot"
                f" {snapshot.snapshot_id}, whose own is {snapshot.sequence_number}"
            )


def row_ids(contents: SnapshotContents) -> Iterator[str]:
    """Check I5 in format version 3: ranges of row ids do not overlap. Those of files are compared:
    a manifest may list files that have ids of their own, and gives ids to the others only.
    """
    ranges = sorted(
        (file.first_row_id, file.record_count)
        for file in contents.live.values()
        if file.first_row_id is not None
    )
    for (first, count), (second, _) in pairwise(ranges):
        if first + count > second:
            yield f"row ids from {first} (+{count}) overlap those from {second}"
