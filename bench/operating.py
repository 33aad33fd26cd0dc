"""One writer that changes its own partition again and again; `peers/Bench.java` does the same.

* `vectors`: rows of one of its files are deleted, by a deletion vector in place of the one before;
* `upserts`: a data file and an equality delete of its partition;
* `overwrites`: its partition is replaced by one file, at isolation level serializable.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from uuid import UUID

from bench.workload import Descriptor, data_file, descriptor, nonce_of
from committer.iceberg.entry.data_file import DataFile, DataFileContent
from committer.ports.pointer_swap import LoadedTable
from committer.request.commit_request import Fingerprint, Producer
from committer.request.needs import Needs, Operation, RemovedDeleteFile
from committer.request.receipt_model import Receipt
from workers.requests.written_epoch import WrittenEpoch

KINDS = ("vectors", "upserts", "overwrites")
OWN_FILES = 4
_ONE_DAY = 2**30
_OPERATIONS: dict[str, Operation] = {
    "vectors": "row-delta",
    "upserts": "row-delta",
    "overwrites": "overwrite",
}


def own_file(location: str, writer: int, writers: int, count: int) -> Descriptor:
    """Describe the file of this count in a writer's partition; the first `OWN_FILES` are there."""
    return descriptor(location, writer + count * writers, _ONE_DAY, writers)


def first_epoch(table: LoadedTable, writers: int) -> WrittenEpoch:
    """Return the append of the files that all writers begin with."""
    location = table.metadata.location
    epoch = epoch_of(table, "base", 0, nonce_of(2**31))
    files = [
        data_file(own_file(location, writer, writers, count), epoch.attempt)
        for count in range(OWN_FILES)
        for writer in range(writers)
    ]
    return replace(epoch, files=files)


@dataclass(slots=True)
class OperatingWriter:
    """`table`: as it is once the first files are in it."""

    kind: str
    writer: int
    writers: int
    table: LoadedTable
    _count: int = 0
    _vectors: dict[int, DataFile] = field(default_factory=dict)
    _base: tuple[int, int] = (0, 0)
    _first: UUID = field(init=False)

    def __post_init__(self) -> None:
        self._first = first_epoch(self.table, self.writers).attempt
        head = self.table.metadata.current_snapshot
        assert head is not None
        self._base = head.snapshot_id, head.sequence_number

    def next(self) -> WrittenEpoch:
        """Return the next change, which rests on what the writer has read last."""
        nonce = nonce_of(2**32 + self.writer + self._count * self.writers)
        epoch = epoch_of(self.table, f"writer-{self.writer}", self._count, nonce)
        files, needs = self._change(epoch.attempt)
        return replace(epoch, operation=_OPERATIONS[self.kind], files=files, needs=needs)

    def landed(self, written: WrittenEpoch, receipt: Receipt) -> None:
        """Note the change: the next one rests on it."""
        assert receipt.snapshot_id is not None, receipt
        assert receipt.sequence_number is not None, receipt
        self._base = receipt.snapshot_id, receipt.sequence_number
        if self.kind == "vectors":
            self._vectors[self._turn] = written.files[0]
        self._count += 1

    @property
    def _turn(self) -> int:
        return self._count % OWN_FILES

    def _change(self, attempt: UUID) -> tuple[list[DataFile], Needs]:
        location = self.table.metadata.location
        snapshot_id, sequence_number = self._base
        added = own_file(location, self.writer, self.writers, OWN_FILES + self._count)
        match self.kind:
            case "vectors":
                before = self._vectors.get(self._turn)
                removed = (named(before),) if before else ()
                needs = Needs(
                    base_snapshot_id=snapshot_id,
                    base_sequence_number=sequence_number,
                    isolation_level="snapshot",
                    conflict_filter=self._own,
                    removed_delete_files=removed,
                )
                return [self._vector(attempt, before)], needs
            case "upserts":
                return [data_file(added, attempt), _equality_delete(added, attempt)], Needs()
            case _:
                needs = Needs(
                    base_snapshot_id=snapshot_id,
                    base_sequence_number=sequence_number,
                    isolation_level="serializable",
                    row_filter=self._own,
                )
                return [data_file(added, attempt)], needs

    @property
    def _own(self) -> dict[str, object]:
        return {"type": "eq", "term": "region", "value": f"r{self.writer}"}

    def _vector(self, attempt: UUID, before: DataFile | None) -> DataFile:
        deleted = own_file(self.table.metadata.location, self.writer, self.writers, self._turn)
        return vector_of(deleted, self._first, attempt, before)


def vector_of(deleted: Descriptor, first: UUID, attempt: UUID, before: DataFile | None) -> DataFile:
    """Return a vector that deletes one row more of a file than the one before. `first`: the attempt
    that has written the file."""
    return replace(
        deletes_beside(deleted, attempt, "puffin"),
        content=DataFileContent.POSITION_DELETES,
        file_format="PUFFIN",
        record_count=1 if before is None else before.record_count + 1,
        referenced_data_file=deleted.path(first),
        content_offset=4,
        content_size_in_bytes=40,
    )


def named(vector: DataFile) -> RemovedDeleteFile:
    return RemovedDeleteFile(
        file_path=vector.file_path,
        content_offset=vector.content_offset,
        content_size_in_bytes=vector.content_size_in_bytes,
    )


def _equality_delete(added: Descriptor, attempt: UUID) -> DataFile:
    return replace(
        deletes_beside(added, attempt, "parquet"),
        content=DataFileContent.EQUALITY_DELETES,
        record_count=10,
        equality_ids=(1,),
        sort_order_id=0,
    )


def deletes_beside(beside: Descriptor, attempt: UUID, suffix: str) -> DataFile:
    return DataFile(
        file_path=f"{beside.folder}/deletes-{attempt}.{suffix}",
        partition=(beside.region, beside.day),
        record_count=0,
        file_size_in_bytes=200,
    )


def epoch_of(table: LoadedTable, producer: str, epoch: int, nonce: UUID) -> WrittenEpoch:
    return WrittenEpoch(
        identifier=table.identifier,
        table_uuid=table.metadata.require_uuid(),
        schema_id=table.metadata.current_schema_id,
        producer=Producer(id=producer, sequential=True),
        epoch=epoch,
        nonce=nonce,
        fingerprint=Fingerprint(kind="bench", value=f"{producer}/{epoch}"),
        files=(),
    )
