"""Finds the delete files of a branch that apply to no live data file any more.

Commits of Frazil remove such files along with the data where a manifest's row tells; others stay:
the deletes of data that another engine has rewritten, upserts of rows that were new. Readers open
each of them in vain. A request that removes them lands only if no data that they may apply to has
come in the meantime (`plan/validation/added.py`).

A manifest never changes, so what it holds is read once: of manifests of deletes what their files
apply to, of manifests of data hashes of the paths and the smallest sequence number of each
partition. A delete file is looked at again only when the manifest that it was needed for has gone.
Both memories are bounded. Reads are asked for as in `reachability.py`.
Source: the specification, "Scan Planning" (the scope rules of deletes).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from committer.iceberg.deletes.delete_index import PartitionKey, partition_of
from committer.iceberg.deletes.position_deletes import referenced_data_file
from committer.iceberg.entry.data_file import (
    ManifestContent,
    ManifestEntry,
    is_equality_delete_file,
)
from committer.iceberg.manifest.manifest import iter_entries
from committer.iceberg.manifest.manifest_list import ManifestFile, live_manifests
from committer.iceberg.metadata.property_values import is_true
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.plan.cleanup.reachability import READS_AT_ONCE, Reading
from committer.plan.cleanup.stored_manifests import live_data_files, read_manifests
from committer.plan.operations.change import RemovedDelete, removed_delete
from committer.plan.operations.head import may_hold_any

ENABLED_PROPERTY = "frazil.deletes.remove-dangling"
# Some 30 MB of a table; more are looked at when these are fewer.
DELETES_MAX = 50_000
# 8 MB of hashes of a table; manifests beyond them are read again when they are asked for.
FILES_MAX = 1_000_000
# Of more partitions each manifest counts as one that may hold them.
_PARTITIONS_MAX = 100


def removes_dangling(properties: Mapping[str, str]) -> bool:
    """Return whether the table wants its dangling delete files removed."""
    return is_true(properties, ENABLED_PROPERTY, default=False)


@dataclass(frozen=True, slots=True)
class _Delete:
    """A delete file. `newest`: the largest sequence number of data that it applies to. `path`: the
    only data file that it is for. `partition` None: it is for those of all specs.
    """

    key: RemovedDelete
    newest: int
    spec_id: int
    values: tuple[object, ...]
    partition: PartitionKey | None
    path: str | None

    @classmethod
    def of(cls, entry: ManifestEntry, metadata: TableMetadata) -> _Delete:
        file, number = entry.data_file, entry.sequence_number or 0
        is_equality = is_equality_delete_file(file)
        spec = metadata.spec_by_id(file.spec_id)
        return cls(
            removed_delete(file),
            number - 1 if is_equality else number,
            file.spec_id,
            file.partition,
            None if is_equality and spec.is_unpartitioned else partition_of(file),
            referenced_data_file(file),
        )


@dataclass(frozen=True, slots=True)
class _Data:
    """The live data files of a manifest. `hashes`: of their paths, sorted. `oldest`: the smallest
    sequence number of each partition."""

    hashes: array[int]
    oldest: Mapping[PartitionKey, int]

    @classmethod
    def of(cls, content: bytes, row: ManifestFile, metadata: TableMetadata) -> _Data:
        hashes: list[int] = []
        oldest: dict[PartitionKey, int] = {}
        for (_, _, number, _), file in live_data_files(content, row, metadata):
            hashes.append(hash(file.file_path))
            key = partition_of(file)
            oldest[key] = min(number or 0, oldest.get(key, number or 0))
        return cls(array("q", sorted(hashes)), oldest)

    def needs(self, delete: _Delete) -> bool:
        """Return whether a delete file may apply to one of the files."""
        if delete.partition is None:
            return any(number <= delete.newest for number in self.oldest.values())
        number = self.oldest.get(delete.partition)
        if number is None or number > delete.newest:
            return False
        return delete.path is None or self._may_name(delete.path)

    def _may_name(self, path: str) -> bool:
        wanted = hash(path)
        place = bisect_left(self.hashes, wanted)
        return place < len(self.hashes) and self.hashes[place] == wanted


class DanglingDeletes:
    """Remembers a branch's delete files, and which data needs each. Mutable; lost with the process,
    and then read again."""

    def __init__(self, deletes_max: int = DELETES_MAX, files_max: int = FILES_MAX) -> None:
        self._deletes_max, self._files_max = deletes_max, files_max
        self._deletes: dict[str, tuple[_Delete, ...]] = {}
        self._data: OrderedDict[str, _Data] = OrderedDict()
        # By the manifest of data that they are needed for.
        self._needed_for: dict[RemovedDelete, str] = {}

    def is_due(self, rows: Sequence[ManifestFile]) -> bool:
        """Return whether delete files have come, or manifests have gone that some were needed for,
        since the last look."""
        live = {row.manifest_path for row in live_manifests(rows, ManifestContent.DATA)}
        deletes = live_manifests(rows, ManifestContent.DELETES)
        if any(row.manifest_path not in self._deletes for row in deletes):
            return True
        return not live.issuperset(self._needed_for.values())

    def find(
        self, metadata: TableMetadata, rows: Sequence[ManifestFile]
    ) -> Reading[tuple[RemovedDelete, ...]]:
        """Return the delete files that apply to nothing. `rows`: those of the branch's head.

        Errors: `InvalidMetadataError` for a manifest that is gone or not what its row says.
        """
        yield from self._read_deletes(metadata, _oldest_first(rows, ManifestContent.DELETES))
        data = _oldest_first(rows, ManifestContent.DATA)
        live = {row.manifest_path for row in data}
        self._data = OrderedDict((path, one) for path, one in self._data.items() if path in live)
        self._needed_for = {key: path for key, path in self._needed_for.items() if path in live}
        known = (one for found in self._deletes.values() for one in found)
        undecided = {one.key: one for one in known if one.key not in self._needed_for}
        self._take_needed(undecided, self._data)
        while wanted := self._wanted(metadata, data, undecided):
            contents = yield from read_manifests(wanted)
            read = {
                row.manifest_path: _Data.of(content, row, metadata)
                for row, content in zip(wanted, contents, strict=True)
            }
            self._take_needed(undecided, read)
            self._data.update(read)
            data = [row for row in data if row.manifest_path not in read]
            self._forget_data()
        return tuple(undecided)

    def _read_deletes(self, metadata: TableMetadata, rows: Sequence[ManifestFile]) -> Reading[None]:
        """Read the new manifests of deletes, those of the oldest first, up to the bound."""
        live = {row.manifest_path for row in rows}
        self._deletes = {path: one for path, one in self._deletes.items() if path in live}
        unread = [row for row in rows if row.manifest_path not in self._deletes]
        while unread and sum(map(len, self._deletes.values())) < self._deletes_max:
            batch, unread = unread[:READS_AT_ONCE], unread[READS_AT_ONCE:]
            contents = yield from read_manifests(batch)
            for row, content in zip(batch, contents, strict=True):
                entries = iter_entries(content, manifest_file=row)
                self._deletes[row.manifest_path] = tuple(
                    _Delete.of(entry, metadata) for entry in entries if entry.is_live
                )

    def _take_needed(
        self, undecided: dict[RemovedDelete, _Delete], read: Mapping[str, _Data]
    ) -> None:
        for path, data in read.items():
            needed = [one.key for one in undecided.values() if data.needs(one)]
            for key in needed:
                self._needed_for[key] = path
                del undecided[key]

    def _wanted(
        self,
        metadata: TableMetadata,
        data: Iterable[ManifestFile],
        undecided: Mapping[RemovedDelete, _Delete],
    ) -> list[ManifestFile]:
        """Return the next manifests to read, of those that may need an undecided delete file."""
        unread = (row for row in data if row.manifest_path not in self._data)
        scopes = _Scopes(metadata, undecided.values())
        return list(islice(filter(scopes.may_need, unread), READS_AT_ONCE))

    def _forget_data(self) -> None:
        files = sum(len(one.hashes) for one in self._data.values())
        while files > self._files_max:
            files -= len(self._data.popitem(last=False)[1].hashes)


class _Scopes:
    """The partitions that some delete files are for."""

    def __init__(self, metadata: TableMetadata, deletes: Iterable[_Delete]) -> None:
        self._metadata = metadata
        self._everywhere = -1
        self._newest: dict[int, int] = {}
        self._values: dict[int, dict[PartitionKey, tuple[object, ...]]] = {}
        for one in deletes:
            if one.partition is None:
                self._everywhere = max(self._everywhere, one.newest)
            else:
                newest = self._newest.get(one.spec_id, -1)
                self._newest[one.spec_id] = max(newest, one.newest)
                self._values.setdefault(one.spec_id, {})[one.partition] = one.values

    def may_need(self, row: ManifestFile) -> bool:
        """Return whether a manifest of data may hold a file that one of them applies to."""
        oldest, spec_id = row.min_sequence_number, row.partition_spec_id
        if oldest <= self._everywhere:
            return True
        if oldest > self._newest.get(spec_id, -1):
            return False
        values = self._values[spec_id]
        return len(values) > _PARTITIONS_MAX or may_hold_any(self._metadata, row, values.values())


def _oldest_first(rows: Iterable[ManifestFile], content: ManifestContent) -> list[ManifestFile]:
    """Return the manifests of one content that may list live files, those of old data first."""
    return sorted(live_manifests(rows, content), key=lambda row: row.min_sequence_number)
