"""The Spark job that writes the delete files of one group anew. Runs on the driver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from committer.iceberg.scan.entry_reader import without_metrics
from committer.iceberg.scan.scan_task import FileScanTask
from workers.compaction.deletes.delete_groups import DeletesGroup
from workers.compaction.deletes.delete_task import DeletesWriter, DeletesWritten
from workers.compaction.deletes.deletes_table import DeletesTable
from workers.compaction.rewrite_groups import output_files
from workers.requests.rewrite_parts import dealt
from workers.spark.reported_files import ReportedFiles
from workers.spark.slim_tasks import slim_tasks
from workers.spark.task_messages import MESSAGE_SCHEMA, packed, read_messages

# Whose files are deleted, where the log says so.
WHAT = "a rewrite of delete files that did not land"
# One Spark task reads no more of the data files that it looks rows up in.
_LOOKED_UP_BYTES = 256 << 20
_OPEN_BYTES = 4 << 20
_FILES_OF_TASK = 1_000


@dataclass(frozen=True, slots=True)
class DeletesJob:
    """`attempt`: of the request that the files of the group will be in."""

    spark: Any
    table: DeletesTable
    group: DeletesGroup
    attempt: str

    def run(self) -> list[DeletesWritten]:
        """Write the group; return what its tasks wrote, which is durable then.

        Errors: those of a task, as Spark tells them.
        """
        table, reported = self.table, ReportedFiles(self.spark)
        parts = tuple(packed(tuple(map(_for_task, slim_tasks(part)))) for part in self._parts())
        if not parts:
            return []
        writer = DeletesWriter(table.target, table.read, table.form, self.attempt, reported, parts)
        numbers = self.spark.range(0, len(parts), 1, len(parts))
        with reported.deleted_on_failure(table.state.access, WHAT):
            return read_messages(numbers.mapInArrow(writer.write, MESSAGE_SCHEMA).collect())

    def _parts(self) -> Iterator[list[FileScanTask]]:
        """Deal the data files to tasks, of which each writes its own delete files. Those that are
        for whole partitions are as few as their size allows."""
        tasks = sorted(self.group.tasks, key=lambda task: task.file.file_path)
        if self.table.options.purpose == "convert equality":
            return dealt(tasks, _looked_up_bytes, _LOOKED_UP_BYTES)
        if self.table.form != "partitions":
            return dealt(tasks, lambda _: 1, _FILES_OF_TASK)
        sizes = self.table.options.sizes(self.table.state.metadata.properties)
        files = output_files(self.group.size_bytes, sizes)
        return dealt(tasks, lambda _: 1, -(-len(tasks) // files))


def _looked_up_bytes(task: FileScanTask) -> int:
    return task.file.file_size_in_bytes + _OPEN_BYTES * (1 + len(task.delete_files))


def _for_task(task: FileScanTask) -> FileScanTask:
    return replace(task, file=without_metrics(task.file))
