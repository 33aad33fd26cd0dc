"""One Spark task's part of a rewrite of delete files: data files in, delete files out.

Runs on executors: knows the table format and the task, neither catalog nor inbox nor request.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.scan.scan_task import FileScanTask
from workers.compaction.deletes.delete_positions import positions_to_write, replaced_deletes
from workers.compaction.group_writer import SPLIT
from workers.files.deletes.position_delete_writer import DeleteForm, PositionDeleteWriter
from workers.files.file_system import StoredFiles
from workers.files.write_target import WriteTarget
from workers.read.shared_read import TableRead
from workers.spark.reported_files import ReportedFiles
from workers.spark.task_input import TaskInput, running_task
from workers.spark.task_messages import message_batch, unpacked
from workers.spark.written_files import names_of_task


@dataclass(frozen=True, slots=True)
class DeletesWritten:
    """A task's message. `files`: the new delete files. `replaced`: delete files of single data
    files whose place they take. `referenced`: the data files that they delete rows of."""

    files: tuple[DataFile, ...] = ()
    replaced: tuple[DataFile, ...] = ()
    referenced: tuple[str, ...] = ()
    positions: int = 0


@dataclass(frozen=True, slots=True)
class DeletesWriter:
    """Writes the deletes of the data files that a task is given. `parts`: pickled, by number."""

    target: WriteTarget
    read: TableRead
    form: DeleteForm
    attempt: str
    reported: ReportedFiles
    parts: tuple[bytes, ...]

    def write(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one message. A task that fails, or that Spark gives up meanwhile, deletes its own
        files only. Errors: `PublishError` for rows that stop before their end; those of
        `read_task`."""
        with running_task() as rows:
            message = self._written(batches, rows)
        self.reported.add(file.file_path for file in message.files)
        yield message_batch(message)

    def _written(self, batches: Iterator[pa.RecordBatch], rows: TaskInput) -> DeletesWritten:
        numbers = [number.as_py() for batch in batches for number in batch.column(SPLIT)]
        rows.require_whole()
        tasks: Iterator[FileScanTask] = (
            task for number in numbers for task in unpacked(self.parts[number])
        )
        files = StoredFiles(self.target.access)
        found = [
            (task, positions)
            for task in tasks
            if (positions := positions_to_write(self.read, task, self.form, files))
        ]
        specs = {spec.spec_id: spec for spec in self.read.specs}
        with PositionDeleteWriter(
            self.target, specs, names_of_task(self.attempt), self.form
        ) as deletes:
            written = deletes.write([(task.file, positions) for task, positions in found])
            rows.require_listener()
        return DeletesWritten(
            tuple(written),
            tuple(file for task, _ in found for file in replaced_deletes(task, self.form)),
            tuple(task.file.file_path for task, _ in found),
            sum(positions.cardinality for _, positions in found),
        )
