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

from committer.iceberg.deletes.delete_index import PartitionKey, partition_of
from committer.iceberg.deletes.deletion_vector import DeletionVector, decode_deletion_vector
from committer.iceberg.deletes.deletion_vector_file import (
    decode_vector_of,
    encode_deletion_vectors,
    vector_range,
)
from committer.iceberg.deletes.position_deletes import referenced_data_file
from committer.iceberg.deletes.puffin import decode_puffin_footer
from committer.iceberg.entry.data_file import DataFile, DataFileContent, ManifestEntry
from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.values.locations import data_folder
from committer.plan.operations.change import Change, RemovedDelete, removed_delete
from committer.plan.operations.conflict import Conflict, ConflictCode
from committer.plan.operations.head import Head, ObjectRange
from committer.plan.operations.step_output import StepNames
from committer.ports.storage import NewObject

_CREATED_BY = "Frazil"


@dataclass(frozen=True, slots=True)
class StepVectors:
    """`added`: the vectors that the step lists, one for each data file. `superseded`: the delete
    files whose place they take. `gone`: those that a request names, but whose place another vector
    has taken, that is superseded now.
    """

    added: tuple[DataFile, ...] = ()
    superseded: frozenset[RemovedDelete] = frozenset()
    gone: frozenset[RemovedDelete] = frozenset()
    objects: tuple[NewObject, ...] = ()


def added_deletes(change: Change) -> Iterable[DataFile]:
    """Yield the delete files that a change adds."""
    for manifest in change.added:
        for file in manifest.walked.delete_files:
            yield replace(file, spec_id=manifest.spec_id)


