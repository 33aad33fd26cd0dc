"""The rows of one Spark task, into data files. Runs on executors: format only."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pyarrow as pa
from pyspark import TaskContext

from committer.iceberg.entry.data_file import DataFile
from workers.arrow.arrow_schema import match_columns
from workers.files.file_writer import FileNames, PartitionedWriter
from workers.files.write_target import WriteTarget
from workers.spark.task_input import TaskInput

_SALT_BYTES = 4


def names_of_task(attempt: str) -> FileNames:
    """Return the names of the running task's files, which no other try of it shares."""
    task = TaskContext.get()
    salt = os.urandom(_SALT_BYTES).hex()
    return FileNames(task.partitionId(), task.taskAttemptId(), attempt, salt)


def write_files(
    batches: Iterator[pa.RecordBatch],
    target: WriteTarget,
    names: FileNames,
    rows: TaskInput,
) -> list[DataFile]:
    """Write all rows into files; delete the files if `rows` ends early.

    Errors: `PublishError` for rows that do not fit the table, or that stop before their end.
    """
    first = next(batches, None)
    if first is None:
        rows.require_whole()
        return []
    columns = match_columns(first.schema, target.schema)
    with PartitionedWriter(target, columns.schema, names) as writer:
        writer.write(columns.conform(first))
        for batch in batches:
            writer.write(columns.conform(batch))
        rows.require_whole()
        files = writer.close()
        rows.require_listener()
        return files
