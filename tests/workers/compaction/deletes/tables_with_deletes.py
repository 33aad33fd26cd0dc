"""A small table with deletes of each kind, in a folder: what a rewrite of deletes plans and writes,
without Spark, and what a reader reads afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa

from committer.iceberg.deletes.delete_index import DeleteIndex
from committer.iceberg.deletes.deletion_vector import DeletionVector
from committer.iceberg.deletes.deletion_vector_file import encode_deletion_vectors
from committer.iceberg.deletes.position_deletes import (
    POSITION_DELETE_SCHEMA,
    describe_position_deletes,
)
from committer.iceberg.entry.data_file import (
    DataFile,
    DataFileContent,
    ManifestEntry,
    ManifestEntryStatus,
)
from committer.iceberg.expressions.expression import ALWAYS_TRUE
from committer.iceberg.scan.scan_task import FileScanTask
from committer.iceberg.schema.partition_spec import PartitionSpec
from committer.iceberg.values.types import LongType, StringType
from tests.support.workers.reading import parquet_file, read_of, rows_of, table_of
from tests.support.workers.tables import optional, required, schema
from tests.support.workers.write_target import Target, names, spec_of
from workers.compaction.deletes.delete_groups import DeletesGroup
from workers.compaction.deletes.delete_positions import positions_to_write, replaced_deletes
from workers.compaction.deletes.live_deletes import LiveDeletes, delete_key
from workers.compaction.deletes.publish_deletes import newest_number
from workers.files.deletes.position_delete_writer import DeleteForm, PositionDeleteWriter
from workers.files.file_system import StoredFiles
from workers.files.store_access import USUAL_ACCESS
from workers.read.deletes.delete_cache import DeleteCache

TABLE = schema(required(1, "id", LongType()), optional(2, "region", StringType()))
KEYS = schema(required(1, "id", LongType()))
WHOLE = replace(spec_of(), spec_id=0)
BY_REGION = replace(spec_of((2, "region", "identity")), spec_id=1)


@dataclass(slots=True)
class Table:
    """`data`, `deletes`: the live files, as a snapshot has them. Numbers only rise."""

    folder: Path
    specs: tuple[PartitionSpec, ...] = (WHOLE, BY_REGION)
    data: list[ManifestEntry] = field(default_factory=list)
    deletes: list[ManifestEntry] = field(default_factory=list)
    number: int = 0
    _names: count[int] = field(default_factory=count)

    def append(self, ids: Sequence[int], region: str = "e", spec_id: int = 1) -> DataFile:
        regions = [region] * len(ids)
        return self._add(self.data, table_of(TABLE, id=ids, region=regions), region, spec_id)

    def delete_ids(self, ids: Iterable[int], region: str = "e", spec_id: int = 1) -> DataFile:
        rows = table_of(KEYS, id=list(ids))
        about = {"content": DataFileContent.EQUALITY_DELETES, "equality_ids": (1,)}
        return self._add(self.deletes, rows, region, spec_id, **about)

    def delete_positions(self, of: dict[str, list[int]], region: str = "e") -> DataFile:
        found = [(path, at) for path in sorted(of) for at in sorted(of[path])]
        columns = {"file_path": [p for p, _ in found], "pos": [n for _, n in found]}
        rows = table_of(POSITION_DELETE_SCHEMA, **columns)
        file = self._add(self.deletes, rows, region, 1)
        entry = self.deletes.pop()
        described = describe_position_deletes(file, of)
        self.deletes.append(replace(entry, data_file=described))
        return described

    def vector(self, of: DataFile, *positions: int) -> DataFile:
        path = f"file:{self.folder}/{next(self._names)}.puffin"
        vector = DeletionVector(positions)
        encoded = encode_deletion_vectors([(of, vector)], file_path=path, created_by="test")
        Path(path.removeprefix("file:")).write_bytes(encoded.content)
        self._list(self.deletes, encoded.delete_files[0])
        return encoded.delete_files[0]

    def _add(
        self, to: list[ManifestEntry], rows: pa.Table, region: str, spec_id: int, **about: Any
    ) -> DataFile:
        about |= {"spec_id": spec_id, "partition": (region,) if spec_id else ()}
        name = f"{next(self._names):04}.parquet"
        file = parquet_file(self.folder, rows, name=name, **about)
        self._list(to, file)
        return file

    def _list(self, to: list[ManifestEntry], file: DataFile) -> None:
        self.number += 1
        status = ManifestEntryStatus.ADDED
        to.append(ManifestEntry(status, 1, self.number, self.number, file))

    # --- What is read of it ----------------------------------------------------------------------

    def live(self) -> LiveDeletes:
        specs = {spec.spec_id: spec for spec in self.specs}
        index = DeleteIndex(self.deletes, specs=specs, schemas=[TABLE])
        tasks = (
            FileScanTask(
                entry.data_file,
                index.for_data_file(entry),
                ALWAYS_TRUE,
                (entry.status, 1, entry.sequence_number, entry.file_sequence_number),
            )
            for entry in self.data
        )
        return LiveDeletes(tuple(self.deletes), tuple(tasks))

    def rows(self) -> list[tuple[Any, ...]]:
        read = read_of(TABLE, specs=self.specs)
        return sorted(rows_of(read, *self.live().tasks, cache=DeleteCache()))

    # --- A rewrite of deletes --------------------------------------------------------------------

    def rewrite(self, group: DeletesGroup, form: DeleteForm) -> list[DataFile]:
        """Do what the tasks of a group and its request do."""
        read, files = read_of(TABLE, columns=(), specs=self.specs), StoredFiles(USUAL_ACCESS)
        found = [
            (task, positions)
            for task in group.tasks
            if (positions := positions_to_write(read, task, form, files, DeleteCache()))
        ]
        target = Target(f"file:{self.folder}", TABLE)
        specs = {spec.spec_id: spec for spec in self.specs}
        salted = names(salt=f"{next(self._names):04}")
        with PositionDeleteWriter(target, specs, salted, form) as writer:
            written = writer.write([(task.file, positions) for task, positions in found])
        removed = {delete_key(entry.data_file) for entry in group.removed}
        removed |= {delete_key(one) for task, _ in found for one in replaced_deletes(task, form)}
        numbers = {delete_key(one.data_file): one.sequence_number or 0 for one in self.deletes}
        number = newest_number(removed, numbers)
        self.deletes = [one for one in self.deletes if delete_key(one.data_file) not in removed]
        status = ManifestEntryStatus.ADDED
        self.number += 1
        self.deletes += (ManifestEntry(status, 2, number, self.number, file) for file in written)
        return written
