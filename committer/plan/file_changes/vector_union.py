"""Deletion vectors of a step, made to agree with those that the branch has by now.

A data file has one vector at most, and a vector holds all positions that were deleted before. So a
request's vector takes the place of the branch's, with the positions of both, unless the two changes
disagree about a row: one that an update has deleted lives on in the file that the update adds.
Source: docs/reference/iceberg-notes.md 6.7.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from committer.errors import InvalidMetadataError
from committer.iceberg.deletes.delete_index import PartitionKey, partition_of
from committer.iceberg.deletes.deletion_vector import DeletionVector
from committer.iceberg.deletes.deletion_vector_file import (
    decode_vector_of,
    encode_deletion_vectors,
)
from committer.iceberg.deletes.position_deletes import referenced_data_file
from committer.iceberg.entry.data_file import DataFile, DataFileContent, ManifestEntry
from committer.iceberg.values.locations import data_folder
from committer.plan.operations.change import Change, RemovedDelete, removed_delete
from committer.plan.operations.conflict import Conflict, ConflictCode
from committer.plan.operations.head import Head, ObjectRange
from committer.plan.operations.step_output import StepNames
from committer.plan.validation.history import removed_since
from committer.plan.validation.since import Since, since_base
from committer.ports.storage import NewObject

_CREATED_BY = "Frazil"
# As bits, the positions of half a billion rows.
_VECTOR_BYTES_MAX = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class StepVectors:
    """`added`: the vectors that the step lists, one for each data file. `superseded`: the delete
    files whose place they take. `gone`: those that a request names, but in whose place the branch
    has a vector by now, which is superseded.
    """

    added: tuple[DataFile, ...] = ()
    superseded: frozenset[RemovedDelete] = frozenset()
    gone: frozenset[RemovedDelete] = frozenset()
    objects: tuple[NewObject, ...] = ()


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A vector that a change adds."""

    change: Change
    file: DataFile


_ByPath = Mapping[str, Sequence[_Wanted]]


def unite_vectors(
    head: Head, changes: Sequence[Change], deletes: Iterable[ManifestEntry], names: StepNames
) -> StepVectors | Conflict:
    """Return the vectors of a step. `deletes`: the live delete files, at least all that may apply
    to the data files of its vectors, and those that the changes name.

    Vectors are read only where two have to be united: not where a change names the one that it
    replaces. Errors: `MissingObjectsError`.
    """
    wanted: defaultdict[str, list[_Wanted]] = defaultdict(list)
    for change in changes:
        for file in change.added_deletes():
            if file.is_deletion_vector and file.referenced_data_file is not None:
                wanted[file.referenced_data_file].append(_Wanted(change, file))
    live = _LiveDeletes.of(wanted, deletes)
    conflict = _uncovered_positions(head, wanted, live)
    if conflict is not None:
        return conflict
    to_unite = {path: vectors for path, vectors in wanted.items() if live.differs(path, vectors)}
    union = _Union(head, to_unite, live)
    united = union.united()
    if isinstance(united, Conflict):
        return united
    plain = [one.file for path in wanted for one in wanted[path] if path not in to_unite]
    kept = [one for one in united.values() if isinstance(one, DataFile)]
    written = [
        (replace(to_unite[path][0].file, file_path=path), one)
        for path, one in united.items()
        if isinstance(one, DeletionVector)
    ]
    objects: tuple[NewObject, ...] = ()
    if written:
        location = _puffin_location(head, names)
        encoded = encode_deletion_vectors(written, file_path=location, created_by=_CREATED_BY)
        kept += encoded.delete_files
        objects = (NewObject(location, encoded.content),)
    return StepVectors((*plain, *kept), live.superseded, union.replaced(), objects)


def _puffin_location(head: Head, names: StepNames) -> str:
    folder = data_folder(head.metadata.location, head.metadata.properties)
    return f"{folder}/{names.attempt_uuid}-{names.of_step(0)}.puffin"


