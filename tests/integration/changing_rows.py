"""A client that makes every kind of change to a table of (id, region, text), with real files.

The table is partitioned by `region`. It knows which rows there are from its caller's model, and
where they are from the files themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
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
from committer.iceberg.manifest.manifest_list import decode_manifest_list
from committer.ports.pointer_swap import LoadedTable
from committer.request.commit_request import Fingerprint, Producer
from committer.request.needs import Needs, Operation, RemovedDeleteFile
from committer.request.receipt_model import Receipt
from tests.integration.readers import local
from tests.integration.real_harness import RealHarness
from tests.integration.traffic import write_rows
from workers.arrow.arrow_schema import arrow_schema
from workers.requests.connections import Connections
from workers.requests.publisher import PublishPolicy
from workers.requests.written_epoch import WrittenEpoch

Rows = Mapping[int, tuple[str, str]]
_POLICY = PublishPolicy(wait="committed", wait_timeout_s=120.0, on_quarantine="continue")
_PATH = pa.field("file_path", pa.string(), False, metadata={"PARQUET:field_id": "2147483546"})
_POSITION = pa.field("pos", pa.int64(), False, metadata={"PARQUET:field_id": "2147483545"})
_ID = pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})


@dataclass(slots=True)
class Changer:
    """Publishes one change after another as producer `name`, and waits for each."""

    harness: RealHarness
    connections: Connections
    table_name: str
    name: str
    epochs: int = 0
    receipts: list[Receipt] = field(default_factory=list)

    async def publish(self, written: WrittenEpoch) -> Receipt:
        """Publish a change that was written; its receipt says what became of it."""
        receipt = await self.connections.publisher.publish(written, _POLICY)
        self.receipts.append(receipt)
        return receipt

    # --- Changes, written on the table as it is now ----------------------------------------------

    async def append(self, rows: Rows) -> WrittenEpoch:
        state = await self._state()
        return state.with_rows(self._epoch(state), rows)

    async def delete_rows(self, ids: Iterable[int], *, isolation: str = "snapshot") -> WrittenEpoch:
        """Delete by positions: deletion vectors in version 3, position delete files before."""
        state = await self._state()
        epoch = self._epoch(state)
        files, removed, named = state.position_deletes(epoch, set(ids))
        needs = state.based(
            isolation_level=isolation, removed_delete_files=removed, referenced_data_files=named
        )
        return replace(epoch, operation="row-delta", files=files, needs=needs)

    async def update_rows(self, rows: Rows) -> WrittenEpoch:
        """Delete these ids by positions, and write the rows anew."""
        state = await self._state()
        epoch = self._epoch(state)
        files, removed, named = state.position_deletes(epoch, set(rows))
        added = state.with_rows(epoch, rows).files
        needs = state.based(
            updates_rows=True,
            isolation_level="snapshot",
            removed_delete_files=removed,
            referenced_data_files=named,
        )
        return replace(epoch, operation="row-delta", files=[*added, *files], needs=needs)

    async def upsert_rows(self, rows: Rows) -> WrittenEpoch:
        """Delete these ids by equality, in the partitions of the rows, and write the rows."""
        state = await self._state()
        epoch = self._epoch(state)
        added = state.with_rows(epoch, rows).files
        files = [*added, *state.equality_deletes(epoch, rows)]
        return replace(epoch, operation="row-delta", files=files)

    async def overwrite_region(self, region: str, rows: Rows) -> WrittenEpoch:
        return await self._replace("overwrite", region, rows)

    async def delete_region(self, region: str) -> WrittenEpoch:
        return await self._replace("delete", region, {})

    async def _replace(self, operation: Operation, region: str, rows: Rows) -> WrittenEpoch:
        state = await self._state()
        epoch = self._epoch(state)
        files = state.with_rows(epoch, rows).files if rows else []
        filter = {"type": "eq", "term": "region", "value": region}
        level = {"isolation_level": "serializable"} if operation == "overwrite" else {}
        needs = state.based(row_filter=filter, **level)
        return replace(epoch, operation=operation, files=files, needs=needs)

    async def replace_partitions(self, rows: Rows) -> WrittenEpoch:
        """Replace the regions of these rows by them."""
        state = await self._state()
        epoch = self._epoch(state)
        files = state.with_rows(epoch, rows).files
        return replace(epoch, operation="replace-partitions", files=files)

    async def compact(self, region: str, rows: Rows) -> WrittenEpoch:
        """Rewrite all files of a region, whose live rows these are, to one."""
        state = await self._state()
        epoch = self._epoch(state)
        removed = tuple(path for path, file in state.data.items() if file.partition == (region,))
        needs = state.based(
            removed_data_files=removed, data_sequence_number=state.head_sequence_number
        )
        files = state.with_rows(epoch, rows).files if rows else []
        return replace(epoch, operation="rewrite-files", files=files, needs=needs)

    async def copy_on_write(self, region: str, rows: Rows) -> WrittenEpoch:
        """Replace the files of a region by name: these are the rows afterwards."""
        state = await self._state()
        epoch = self._epoch(state)
        removed = tuple(path for path, file in state.data.items() if file.partition == (region,))
        needs = state.based(
            removed_data_files=removed,
            isolation_level="serializable",
            conflict_filter={"type": "eq", "term": "region", "value": region},
        )
        files = state.with_rows(epoch, rows).files if rows else []
        return replace(epoch, operation="overwrite", files=files, needs=needs)

    async def has_files(self, region: str) -> bool:
        state = await self._state()
        return any(file.partition == (region,) for file in state.data.values())

    # ---------------------------------------------------------------------------------------------

    async def _state(self) -> _State:
        return _State.of(await self.harness.load(self.table_name))

    def _epoch(self, state: _State) -> WrittenEpoch:
        epoch, self.epochs = self.epochs, self.epochs + 1
        metadata = state.table.metadata
        return WrittenEpoch(
            identifier=state.table.identifier,
            table_uuid=metadata.require_uuid(),
            schema_id=metadata.current_schema_id,
            producer=Producer(id=self.name, sequential=True),
            epoch=epoch,
            nonce=uuid4(),
            fingerprint=Fingerprint(kind="model", value=f"{self.name}/{epoch}"),
            files=(),
        )


@dataclass(frozen=True, slots=True)
class _State:
    """A table with its live files."""

    table: LoadedTable
    data: Mapping[str, DataFile]
    vectors: Mapping[str, DataFile]

    @classmethod
    def of(cls, table: LoadedTable) -> _State:
        live = [entry.data_file for entry in _live(table)]
        data = {one.file_path: one for one in live if one.content is DataFileContent.DATA}
        vectors = {
            one.referenced_data_file: one
            for one in live
            if one.is_deletion_vector and one.referenced_data_file
        }
        return cls(table, data, vectors)

    @property
    def head_sequence_number(self) -> int:
        head = self.table.metadata.current_snapshot
        return head.sequence_number if head else 0

    def based(self, **needs: object) -> Needs:
        head = self.table.metadata.current_snapshot
        base = {
            "base_snapshot_id": head.snapshot_id if head else 0,
            "base_sequence_number": self.head_sequence_number,
        }
        return Needs.model_validate({**base, **needs}, by_name=True)

    def with_rows(self, epoch: WrittenEpoch, rows: Rows) -> WrittenEpoch:
        schema = arrow_schema(self.table.metadata.current_schema)
        regions, texts = [row[0] for row in rows.values()], [row[1] for row in rows.values()]
        columns = [list(rows), regions, texts]
        return write_rows(self.table, epoch, pa.record_batch(columns, schema=schema))

    def position_deletes(
        self, epoch: WrittenEpoch, ids: set[int]
    ) -> tuple[list[DataFile], tuple[RemovedDeleteFile, ...], tuple[str, ...]]:
        """Return delete files for all rows with these ids, the vectors that they replace, and the
        data files that position delete files need.
        """
        found = {path: _positions(path, ids) for path in self.data}
        hit = {path: positions for path, positions in found.items() if positions}
        if self.table.metadata.format_version >= 3:
            return self._vectors(epoch, hit)
        files = [self._position_file(epoch, path, positions) for path, positions in hit.items()]
        return files, (), tuple(hit)

    def _vectors(
        self, epoch: WrittenEpoch, hit: Mapping[str, list[int]]
    ) -> tuple[list[DataFile], tuple[RemovedDeleteFile, ...], tuple[str, ...]]:
        if not hit:
            return [], (), ()
        folder = f"{self.table.metadata.location}/data"
        path = f"{folder}/deletes-{epoch.attempt}.puffin"
        pairs, removed = [], []
        for name, positions in hit.items():
            vector = DeletionVector(positions)
            if before := self.vectors.get(name):
                vector |= _vector_of(before)
                offset, length = vector_range(before)
                removed.append(
                    RemovedDeleteFile(
                        file_path=before.file_path,
                        content_offset=offset,
                        content_size_in_bytes=length,
                    )
                )
            pairs.append((self.data[name], vector))
        encoded = encode_deletion_vectors(pairs, file_path=path, created_by="tests")
        _write(path, encoded.content)
        return list(encoded.delete_files), tuple(removed), ()

    def _position_file(self, epoch: WrittenEpoch, path: str, positions: list[int]) -> DataFile:
        columns = [pa.array([path] * len(positions)), pa.array(sorted(positions), pa.int64())]
        rows = pa.Table.from_arrays(columns, schema=pa.schema([_PATH, _POSITION]))
        deleted = self.data[path]
        name = f"positions-{uuid4().hex[:6]}"
        file = self._delete_file(epoch, rows, name, deleted.partition)
        # Bounds on the path say which file it is about.
        bounds = {2147483546: path.encode()}
        return replace(
            file,
            content=DataFileContent.POSITION_DELETES,
            lower_bounds=bounds,
            upper_bounds=bounds,
            referenced_data_file=path,
        )

    def equality_deletes(self, epoch: WrittenEpoch, rows: Rows) -> list[DataFile]:
        by_region: dict[str, list[int]] = {}
        for each, (region, _) in rows.items():
            by_region.setdefault(region, []).append(each)
        return [
            replace(
                self._delete_file(
                    epoch,
                    pa.Table.from_arrays([pa.array(ids, pa.int64())], schema=pa.schema([_ID])),
                    f"e{region}",
                    (region,),
                ),
                content=DataFileContent.EQUALITY_DELETES,
                equality_ids=(1,),
                sort_order_id=0,
            )
            for region, ids in by_region.items()
        ]

    def _delete_file(
        self, epoch: WrittenEpoch, rows: pa.Table, name: str, partition: tuple[object, ...]
    ) -> DataFile:
        path = f"{self.table.metadata.location}/data/{name}-{epoch.attempt}.parquet"
        target = Path(local(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, target)
        return DataFile(
            file_path=path,
            partition=partition,
            record_count=rows.num_rows,
            file_size_in_bytes=target.stat().st_size,
        )


def _live(table: LoadedTable) -> list[ManifestEntry]:
    head = table.metadata.current_snapshot
    if head is None or head.manifest_list is None:
        return []
    return [
        entry
        for row in decode_manifest_list(_read(head.manifest_list)).rows
        for entry in decode_manifest(_read(row.manifest_path), manifest_file=row).entries
        if entry.is_live
    ]


def _positions(path: str, ids: set[int]) -> list[int]:
    found = pq.read_table(local(path), columns=["id"]).column("id").to_pylist()
    return [position for position, each in enumerate(found) if each in ids]


def _vector_of(file: DataFile) -> DeletionVector:
    offset, length = vector_range(file)
    return decode_vector_of(file, _read(file.file_path)[offset : offset + length])


def _read(location: str) -> bytes:
    return Path(local(location)).read_bytes()


def _write(location: str, content: bytes) -> None:
    target = Path(local(location))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
