"""A branch of a table with its live files, and the files of rows and deletes that a client writes
for it.

A row is the values of its columns but the id, by the column's field id less 2; the last ones may be
absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from committer.iceberg.deletes.deletion_vector import DeletionVector
from committer.iceberg.deletes.deletion_vector_file import (
    decode_vector_of,
    encode_deletion_vectors,
    vector_range,
)
from committer.iceberg.entry.data_file import DataFile, DataFileContent, ManifestEntry
from committer.iceberg.manifest.manifest import decode_manifest
from committer.iceberg.manifest.manifest_list import ManifestFile, decode_manifest_list
from committer.ports.pointer_swap import LoadedTable
from committer.request.needs import Needs, RemovedDeleteFile
from tests.support.integration.readers import local
from tests.support.integration.traffic import write_rows
from workers.arrow.arrow_schema import arrow_schema
from workers.requests.written_epoch import WrittenEpoch

Row = tuple[object, ...]
Rows = Mapping[int, Row]
_PATH = pa.field("file_path", pa.string(), False, metadata={"PARQUET:field_id": "2147483546"})
_POSITION = pa.field("pos", pa.int64(), False, metadata={"PARQUET:field_id": "2147483545"})
_ID = pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})
_REGION_ID = 2


def value_of(row: Row, field_id: int) -> object:
    """Return the value of a column: null where the row is older than it."""
    return row[field_id - 2] if field_id - 2 < len(row) else None


@dataclass(frozen=True, slots=True)
class ChangingState:
    """A branch of a table with its live files."""

    table: LoadedTable
    branch: str
    entries: Sequence[ManifestEntry]

    @classmethod
    def of(cls, table: LoadedTable, branch: str) -> ChangingState:
        rows = manifests_of(table, branch)
        entries = [
            entry
            for row in rows
            for entry in decode_manifest(read(row.manifest_path), manifest_file=row).entries
            if entry.is_live
        ]
        return cls(table, branch, entries)

    @property
    def data(self) -> dict[str, DataFile]:
        live = (entry.data_file for entry in self.entries)
        return {one.file_path: one for one in live if one.content is DataFileContent.DATA}

    @property
    def vectors(self) -> dict[str, DataFile]:
        """The deletion vectors, by their data files."""
        live = (entry.data_file for entry in self.entries if entry.data_file.is_deletion_vector)
        return {one.referenced_data_file or "": one for one in live}

    def deletes(self, content: DataFileContent) -> list[ManifestEntry]:
        return [entry for entry in self.entries if entry.data_file.content is content]

    def data_of(self, region: object) -> tuple[str, ...]:
        """Return the data files of a region, of any spec."""
        return tuple(path for path, file in self.data.items() if self.region_of(file) == region)

    def region_of(self, file: DataFile) -> object:
        fields = self.table.metadata.spec_by_id(file.spec_id).fields
        names = [(one.source_ids, str(one.transform)) for one in fields]
        return file.partition[names.index(((_REGION_ID,), "identity"))]

    @property
    def has_vectors(self) -> bool:
        return self.table.metadata.format_version >= 3

    @property
    def sequence_number(self) -> int:
        head = self.table.metadata.branch_head(self.branch)
        return head.sequence_number if head else 0

    def based(self, **needs: object) -> Needs:
        head = self.table.metadata.branch_head(self.branch)
        base = {
            "base_snapshot_id": head.snapshot_id if head else 0,
            "base_sequence_number": self.sequence_number,
        }
        return Needs.model_validate({**base, **needs}, by_name=True)

    # --- Files of rows ---------------------------------------------------------------------------

    def with_rows(self, epoch: WrittenEpoch, rows: Rows) -> WrittenEpoch:
        if not rows:
            return epoch
        current = self.table.metadata.current_schema
        columns = [
            list(rows)
            if field.field_id == 1
            else [value_of(r, field.field_id) for r in rows.values()]
            for field in current.fields
        ]
        return write_rows(self.table, epoch, pa.record_batch(columns, schema=arrow_schema(current)))

    # --- Deletes by position ---------------------------------------------------------------------

    def position_deletes(
        self, epoch: WrittenEpoch, ids: set[int]
    ) -> tuple[list[DataFile], tuple[RemovedDeleteFile, ...], tuple[str, ...]]:
        """Return delete files for all rows with these ids, the vectors that they replace, and the
        data files that position delete files need.
        """
        found = {path: positions_of(path, ids) for path in self.data}
        hit = {path: positions for path, positions in found.items() if positions}
        if self.has_vectors:
            return *self.united_vectors(epoch, hit), ()
        return [self.position_file(epoch, path, at) for path, at in hit.items()], (), tuple(hit)

    def united_vectors(
        self, epoch: WrittenEpoch, hit: Mapping[str, Iterable[int]]
    ) -> tuple[list[DataFile], tuple[RemovedDeleteFile, ...]]:
        """Return one vector for each data file, with the positions of the one that it replaces."""
        live, vectors = self.vectors, {}
        for path, positions in hit.items():
            before = live.get(path)
            vector = DeletionVector(list(positions))
            vectors[path] = vector if before is None else vector | vector_of(before)
        removed = tuple(RemovedDeleteFile.of(live[path]) for path in hit if path in live)
        return self._vector_files(epoch, vectors), removed

    def _vector_files(
        self, epoch: WrittenEpoch, vectors: Mapping[str, DeletionVector]
    ) -> list[DataFile]:
        if not vectors:
            return []
        path = f"{self.table.metadata.location}/data/deletes-{epoch.attempt}.puffin"
        data = self.data
        pairs = [(data[name], vector) for name, vector in vectors.items()]
        encoded = encode_deletion_vectors(pairs, file_path=path, created_by="tests")
        _write(path, encoded.content)
        return list(encoded.delete_files)

    def position_file(self, epoch: WrittenEpoch, path: str, positions: Iterable[int]) -> DataFile:
        found = sorted(positions)
        columns = [pa.array([path] * len(found)), pa.array(found, pa.int64())]
        rows = pa.Table.from_arrays(columns, schema=pa.schema([_PATH, _POSITION]))
        deleted = self.data[path]
        file = self._delete_file(epoch, rows, f"positions-{uuid4().hex[:6]}")
        # Bounds on the path say which file it is about.
        bounds = {2147483546: path.encode()}
        return replace(
            file,
            content=DataFileContent.POSITION_DELETES,
            partition=deleted.partition,
            spec_id=deleted.spec_id,
            lower_bounds=bounds,
            upper_bounds=bounds,
            referenced_data_file=path,
        )

    # --- Deletes by equality ---------------------------------------------------------------------

    def equality_deletes(self, epoch: WrittenEpoch, rows: Rows) -> list[DataFile]:
        """Return a file for each partition, of any spec, that may hold rows with these ids."""
        partitions = {(file.spec_id, file.partition): file for file in self.data.values()}
        found = []
        for number, ((spec_id, partition), file) in enumerate(partitions.items()):
            ids = [each for each, row in rows.items() if row[0] == self.region_of(file)]
            if not ids:
                continue
            table = pa.Table.from_arrays([pa.array(ids, pa.int64())], schema=pa.schema([_ID]))
            deletes = replace(
                self._delete_file(epoch, table, f"equality-{number}"),
                content=DataFileContent.EQUALITY_DELETES,
                partition=partition,
                spec_id=spec_id,
                equality_ids=(1,),
                sort_order_id=0,
            )
            found.append(deletes)
        return found

    def _delete_file(self, epoch: WrittenEpoch, rows: pa.Table, name: str) -> DataFile:
        path = f"{self.table.metadata.location}/data/{name}-{epoch.attempt}.parquet"
        target = Path(local(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, target)
        return DataFile(
            file_path=path,
            partition=(),
            record_count=rows.num_rows,
            file_size_in_bytes=target.stat().st_size,
        )


def manifests_of(table: LoadedTable, branch: str) -> Sequence[ManifestFile]:
    """Return the manifests of a branch, as its head lists them."""
    head = table.metadata.branch_head(branch)
    if head is None or head.manifest_list is None:
        return ()
    return decode_manifest_list(read(head.manifest_list)).rows


def positions_of(path: str, ids: set[int]) -> list[int]:
    """Return where a data file has rows with these ids."""
    found = pq.read_table(local(path), columns=["id"]).column("id").to_pylist()
    return [position for position, each in enumerate(found) if each in ids]


def vector_of(file: DataFile) -> DeletionVector:
    offset, length = vector_range(file)
    return decode_vector_of(file, read(file.file_path)[offset : offset + length])


def read(location: str) -> bytes:
    return Path(local(location)).read_bytes()


def _write(location: str, content: bytes) -> None:
    target = Path(local(location))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
