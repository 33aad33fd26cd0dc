"""The streaming writer of the data source `frazil` (PySpark 4.1 and later).

Spark makes one writer per micro-batch to be pickled into the tasks, and another one, in another
process, to commit. So no state lives here: what the commit must know travels in the messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamArrowWriter

from committer.errors import InvariantError
from workers.settings.options import WriteOptions
from workers.sink.files_written import FilesWritten, current_micro_batch
from workers.sink.target import TargetTable
from workers.spark.message_first import message_first

if TYPE_CHECKING:
    import pyarrow as pa


class FrazilStreamWriter(DataSourceStreamArrowWriter):  # type: ignore[misc]  # untyped
    """Writes and publishes one micro-batch."""

    def __init__(self, options: WriteOptions, target: TargetTable) -> None:
        self._options = options
        self._target = target

    def write(self, iterator: Iterator[pa.RecordBatch]) -> FilesWritten:
        from workers.sink.task_writer import write_task  # commits do without it

        micro_batch = current_micro_batch()
        if micro_batch is None:
            raise InvariantError("a streaming write outside a streaming query")
        with message_first():
            return write_task(iterator, self._target, self._options, micro_batch)

    def commit(self, messages: Sequence[FilesWritten], batchId: int) -> None:  # noqa: N803
        """Publish; with the same messages again this changes nothing."""
        from workers.sink.publication import publish_micro_batch  # executors do without it

        with message_first():
            publish_micro_batch(self._options, self._target, messages, batchId)

    def abort(self, messages: Sequence[FilesWritten | None], batchId: int) -> None:  # noqa: N803
        """Delete what tasks have reported, where Spark surely never called `commit`: not behind a
        commit that raised, whose request may be durable. Tasks that still write delete their own.
        """
        from workers.sink.unpublished import delete_unpublished  # executors do without it

        delete_unpublished(messages, self._target.access)
