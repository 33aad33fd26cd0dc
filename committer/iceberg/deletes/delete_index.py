"""Finds the delete files that apply to a data file.

Source: the specification, "Scan Planning" (the scope rules of deletes);
docs/reference/iceberg-notes.md 6.6, 6.7.
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Generic, TypeVar

from committer.errors import InvalidMetadataError
from committer.iceberg.deletes.equality_deletes import (
    ColumnFacts,
    EqualityDelete,
    column_facts,
    compared_fields,
)
from committer.iceberg.deletes.position_deletes import referenced_data_file
from committer.iceberg.entry.data_file import DataFile, DataFileContent, ManifestEntry
from committer.iceberg.schema.partition_spec import PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.types import NestedField

# The spec id and the partition tuple, so that equal keys are equal partitions.
PartitionKey = tuple[int, tuple[object, ...]]

_Delete = TypeVar("_Delete")
_DOUBLE = struct.Struct("<d")
_by_path = attrgetter("file_path")


class _Deletes(Generic[_Delete]):
    """Deletes in ascending order of their sequence numbers."""

    __slots__ = ("_deletes", "_numbers")

    def __init__(self, deletes: list[tuple[int, _Delete]]) -> None:
        deletes.sort(key=lambda delete: delete[0])
        self._numbers = [number for number, _ in deletes]
        self._deletes = [delete for _, delete in deletes]

    def since(self, number: int) -> list[_Delete]:
        """Return those of this sequence number and of greater ones, as positions are deleted."""
        return self._deletes[bisect_left(self._numbers, number) :]

    def after(self, number: int) -> list[_Delete]:
        """Return those of greater sequence numbers, as equal values are deleted."""
        return self._deletes[bisect_right(self._numbers, number) :]


class DeleteIndex:
    """The live delete files of a snapshot, looked up by data file.

    * A deletion vector applies to its `referenced_data_file`, and hides all position delete files.
    * A position delete file applies to the data file that it names, else to all of its partition.
    * An equality delete file applies to all of its partition, and everywhere if its spec is
      unpartitioned; not where column metrics prove that no row can be equal.

    A look-up costs a few dictionary reads, and a comparison of metrics for each equality delete.
    """

    def __init__(
        self,
        deletes: Iterable[ManifestEntry],
        *,
        specs: Mapping[int, PartitionSpec],
        schemas: Iterable[Schema],
    ) -> None:
        """Index `deletes`: live entries with what they inherit. `specs` by id, and all `schemas`,
        are the table's: deletes may compare columns that were dropped since.

        Errors: `InvalidMetadataError` for two vectors of one data file, a vector without a data
        file, an equality delete without known columns, an entry without a sequence number.
        """
        fields = compared_fields(schemas)
        self._specs = specs
        self._vectors: dict[str, tuple[int, DataFile]] = {}
        by_path: defaultdict[str, list[tuple[int, DataFile]]] = defaultdict(list)
        by_partition: defaultdict[PartitionKey, list[tuple[int, DataFile]]] = defaultdict(list)
        equalities: defaultdict[PartitionKey, list[tuple[int, EqualityDelete]]] = defaultdict(list)
        everywhere: list[tuple[int, EqualityDelete]] = []
        for entry in deletes:
            file, number = entry.data_file, _sequence_number(entry)
            if file.content == DataFileContent.EQUALITY_DELETES:
                delete = EqualityDelete.of(file, fields)
                if self._spec(file).is_unpartitioned:
                    everywhere.append((number, delete))
                else:
                    equalities[partition_of(file)].append((number, delete))
            elif file.is_deletion_vector:
                self._add_vector(file, number)
            elif file.content == DataFileContent.POSITION_DELETES:
                path = referenced_data_file(file)
                group = by_partition[partition_of(file)] if path is None else by_path[path]
                group.append((number, file))
            else:
                raise InvalidMetadataError(f"{file.file_path}: a data file among the deletes")
        self._by_path = {path: _Deletes(found) for path, found in by_path.items()}
        self._by_partition = {key: _Deletes(found) for key, found in by_partition.items()}
        self._equalities = {key: _Deletes(found) for key, found in equalities.items()}
        self._everywhere = _Deletes(everywhere) if everywhere else None

    @property
    def has_equality_deletes(self) -> bool:
        """Only these need the metrics of data files."""
        return bool(self._equalities) or self._everywhere is not None

    @property
    def is_empty(self) -> bool:
        has_positions = self._vectors or self._by_path or self._by_partition
        return not has_positions and not self.has_equality_deletes

    def for_data_file(self, entry: ManifestEntry) -> tuple[DataFile, ...]:
        """Return the delete files that a reader of this data file applies, sorted by path.

        Errors: `InvalidMetadataError` for a vector, or a delete file that names this data file, of
        another partition, and for a vector older than its data: the metadata is damaged, and
        leaving it out would bring deleted rows back.
        """
        file, number = entry.data_file, _sequence_number(entry)
        found = self._equality_deletes(file, number) if self.has_equality_deletes else []
        vector = self._vectors.get(file.file_path)
        if vector is None:
            found += self._position_deletes(file, number)
        else:
            found.append(_vector_for(file, number, vector))
        if len(found) > 1:
            found.sort(key=_by_path)
        return tuple(found)

    def _add_vector(self, file: DataFile, number: int) -> None:
        path = file.referenced_data_file
        if path is None:
            raise InvalidMetadataError(
                f"{file.file_path}: a deletion vector without `referenced_data_file`"
            )
        first = self._vectors.setdefault(path, (number, file))[1]
        if first is not file:
            raise InvalidMetadataError(
                f"{path}: two deletion vectors, in {first.file_path} and {file.file_path},"
                " expected at most one"
            )

    def _position_deletes(self, file: DataFile, number: int) -> list[DataFile]:
        found: list[DataFile] = []
        if self._by_partition and (group := self._by_partition.get(partition_of(file))):
            found = group.since(number)
        if named := self._by_path.get(file.file_path):
            for delete in named.since(number):
                _check_partition(delete, file)
                found.append(delete)
        return found

    def _equality_deletes(self, file: DataFile, number: int) -> list[DataFile]:
        candidates: list[EqualityDelete] = []
        if self._everywhere is not None:
            candidates = self._everywhere.after(number)
        if self._equalities and (group := self._equalities.get(partition_of(file))):
            candidates += group.after(number)
        if not candidates:
            return []
        known: dict[int, ColumnFacts] = {}

        def facts(column: NestedField) -> ColumnFacts:
            answer = known.get(column.field_id)
            if answer is None:
                answer = known[column.field_id] = column_facts(file, column)
            return answer

        return [delete.file for delete in candidates if delete.may_delete_from(facts)]

    def _spec(self, file: DataFile) -> PartitionSpec:
        spec = self._specs.get(file.spec_id)
        if spec is None:
            raise InvalidMetadataError(
                f"{file.file_path}: partition spec {file.spec_id} is not in the table metadata"
            )
        return spec


def _sequence_number(entry: ManifestEntry) -> int:
    """Return the entry's data sequence number. Errors: `InvalidMetadataError` if it has none."""
    number = entry.sequence_number
    if number is None:
        raise InvalidMetadataError(
            f"{entry.data_file.file_path}: expected an entry with a sequence number"
        )
    return number


def _vector_for(file: DataFile, number: int, vector: tuple[int, DataFile]) -> DataFile:
    vector_number, delete = vector
    if vector_number < number:
        raise InvalidMetadataError(
            f"{file.file_path}: its deletion vector in {delete.file_path} has sequence number"
            f" {vector_number}, expected at least {number}"
        )
    _check_partition(delete, file)
    return delete


def _check_partition(delete: DataFile, file: DataFile) -> None:
    if partition_of(delete) != partition_of(file):
        raise InvalidMetadataError(
            f"{file.file_path}: the deletes in {delete.file_path} name this file, but are of"
            " another partition"
        )


def partition_of(file: DataFile) -> PartitionKey:
    """Return a file's partition as a key."""
    return partition_key_of(file.spec_id, file.partition)


def partition_key_of(spec_id: int, partition: tuple[object, ...]) -> PartitionKey:
    """Return a partition as a key. spec: Scan Planning, note 3:
    floats are equal by their bits, and all NaN are one."""
    if float in map(type, partition):
        partition = tuple(
            _float_key(value) if isinstance(value, float) else value for value in partition
        )
    return spec_id, partition


def _float_key(value: float) -> object:
    return "NaN" if math.isnan(value) else _DOUBLE.pack(value)
