"""Parts of a task: ranges of a large data file, so that several readers share it.

Source: the table property `read.split.target-size`; `split_offsets` of data files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.scan.scan_task import FileScanTask


@dataclass(frozen=True, slots=True)
class TaskPart:
    """Those row groups of a task's data file that start within `length` bytes from `start`.

    A file of another format than Parquet counts as one row group that starts at 0.
    """

    task: FileScanTask
    start: int
    length: int

    def has(self, offset: int) -> bool:
        """Return whether a row group that starts there is in this part."""
        return self.start <= offset < self.start + self.length


def whole_task(task: FileScanTask) -> TaskPart:
    return TaskPart(task, 0, task.file.file_size_in_bytes)


def split_task(task: FileScanTask, split_bytes: int) -> Iterator[TaskPart]:
    """Split a task into parts of about this size, at row groups where the file's entry names them.

    The parts cover the file without overlap, in its order; their deletes are the same.
    """
    file = task.file
    if file.file_format.upper() != "PARQUET" or file.file_size_in_bytes <= split_bytes:
        yield whole_task(task)
        return
    starts = _starts(file, split_bytes)
    for start, end in zip(starts, [*starts[1:], file.file_size_in_bytes], strict=True):
        yield TaskPart(task, start, end - start)


def _starts(file: DataFile, split_bytes: int) -> list[int]:
    """Return where parts start. The first starts at 0, though its row group lies a bit behind."""
    offsets = file.split_offsets
    if not offsets or not _is_sound(offsets, file.file_size_in_bytes):
        return list(range(0, file.file_size_in_bytes, split_bytes))
    starts = [0]
    for offset, end in zip(offsets, [*offsets[1:], file.file_size_in_bytes], strict=True):
        if end - starts[-1] > split_bytes and offset > offsets[0]:
            starts.append(offset)
    return starts


def _is_sound(offsets: Sequence[int], size_bytes: int) -> bool:
    """Return whether offsets ascend within the file: some writers have left others."""
    around = [-1, *offsets, size_bytes]
    return all(one < other for one, other in pairwise(around))
