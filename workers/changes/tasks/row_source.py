"""Reads the rows of a table in Spark's tasks: parts of its data files in, rows out.

Runs on executors: format only. The parts come as rows of a DataFrame of bytes, made by the driver.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from workers.files.file_system import StoredFiles
from workers.files.store_access import StoreAccess
from workers.read.shared_read import TableRead
from workers.read.task_reader import read_task
from workers.spark.spark_batches import as_spark_batch
from workers.spark.task_messages import unpacked
from workers.spark.worker_process import begin_call


@dataclass(frozen=True, slots=True)
class RowSource:
    """The source of a table's rows: its facts, the way to its files, and Spark's own schema."""

    table: TableRead
    access: StoreAccess
    schema: pa.Schema

    def read(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the parts that the batches hold. Errors: as `read_task`."""
        begin_call()
        files = StoredFiles(self.access)
        for batch in batches:
            for split in batch.column("parts"):
                for part in unpacked(split.as_py()):
                    for rows in read_task(self.table, part, files):
                        yield as_spark_batch(rows, self.schema)