# --- What the branch has -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _LiveDeletes:
    """The live deletes by position of the data files that vectors are for.

    `shared`: files for all data files of a partition.
    """

    keys: frozenset[RemovedDelete]
    vectors: Mapping[str, ManifestEntry]
    positions: Mapping[str, Sequence[ManifestEntry]]
    shared: Mapping[PartitionKey, Sequence[ManifestEntry]]

    @classmethod
    def of(cls, wanted: _ByPath, deletes: Iterable[ManifestEntry]) -> _LiveDeletes:
        keys: set[RemovedDelete] = set()
        vectors: dict[str, ManifestEntry] = {}
        positions: defaultdict[str, list[ManifestEntry]] = defaultdict(list)
        shared: defaultdict[PartitionKey, list[ManifestEntry]] = defaultdict(list)
        for entry in deletes if wanted else ():
            file = entry.data_file
            keys.add(removed_delete(file))
            path = referenced_data_file(file)
            if file.content != DataFileContent.POSITION_DELETES:
                continue
            if path is None:
                shared[partition_of(file)].append(entry)
            elif path in wanted and file.is_deletion_vector:
                vectors[path] = entry
            elif path in wanted:
                positions[path].append(entry)
        return cls(frozenset(keys), vectors, positions, shared)

    @property
    def superseded(self) -> frozenset[RemovedDelete]:
        entries = [*self.vectors.values(), *(e for found in self.positions.values() for e in found)]
        return frozenset(removed_delete(entry.data_file) for entry in entries)

    def differs(self, path: str, vectors: Sequence[_Wanted]) -> bool:
        """Return whether the vectors of a data file have to be united: there are several, or one
        whose client did not know the one that the branch has."""
        if len(vectors) > 1:
            return True
        now = self.vectors.get(path)
        named = vectors[0].change.removed_delete_files
        return now is not None and removed_delete(now.data_file) not in named


def _since(change: Change, head: Head) -> Since | Conflict | None:
    """Return what came after a change's base; None: its client has read nothing."""
    return since_base(change.base, head) if change.base.is_known else None


def _uncovered_positions(head: Head, wanted: _ByPath, live: _LiveDeletes) -> Conflict | None:
    """Find position deletes of before version 3 that a new vector may lack: readers ignore them
    once there is a vector, and only the files themselves say what they delete.

    A vector of the branch has them already. What its client has read, a new one has.
    """
    for path, vectors in wanted.items():
        if path in live.vectors:
            continue
        for one in vectors:
            deletes = [*live.positions.get(path, ()), *live.shared.get(partition_of(one.file), ())]
            since = _since(one.change, head) if deletes else None
            if isinstance(since, Conflict):
                return since
            if not deletes or (since is None and path in _added_data(one.change)):
                continue
            for entry in deletes:
                if since is None or since.is_new(entry):
                    return Conflict(
                        ConflictCode.SECOND_VECTOR,
                        f"data file {path} has position deletes in {entry.data_file.file_path} that"
                        " its new deletion vector may lack, as they are newer than its base",
                        entry.snapshot_id,
                        (path,),
                    )
    return None


def _added_data(change: Change) -> frozenset[str]:
    return frozenset(path for one in change.added_data for path in one.walked.paths)


# --- The union -----------------------------------------------------------------------------------


