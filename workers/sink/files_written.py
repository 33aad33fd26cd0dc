"""The message of one Spark task to the commit, and the micro-batch that the task belongs to.

Known to tasks and commits; a commit loads no Arrow for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.schema.schema import Schema
from workers.sink.identity import MicroBatch, WriteIdentity, read_micro_batch


@dataclass(frozen=True, slots=True)
class FilesWritten(WriterCommitMessage):  # type: ignore[misc]  # pyspark has no types for us
    """A task's message to the commit. `micro_batch` is None outside a streaming query;
    `application` is the user's name for the Spark application, where the task has it; `union` is
    the schema of the files where the table gets columns with them; `key_digests`: of an upsert,
    what tells which keys it has rows of.
    """

    micro_batch: MicroBatch | None
    identity: WriteIdentity
    table_uuid: UUID
    schema_id: int
    files: tuple[DataFile, ...]
    application: str | None = None
    union: Schema | None = None
    key_digests: bytes = b""


def current_micro_batch() -> MicroBatch | None:
    """Return the micro-batch that the running task belongs to; None outside a streaming query."""
    return read_micro_batch(TaskContext.get().getLocalProperty)
