"""The input of one task of a read: its own part of the planning result.

Runs on executors: format only.

What all tasks share (`TableRows`) travels with the reader of a batch, and with each split of a
stream, whose table and credentials change while it runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from committer.errors import InvariantError
from committer.iceberg.reading.pack_splits import Split
from workers.files.file_system import StoredFiles
from workers.files.store_access import StoreAccess
from workers.read.shared_read import TableRead
from workers.read.task_reader import read_task
from workers.settings.wap import SessionWap, UnnamedState
from workers.spark.message_first import message_first
from workers.spark.spark_batches import as_spark_batch
from workers.spark.worker_process import begin_call


@dataclass(frozen=True, slots=True)
class TableRows:
    """The source of a table's rows: its facts, the way to its files, and the schema that Spark
    takes the rows with. `unnamed`: the state that is read, where the session may mean another one.
    """

    table: TableRead
    access: StoreAccess
    schema: pa.Schema
    unnamed: UnnamedState | None = None

    def read(self, split: Split) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split, a batch at a time. Errors: as `read_task`."""
        begin_call()
        files = StoredFiles(self.access)
        for part in split:
            for batch in read_task(self.table, part, files):
                yield as_spark_batch(batch, self.schema)


class FileSplit(InputPartition):  # type: ignore[misc]  # pyspark has no types for us
    """Parts of data files; `rows` where the reader does not know it."""

    def __init__(self, parts: Split, rows: TableRows | None = None) -> None:
        self.parts = parts
        self.rows = rows


def read_split(
    partition: InputPartition | None, rows: TableRows | None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a split. Spark sends None for a plan without splits."""
    with message_first():
        split = partition if isinstance(partition, FileSplit) else None
        source = rows if split is None else split.rows or rows
        if source is not None and source.unnamed is not None:
            source.unnamed.check(SessionWap.of(TaskContext.get().getLocalProperty))
        if split is None:
            return
        if source is None:
            raise InvariantError("a split without the facts of its table")
        yield from source.read(split.parts)


class TaskReader(DataSourceReader):  # type: ignore[misc]
    """The half of a batch reader that travels to the tasks."""

    def __init__(self, rows: TableRows) -> None:
        self._rows = rows

    def __reduce__(self) -> tuple[object, ...]:
        return TaskReader, (self._rows,)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_split(partition, self._rows)


class StreamTaskReader(DataSourceStreamReader):  # type: ignore[misc]
    """The half of a stream reader that travels to the tasks: their splits bring all facts."""

    def __reduce__(self) -> tuple[object, ...]:
        return StreamTaskReader, ()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_split(partition, None)
