"""The part of a scan's tasks that travels to the tasks of Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.scan.entry_reader import without_metrics
from committer.iceberg.scan.scan_task import FileScanTask


def slim_tasks(tasks: Iterable[FileScanTask]) -> Iterator[FileScanTask]:
    """Yield tasks whose delete files have no metrics: these were needed only to find them. Files
    that tasks share stay one value."""
    slim: dict[int, tuple[DataFile, DataFile]] = {}
    for task in tasks:
        if not task.delete_files:
            yield task
            continue
        deletes = []
        for file in task.delete_files:
            # The file itself is kept, so that no other one gets its id.
            _, found = slim.setdefault(id(file), (file, without_metrics(file)))
            deletes.append(found)
        yield replace(task, delete_files=tuple(deletes))
