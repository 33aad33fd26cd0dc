"""One Spark task's part of a change: its rows into data files, its deleted positions into delete
files, and the message about them.

Runs on executors: knows the table format and the task, neither catalog nor inbox nor request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from committer.errors import InvariantError
from committer.iceberg.deletes.deletion_vector import DeletionVector
from committer.iceberg.deletes.deletion_vector_file import superseded_deletes
from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.scan.scan_task import FileScanTask
from committer.iceberg.schema.metadata_columns import LAST_UPDATED_SEQUENCE_NUMBER as NEWEST
from committer.iceberg.schema.metadata_columns import ROW_ID as LINEAGE
from committer.iceberg.schema.schema import Schema
from workers.arrow.arrow_schema import MatchedColumns, match_columns
from workers.changes.tasks.matched_positions import MatchedPositions
from workers.changes.tasks.row_kinds import (
    FACT,
    FILE,
    KIND,
    LAST_UPDATED,
    POSITION,
    ROW_ID,
    RowKind,
)
from workers.files.deletes.position_delete_writer import DeleteForm, PositionDeleteWriter
from workers.files.file_system import StoredFiles
from workers.files.file_writer import Discarding, FileNames, PartitionedWriter
from workers.files.write_target import WriteTarget
from workers.read.deletes.delete_access import DeleteFiles
from workers.read.deletes.delete_cache import DeleteCache
from workers.read.deletes.deleted_positions import deleted_positions
from workers.read.shared_read import TableRead
from workers.spark.reported_files import ReportedFiles
from workers.spark.task_input import TaskInput, running_task
from workers.spark.task_messages import message_batch, unpacked
from workers.spark.written_files import names_of_task

_DELETING = pa.array([RowKind.DELETE, RowKind.UPDATE], pa.int32())
_WRITTEN = pa.array([RowKind.UPDATE, RowKind.INSERT, RowKind.MOVE], pa.int32())
_MATCHED = pa.array([RowKind.DELETE, RowKind.UPDATE, RowKind.MATCHED], pa.int32())


@dataclass(frozen=True, slots=True)
class RowsWritten:
    """A task's message. `files`: data and delete files. `removed`: delete files that these replace.
    `referenced`: data files that positions are deleted of. `repeated`: a row, by file and position,
    that several rows of the source match. The counts are of rows.
    """

    files: tuple[DataFile, ...] = ()
    removed: tuple[DataFile, ...] = ()
    referenced: tuple[str, ...] = ()
    repeated: tuple[str, int] | None = None
    deleted: int = 0
    updated: int = 0
    inserted: int = 0


@dataclass(frozen=True, slots=True)
class RowWriter:
    """Writes what tasks are given. `form`: of the deletes; None where rows are only written.

    `matches_once`: a row that comes twice is an error, which the message tells.
    """

    target: WriteTarget
    table: TableRead
    attempt: str
    reported: ReportedFiles
    form: DeleteForm | None = None
    matches_once: bool = False

    def write(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one message, about all of the running task's rows. A task that fails, or that Spark
        gives up meanwhile, deletes its own files only.

        Errors: `PublishError` for rows that do not fit the table, or that stop before their end.
        """
        with running_task() as rows:
            message = self._written(batches, rows)
        self.reported.add(file.file_path for file in message.files)
        yield message_batch(message)

    def _written(self, batches: Iterator[pa.RecordBatch], rows: TaskInput) -> RowsWritten:
        names, work = names_of_task(self.attempt), _Work(self.matches_once)
        with _RowFiles(self.target, names) as files:
            for batch in batches:
                work.take(batch)
                files.write(batch.filter(_has(batch, _WRITTEN)))
            rows.require_whole()
            if work.matched.repeated is not None:
                files.discard()
                return RowsWritten(repeated=work.matched.repeated)
            with PositionDeleteWriter(
                self.target,
                {spec.spec_id: spec for spec in self.table.specs},
                names,
                self.form or "files",
            ) as deletes:
                tasks = work.tasks() if self.form else []
                whole = [(task.file, self._united(task, work)) for task in tasks]
                written = [*files.close(), *deletes.write(whole)]
                rows.require_listener()
        return RowsWritten(
            tuple(written),
            tuple(one for task in tasks for one in self._replaced(task)),
            tuple(task.file.file_path for task in tasks),
            deleted=work.deleted_rows,
            updated=work.counts[RowKind.UPDATE],
            inserted=work.counts[RowKind.INSERT],
        )

    def _replaced(self, task: FileScanTask) -> tuple[DataFile, ...]:
        return () if self.form == "partitions" else superseded_deletes(task.delete_files)

    def _united(self, task: FileScanTask, work: _Work) -> DeletionVector:
        """Return all deleted positions that the new delete file of a data file must have."""
        positions = work.deleted.by_file[task.file.file_path]
        if self.form == "partitions":
            return positions
        found = task.delete_files if self.form == "vectors" else self._replaced(task)
        before = FileScanTask(task.file, tuple(found), task.residual, task.head)
        access = DeleteFiles(self.table, StoredFiles(self.target.access), DeleteCache())
        return positions | deleted_positions(before, access)