def base_number(change: Change, head: Head) -> int | None:
    """Return the sequence number of the state that the client has read; None: it has read nothing.
    If only an id is known, and its snapshot not any more, anything may have happened since."""
    if change.base.sequence_number is not None or change.base.snapshot_id is None:
        return change.base.sequence_number
    snapshot = head.metadata.snapshot_by_id(change.base.snapshot_id)
    return 0 if snapshot is None else snapshot.sequence_number


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
    replaces. Errors: `MissingObjectsError`; `InvalidMetadataError` for a vector that is none.
    """
    wanted: defaultdict[str, list[_Wanted]] = defaultdict(list)
    for change in changes:
        for file in added_deletes(change):
            if file.is_deletion_vector and file.referenced_data_file is not None:
                wanted[file.referenced_data_file].append(_Wanted(change, file))
    live = _LiveDeletes.of(wanted, deletes)
    conflict = _uncovered_positions(head, wanted, live)
    if conflict is not None:
        return conflict
    to_unite = {path: vectors for path, vectors in wanted.items() if live.differs(path, vectors)}
    united = _Union(head, to_unite, live).united()
    if isinstance(united, Conflict):
        return united
    plain = [one.file for path in wanted for one in wanted[path] if path not in to_unite]
    kept, written = _listed(to_unite, united)
    path = f"{data_folder(head.metadata.location, head.metadata.properties)}/"
    path += f"{names.attempt_uuid}-{names.of_step(0)}.puffin"
    objects: tuple[NewObject, ...] = ()
    if written:
        encoded = encode_deletion_vectors(written, file_path=path, created_by=_CREATED_BY)
        kept += encoded.delete_files
        objects = (NewObject(path, encoded.content),)
    return StepVectors((*plain, *kept), live.superseded, _replaced(to_unite, united), objects)


def _listed(
    to_unite: _ByPath, united: Mapping[str, _United]
) -> tuple[list[DataFile], list[tuple[DataFile, DeletionVector]]]:
    """Return the vectors that hold all positions as they are, and those to write, with the data
    files that they are for."""
    kept: list[DataFile] = []
    written: list[tuple[DataFile, DeletionVector]] = []
    for path, one in united.items():
        if one.whole is not None:
            kept.append(one.whole)
        else:
            written.append((replace(to_unite[path][0].file, file_path=path), one.vector))
    return kept, written


def _replaced(to_unite: _ByPath, united: Mapping[str, _United]) -> frozenset[RemovedDelete]:
    return frozenset[RemovedDelete]().union(*(united[path].bases for path in to_unite))


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
            base = base_number(one.change, head)
            if not deletes or (base is None and path in _added_data(one.change)):
                continue
            for entry in deletes:
                if base is None or (entry.sequence_number or 0) > base:
                    return Conflict(
                        ConflictCode.SECOND_VECTOR,
                        f"data file {path} has position deletes in {entry.data_file.file_path} that"
                        " its new deletion vector may lack, as they are newer than its base",
                        entry.snapshot_id,
                        (path,),
                    )
    return None


def _added_data(change: Change) -> frozenset[str]:
    data = (one.walked.paths for one in change.added if not one.walked.delete_files)
    return frozenset(path for paths in data for path in paths)


# --- The union -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _United:
    """All positions of one data file. `whole`: an added vector that has them all. `bases`: the
    vectors that its changes name, and that the branch has no more."""

    vector: DeletionVector
    whole: DataFile | None
    bases: frozenset[RemovedDelete]


# What a client has read and its change names: the vector of a data file.
_Base = tuple[RemovedDelete, DeletionVector]


class _Union:
    """Unites vectors, with the bytes of all of them read at once."""

    def __init__(self, head: Head, to_unite: _ByPath, live: _LiveDeletes) -> None:
        self._head, self._to_unite, self._live = head, to_unite, live
        self._bases: dict[tuple[int, str], _Base] = {}
        self._vectors: dict[RemovedDelete, DeletionVector] = {}

    def united(self) -> dict[str, _United] | Conflict:
        self._read()
        united: dict[str, _United] = {}
        for path, vectors in self._to_unite.items():
            one = self._unite(path, vectors)
            if isinstance(one, Conflict):
                return one
            united[path] = one
        return united

    def _read(self) -> None:
        files = [one.file for vectors in self._to_unite.values() for one in vectors]
        live = (self._live.vectors.get(path) for path in self._to_unite)
        files += (entry.data_file for entry in live if entry is not None)
        changes = {id(one.change): one.change for v in self._to_unite.values() for one in v}
        named = [(key, one) for key, change in changes.items() for one in self._not_live(change)]
        ranges = [ObjectRange(file.file_path, *vector_range(file)) for file in files]
        # The footer says which data file a vector is for.
        ranges += [ObjectRange(one.file_path, one.content_offset or 0) for _, one in named]
        contents = self._head.contents(ranges)
        for file, content in zip(files, contents, strict=False):
            self._vectors[removed_delete(file)] = decode_vector_of(file, content)
        for (key, one), content in zip(named, contents[len(files) :], strict=True):
            for path, vector in _vector_at(one, content):
                self._bases[key, path] = (one, vector)

    def _not_live(self, change: Change) -> list[RemovedDelete]:
        """Return the vectors that a change names and the branch has no more."""
        gone = change.removed_delete_files - self._live.keys
        return sorted(one for one in gone if one.content_offset is not None)

    def _unite(self, path: str, vectors: Sequence[_Wanted]) -> _United | Conflict:
        live = self._live.vectors.get(path)
        now = DeletionVector() if live is None else self._vectors[removed_delete(live.data_file)]
        bases = [found for one in vectors if (found := self._bases.get((id(one.change), path)))]
        others_update = False
        for one in vectors:
            new = self._vectors[removed_delete(one.file)]
            conflict = self._conflict(path, one.change, live, now, new, others_update)
            if conflict is not None:
                return conflict
            now = now | new
            others_update = others_update or one.change.updates_rows
        added = (one.file for one in vectors)
        whole = next((one for one in added if self._vectors[removed_delete(one)] == now), None)
        return _United(now, whole, frozenset(one for one, _ in bases))

    def _conflict(
        self,
        path: str,
        change: Change,
        live: ManifestEntry | None,
        now: DeletionVector,
        new: DeletionVector,
        others_update: bool,
    ) -> Conflict | None:
        """Compare what others and this change have deleted since its base: the same rows only if
        none of them writes those again."""
        number = base_number(change, self._head)
        if live is not None and number is not None and (live.sequence_number or 0) <= number:
            base = self._vectors[removed_delete(live.data_file)]
        else:
            base = self._bases.get((id(change), path), (None, DeletionVector()))[1]
        if not (now - base) & (new - base):
            return None
        if not change.updates_rows and not others_update and not _has_updates(self._head, number):
            return None
        return Conflict(
            ConflictCode.SECOND_VECTOR,
            f"rows of data file {path} were deleted by this change and by one since its base, and"
            " one of the two has written them again",
            None if live is None else live.snapshot_id,
            (path,),
        )


def _vector_at(one: RemovedDelete, content: bytes) -> Iterable[tuple[str, DeletionVector]]:
    """Yield the data file and the vector of a delete file that is not live any more. `content`:
    from its place to the end of the file; empty if the file is gone, then there is none."""
    if not content:
        return
    where = f"{one.file_path}: the deletion vector at {one.content_offset}"
    for blob in decode_puffin_footer(content, where=where).blobs:
        path = blob.properties.get("referenced-data-file")
        place = blob.offset, blob.length
        if path is not None and place == (one.content_offset, one.content_size_in_bytes):
            yield path, decode_deletion_vector(content[: blob.length], where=where)


def _has_updates(head: Head, since: int | None) -> bool:
    """Return whether rows that were deleted since a sequence number may have been written again.

    No label is asked: a snapshot that adds data and deletes may have moved rows. What has expired
    may have done anything. None: the client has read nothing that others could have moved.
    """
    if since is None:
        return False
    snapshot: Snapshot | None = head.snapshot
    while snapshot is not None and snapshot.sequence_number > since:
        summary = snapshot.summary or {"added-data-files": "", "added-delete-files": ""}
        if "added-data-files" in summary and "added-delete-files" in summary:
            return True
        if snapshot.parent_snapshot_id is None:
            return False
        snapshot = head.metadata.snapshot_by_id(snapshot.parent_snapshot_id)
    return snapshot is None and head.snapshot is not None
