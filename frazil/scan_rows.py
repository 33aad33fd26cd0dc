"""The rows of a scan as Arrow batches, read in this process through the table's own storage."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from committer.iceberg.scan.scan_task import FileScanTask
from committer.storage.disk import local_files
from committer.storage.scheme import scheme_of
from committer.table_reader import TableReader
from frazil.handle import TableHandle
from workers.read.deletes.delete_cache import DeleteCache
from workers.read.shared_read import TableRead
from workers.read.task_reader import count_rows, read_task


@dataclass(frozen=True, slots=True)
class ScanRows:
    """A way to the rows of a table's tasks."""

    handle: TableHandle
    read: TableRead

    def reader(self, tasks: Iterable[FileScanTask]) -> pa.RecordBatchReader:
        """Return the rows of tasks, read as they are asked for.
        Errors of reading: as `read_task`; those of the storage."""
        return pa.RecordBatchReader.from_batches(self.read.arrow_schema, self._batches(tasks))

    def _batches(self, tasks: Iterable[FileScanTask]) -> Iterator[pa.RecordBatch]:
        cache = DeleteCache()
        with self.handle.open_shared_reader() as reader:
            for task in tasks:
                yield from read_task(self.read, task, partial(_open, reader), cache)

    def count(self, tasks: Iterable[FileScanTask]) -> int:
        """Count the rows of tasks. Errors: as `reader`."""
        cache = DeleteCache()
        with self.handle.open_shared_reader() as reader:
            opened = partial(_open, reader)
            return sum(count_rows(self.read, task, opened, cache) for task in tasks)


def _open(reader: TableReader, location: str) -> pa.NativeFile:
    if scheme_of(location) == "file":
        return pa.OSFile(local_files.local_name(location))
    return pa.PythonFile(_StoredObject(reader, location), mode="r")


class _StoredObject(io.RawIOBase):
    """An object that is read by ranges."""

    def __init__(self, reader: TableReader, location: str) -> None:
        super().__init__()
        self._reader, self._location = reader, location
        self._size_bytes = reader.size_bytes(location)
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size_bytes}[whence]
        self._position = start + offset
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # any buffer may come
        length = min(len(buffer), self._size_bytes - self._position)
        if length <= 0:
            return 0
        found = self._reader.read_range(self._location, self._position, length)
        buffer[: len(found)] = found
        self._position += len(found)
        return len(found)