@dataclass(slots=True)
class _Work:
    """The kinds and positions of a task's rows. `matched` is kept where `matches_once`."""

    matches_once: bool
    deleted: MatchedPositions = field(default_factory=MatchedPositions)
    matched: MatchedPositions = field(default_factory=MatchedPositions)
    facts: dict[str, bytes] = field(default_factory=dict)
    counts: Counter[int] = field(default_factory=Counter)
    positions: int = 0

    @property
    def deleted_rows(self) -> int:
        """How many rows do not come again."""
        return self.positions - self.counts[RowKind.UPDATE]

    def take(self, batch: pa.RecordBatch) -> None:
        facts = batch.filter(pc.equal(batch.column(KIND), int(RowKind.FACT)))
        if facts.num_rows:
            pairs = zip(facts.column(FILE), facts.column(FACT), strict=True)
            self.facts.update((path.as_py(), fact.as_py()) for path, fact in pairs)
        deleted = batch.filter(_has(batch, _DELETING))
        self.positions += self.deleted.add(deleted.column(FILE), deleted.column(POSITION))
        if self.matches_once:
            matched = batch.filter(_has(batch, _MATCHED))
            self.matched.add(matched.column(FILE), matched.column(POSITION))
        for found in pc.value_counts(batch.column(KIND)):
            self.counts[found["values"].as_py()] += found["counts"].as_py()

    def tasks(self) -> list[FileScanTask]:
        """Return what is known of the data files with deleted rows."""
        missing = self.deleted.by_file.keys() - self.facts.keys()
        if missing:
            raise InvariantError(f"nothing is known of data file {min(missing)}")
        return [unpacked(self.facts[path]) for path in sorted(self.deleted.by_file)]


def _has(batch: pa.RecordBatch, kinds: pa.Array) -> pa.Array:
    return pc.is_in(batch.column(KIND), value_set=kinds)


class _RowFiles(Discarding):
    """The data files of a task's rows, begun with the first row."""

    def __init__(self, target: WriteTarget, names: FileNames) -> None:
        self._target, self._names = target, names
        self._writer: PartitionedWriter | None = None
        self._columns: MatchedColumns | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        rows = _values(batch, self._target.schema)
        if self._columns is None:
            self._columns = match_columns(rows.schema, self._target.schema)
        if self._writer is None:
            self._writer = PartitionedWriter(self._target, self._columns.schema, self._names)
        self._writer.write(self._columns.conform(rows))

    def close(self) -> list[DataFile]:
        return self._writer.close() if self._writer else []

    def discard(self) -> None:
        if self._writer:
            self._writer.discard()


def _values(batch: pa.RecordBatch, schema: Schema) -> pa.RecordBatch:
    """Return the table's columns, with those of the lineage by their names in files."""
    names = {KIND: None, FILE: None, POSITION: None, FACT: None, ROW_ID: None, LAST_UPDATED: None}
    kept = [name for name in batch.schema.names if name not in names]
    columns = {name: batch.column(name) for name in kept}
    if schema.field(LINEAGE.field_id) is not None:
        columns |= {LINEAGE.name: batch.column(ROW_ID), NEWEST.name: batch.column(LAST_UPDATED)}
    return pa.RecordBatch.from_pydict(columns)
