"""One Spark task's part of a compaction: rows of a group's files in, new files and a message out.

Runs on executors: knows the table format and the task, neither catalog nor inbox nor request.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from workers.compaction.row_order import RowOrder
from workers.files.file_system import StoredFiles
from workers.files.store_access import StoreAccess
from workers.files.write_target import WriteTarget
from workers.read.shared_read import TableRead
from workers.read.task_reader import read_task
from workers.spark.reported_files import ReportedFiles
from workers.spark.spark_batches import as_spark_batch
from workers.spark.task_input import running_task
from workers.spark.task_messages import message_batch, unpacked
from workers.spark.written_files import names_of_task, write_files

# Of a DataFrame with one row for each split: which one it is.
SPLIT = "id"


@dataclass(frozen=True, slots=True)
class GroupRows:
    """The source of the rows of a group's files. `splits` are pickled, in their numbers' order."""

    table: TableRead
    access: StoreAccess
    splits: tuple[bytes, ...]

    def read(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the splits that the batches number, by the schema
        `table.arrow_schema`. Errors: as `read_task`."""
        files = StoredFiles(self.access)
        for batch in batches:
            for number in batch.column(SPLIT):
                for part in unpacked(self.splits[number.as_py()]):
                    yield from read_task(self.table, part, files)


@dataclass(frozen=True, slots=True)
class OrderedRows:
    """The rows of a group for Spark to order. `schema`: Spark's, with the keys behind."""

    rows: GroupRows
    order: RowOrder
    schema: pa.Schema

    def read(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows with their keys."""
        own = pa.schema(list(self.schema)[: -len(self.order.names)])
        for batch in self.rows.read(batches):
            keys = self.order.keys(batch, self.rows.table.columns)
            columns = [*as_spark_batch(batch, own).columns, *keys]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)


@dataclass(frozen=True, slots=True)
class GroupWriter:
    """Writes what tasks are given. `rows`: of the splits that a task's batches number; None where
    the batches hold rows, of these `columns`."""

    target: WriteTarget
    attempt: str
    reported: ReportedFiles
    rows: GroupRows | None = None
    columns: tuple[str, ...] = ()

    def write(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one message: the files that hold all of the running task's rows.

        A task that fails, or that Spark gives up meanwhile, deletes its own files only. Errors:
        `PublishError` for rows that stop before their end; those of `read_task`.
        """
        names = names_of_task(self.attempt)
        rows = self._only_columns(batches) if self.rows is None else self.rows.read(batches)
        with running_task() as task_input:
            files = write_files(rows, self.target, names, task_input)
        self.reported.add(file.file_path for file in files)
        yield message_batch(files)

    def _only_columns(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return (batch.select(list(self.columns)) for batch in batches)
