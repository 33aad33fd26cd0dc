"""The batch writer of the data source `frazil` (PySpark 4.0 and later).

Made once on the driver and pickled, so what `__init__` draws is known to tasks and commit alike.
Inside `foreachBatch` a write stands for the micro-batch instead: its tasks know the query.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter

from workers.settings.options import WriteOptions
from workers.sink.files_written import FilesWritten, current_micro_batch
from workers.sink.target import TargetTable
from workers.spark.message_first import message_first
from workers.spark.worker_process import begin_call

if TYPE_CHECKING:
    import pyarrow as pa


class FrazilBatchWriter(DataSourceArrowWriter):  # type: ignore[misc]  # untyped
    """Writes and publishes one DataFrame."""

    def __init__(self, options: WriteOptions, target: TargetTable) -> None:
        from workers.branches.fresh_nonce import fresh_nonce  # executors do without it

        self._options = options
        self._target = target
        self._nonce = fresh_nonce()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> FilesWritten:
        from workers.sink.task_writer import write_task  # commits do without it

        micro_batch = current_micro_batch()
        with message_first():
            return write_task(iterator, self._target, self._options, micro_batch or self._nonce)

    def commit(self, messages: Sequence[FilesWritten]) -> None:
        """Publish; with the same messages again this changes nothing."""
        begin_call()
        from workers.sink.publication import publish_batch  # executors do without it

        with message_first():
            publish_batch(self._options, self._target, messages)

    def abort(self, messages: Sequence[FilesWritten | None]) -> None:
        """Delete the files of a failed write, as `FrazilStreamWriter.abort`."""
        from workers.sink.unpublished import delete_unpublished  # executors do without it

        delete_unpublished(messages, self._target.access)
