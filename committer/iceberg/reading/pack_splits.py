"""Packs the parts of a scan's files into splits of about equal size, one for each task.

All is decided by what the manifests say; no file is opened.
Source: Iceberg Java, `TableScanUtil.planTaskGroups` and `BinPacking.PackingIterator`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.scan.scan_task import FileScanTask
from committer.iceberg.scan.task_part import TaskPart, split_task


@dataclass(frozen=True, slots=True)
class SplitSizes:
    """The sizes by which splits are packed, in bytes; the defaults are Iceberg's.

    `lookback`: how many splits are open at a time. A file counts at least `open_file_cost_bytes`,
    and each of its delete files as well.
    """

    split_bytes: int = 128 << 20
    lookback: int = 10
    open_file_cost_bytes: int = 4 << 20


Split = tuple[TaskPart, ...]


def pack_splits(tasks: Iterable[FileScanTask], sizes: SplitSizes) -> Iterator[Split]:
    """Yield the splits of a scan's tasks; at most `lookback` are held at a time.

    Each part joins the first open split that has room, else opens one; where more than `lookback`
    are open then, the heaviest is done.
    """
    open_splits: list[_OpenSplit] = []
    for part in (part for task in tasks for part in split_task(task, sizes.split_bytes)):
        weight_bytes = _weight(part, sizes.open_file_cost_bytes)
        room_bytes = sizes.split_bytes - weight_bytes
        found = next((one for one in open_splits if one.weight_bytes <= room_bytes), None)
        if found is None:
            found = _OpenSplit()
            open_splits.append(found)
        found.add(part, weight_bytes)
        if len(open_splits) > sizes.lookback:
            heaviest = max(open_splits, key=lambda one: one.weight_bytes)
            open_splits.remove(heaviest)
            yield tuple(heaviest.parts)
    for one in open_splits:
        yield tuple(one.parts)


class _OpenSplit:
    """A split that may still get parts."""

    __slots__ = ("parts", "weight_bytes")

    def __init__(self) -> None:
        self.parts: list[TaskPart] = []
        self.weight_bytes = 0

    def add(self, part: TaskPart, weight_bytes: int) -> None:
        """Add a part; it joins the one before where it follows that in the same file, which is
        opened once for both."""
        last = self.parts[-1] if self.parts else None
        if last is not None and last.task is part.task and last.start + last.length == part.start:
            self.parts[-1] = TaskPart(part.task, last.start, last.length + part.length)
        else:
            self.parts.append(part)
        self.weight_bytes += weight_bytes


def _weight(part: TaskPart, open_file_cost_bytes: int) -> int:
    deletes = part.task.delete_files
    size_bytes = part.length + sum(_deletes_bytes(one) for one in deletes)
    return max(size_bytes, (1 + len(deletes)) * open_file_cost_bytes)


def _deletes_bytes(file: DataFile) -> int:
    """Return what a reader reads of a delete file: of a deletion vector, its own bytes."""
    size_bytes = file.content_size_in_bytes
    if size_bytes is not None and file.is_deletion_vector:
        return size_bytes
    return file.file_size_in_bytes
