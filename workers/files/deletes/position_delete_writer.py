"""Writes the deleted positions of data files: into deletion vectors, or position delete files.

The positions are known whole: what earlier deletes of a data file say is united with them before.
Source: the specification, "Position Delete Files" and "Deletion Vectors".
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import pyarrow as pa

from committer.iceberg.deletes.deletion_vector import DeletionVector
from committer.iceberg.deletes.deletion_vector_file import encode_deletion_vectors
from committer.iceberg.deletes.position_deletes import (
    POSITION_DELETE_SCHEMA,
    describe_position_deletes,
)
from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.schema.partition_spec import PartitionSpec, partition_path
from committer.iceberg.schema.sort_order import UNSORTED
from committer.iceberg.values.locations import data_file_location, data_folder
from workers.arrow.arrow_schema import arrow_schema
from workers.files.deletes.equality_delete_writer import delete_properties
from workers.files.file_system import open_file_system
from workers.files.file_writer import Discarding, FileNames
from workers.files.formats.choose_format import choose_format
from workers.files.formats.file_format import OpenFile
from workers.files.write_target import WriteTarget

# How positions are stored: a vector for each data file, a file for each, or one for each partition.
DeleteForm = Literal["vectors", "files", "partitions"]
_CREATED_BY = "Frazil"
_ROWS_AT_ONCE = 1 << 20
_SCHEMA = arrow_schema(POSITION_DELETE_SCHEMA)

Deleted = tuple[DataFile, DeletionVector]


class PositionDeleteWriter(Discarding):
    """Writes one task's delete files. Use it as a context manager: an error inside discards them.

    `specs`: of the data files, by id.
    """

    def __init__(
        self,
        target: WriteTarget,
        specs: Mapping[int, PartitionSpec],
        names: FileNames,
        form: DeleteForm,
    ) -> None:
        self._target, self._specs, self._names, self._form = target, specs, names, form
        properties = delete_properties(target.properties)
        self._format = choose_format(properties, _SCHEMA, POSITION_DELETE_SCHEMA, UNSORTED)
        folder = data_folder(target.location, target.properties)
        self._files = open_file_system(folder, target.access)
        self._locations: list[str] = []

    def write(self, deleted: Sequence[Deleted]) -> list[DataFile]:
        """Write the positions of these data files, each of which has some; return the delete files,
        which are durable then. Called once."""
        if not deleted:
            return []
        if self._form == "vectors":
            written = self._vectors(deleted)
        elif self._form == "files":
            written = [self._file([each]) for each in deleted]
        else:
            by_partition: defaultdict[object, list[Deleted]] = defaultdict(list)
            for each in deleted:
                by_partition[each[0].spec_id, each[0].partition].append(each)
            written = [self._file(found) for found in by_partition.values()]
        self._files.make_durable(self._locations)
        return written

    def _vectors(self, deleted: Sequence[Deleted]) -> list[DataFile]:
        location = self._location("", "-deletes.puffin")
        encoded = encode_deletion_vectors(deleted, file_path=location, created_by=_CREATED_BY)
        with self._files.create(location) as sink:
            sink.write(encoded.content)
        return list(encoded.delete_files)

    def _file(self, deleted: Sequence[Deleted]) -> DataFile:
        """Write one file, sorted by path and position."""
        first = deleted[0][0]
        spec = self._specs[first.spec_id]
        path = partition_path(spec, self._target.schema, first.partition)
        location = self._location(path, f"-deletes.{self._format.name}")
        positions = {file.file_path: vector for file, vector in deleted}
        with self._files.create(location) as sink:
            content: OpenFile | None = None
            for file_path in sorted(positions):
                for rows in _rows(file_path, positions[file_path]):
                    content = content or self._format.open(sink, rows)
                    content.write(rows)
            if content is not None:
                content.close()
            size_bytes = int(sink.tell())
        file = DataFile(
            file_path=location,
            file_format=self._format.name.upper(),
            partition=first.partition,
            record_count=0,
            file_size_in_bytes=size_bytes,
            spec_id=first.spec_id,
        )
        return describe_position_deletes(file, positions)

    def _location(self, path: str, ending: str) -> str:
        name = self._names.name(len(self._locations) + 1, ending)
        location = data_file_location(self._target.location, self._target.properties, path, name)
        # Before the file is made: an interruption between the two deletes it.
        self._locations.append(location)
        return location

    def discard(self) -> None:
        for location in self._locations:
            with contextlib.suppress(Exception):
                self._files.delete(location)


def _rows(file_path: str, vector: DeletionVector) -> Sequence[pa.Table]:
    positions = pa.array(np.frombuffer(vector.to_array(), np.int64))
    paths = pa.array([file_path], pa.string())
    tables = []
    for start in range(0, len(positions), _ROWS_AT_ONCE):
        part = positions.slice(start, _ROWS_AT_ONCE)
        names = paths.take(pa.nulls(len(part), pa.int32()).fill_null(0))
        tables.append(pa.Table.from_arrays([names, part], schema=_SCHEMA))
    return tables