class _Union:
    """Unites vectors, with the bytes of all of them read at once."""

    def __init__(self, head: Head, to_unite: _ByPath, live: _LiveDeletes) -> None:
        self._head, self._to_unite, self._live = head, to_unite, live
        self._vectors: dict[RemovedDelete, DeletionVector] = {}
        # Of the data files to unite, the deletes that changes name and the branch has no more.
        self._former: dict[RemovedDelete, DataFile] = {}

    def united(self) -> dict[str, DeletionVector | DataFile] | Conflict:
        """Return for each data file a vector to write, or an added one that has all positions."""
        if not self._to_unite:
            return {}
        live = filter(None, map(self._live.vectors.get, self._to_unite))
        files = [entry.data_file for entry in live]
        files += (one.file for vectors in self._to_unite.values() for one in vectors)
        conflict = self._find_former() or self._read(files)
        if conflict is not None:
            return conflict
        united: dict[str, DeletionVector | DataFile] = {}
        for path, vectors in self._to_unite.items():
            one = self._unite(path, vectors)
            if isinstance(one, Conflict):
                return one
            united[path] = one
        return united

    def replaced(self) -> frozenset[RemovedDelete]:
        """Return the named deletes in whose place the branch has the vectors that are united."""
        return frozenset(self._former)

    def _find_former(self) -> Conflict | None:
        """Look up the deletes that changes name and the branch has no more: the entry by which a
        snapshot has removed one says which data file it was for."""
        for change in {id(o.change): o.change for v in self._to_unite.values() for o in v}.values():
            gone = change.removed_delete_files - self._live.keys
            since = _since(change, self._head) if gone else None
            if isinstance(since, Conflict):
                return since
            if since is None:
                continue
            for entry in removed_since(self._head, since) or ():
                key = removed_delete(entry.data_file)
                if key in gone and referenced_data_file(entry.data_file) in self._to_unite:
                    self._former[key] = entry.data_file
        return None

    def _read(self, files: Sequence[DataFile]) -> Conflict | None:
        large = [one for one in files if (one.content_size_in_bytes or 0) > _VECTOR_BYTES_MAX]
        if large:
            return _unreadable(large[0], f"one has {large[0].content_size_in_bytes} bytes")
        contents = self._head.contents([_range_of(file) for file in files])
        for file, content in zip(files, contents, strict=True):
            try:
                self._vectors[removed_delete(file)] = decode_vector_of(file, content)
            except InvalidMetadataError as error:
                # The writer does not matter: this change cannot land, and no other is in its way.
                return _unreadable(file, str(error))
        return None

    def _unite(self, path: str, vectors: Sequence[_Wanted]) -> DeletionVector | DataFile | Conflict:
        live = self._live.vectors.get(path)
        now = DeletionVector() if live is None else self._vectors[removed_delete(live.data_file)]
        others_update = False
        for one in vectors:
            new = self._vectors[removed_delete(one.file)]
            if now & new:
                conflict = self._disagreement(path, one.change, now, new, others_update)
                if conflict is not None:
                    return conflict
            now = now | new
            others_update = others_update or one.change.updates_rows
        added = (one.file for one in vectors)
        return next((one for one in added if self._vectors[removed_delete(one)] == now), now)

    def _disagreement(
        self, path: str, change: Change, now: DeletionVector, new: DeletionVector, updates: bool
    ) -> Conflict | None:
        """Compare what others and this change have deleted since its base: the same rows only if
        none of them writes those again. `updates`: a change before it in the step does."""
        since = _since(change, self._head)
        if isinstance(since, Conflict):
            return since
        if not (change.updates_rows or updates or (since is not None and _has_updates(since))):
            return None
        base = self._base(path, change, since)
        if isinstance(base, Conflict):
            return base
        if not (now - base) & (new - base):
            return None
        live = self._live.vectors.get(path)
        return Conflict(
            ConflictCode.SECOND_VECTOR,
            f"rows of data file {path} were deleted by this change and by one since its base, and"
            " one of the two has written them again",
            None if live is None else live.snapshot_id,
            (path,),
        )

    def _base(self, path: str, change: Change, since: Since | None) -> DeletionVector | Conflict:
        """Return the positions that were deleted when the client has read the table."""
        live = self._live.vectors.get(path)
        if live is not None and since is not None and not since.is_new(live):
            return self._vectors[removed_delete(live.data_file)]
        for key in change.removed_delete_files & self._former.keys():
            file = self._former[key]
            if file.is_deletion_vector and file.referenced_data_file == path:
                return self._read([file]) or self._vectors[key]
        return DeletionVector()


def _unreadable(file: DataFile, why: str) -> Conflict:
    path = file.referenced_data_file or file.file_path
    message = f"deletion vectors of data file {path} cannot be united: {why}"
    return Conflict(ConflictCode.SECOND_VECTOR, message, paths=(path,))


def _range_of(file: DataFile) -> ObjectRange:
    return ObjectRange(file.file_path, file.content_offset or 0, file.content_size_in_bytes or 0)


def _has_updates(since: Since) -> bool:
    """Return whether rows that were deleted since a base may have been written again.

    No label is asked: a snapshot that adds data and deletes may have moved rows. What has expired
    may have done anything.
    """
    both = {"added-data-files", "added-delete-files"}
    return not since.is_whole or any(
        one.summary is None or both <= one.summary.keys() for one in since.later
    )
