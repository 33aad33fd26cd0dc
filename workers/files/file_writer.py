"""Rows in, data files out: one task's writer, which fans rows out to their partitions.

Memory is bounded. Rows wait in one buffer per partition until they fill a row group; when all
buffers together reach the cap, the largest is written, whatever its size. Files open at once are
bounded too. Nothing here knows Spark, the commit request or the catalog.

A row group is as large as its buffer, because a file of many small row groups costs three times the
CPU time and a quarter more bytes. Source: docs/reference/iceberg-notes.md 11.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Self

import pyarrow as pa

from committer.errors import AlreadyExistsError, InvariantError
from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.schema.partition_spec import partition_path
from committer.iceberg.values.locations import data_file_location, data_folder
from workers.arrow.partitioning import Partition, bind_partitioner, partition_key
from workers.arrow.sorting import bind_sorter
from workers.files.data_file_writer import DataFileWriter, FileShape
from workers.files.file_system import FileSystem, open_file_system
from workers.files.formats.choose_format import choose_format
from workers.files.row_buffer import RowBuffer, batch_bytes, owned_bytes
from workers.files.write_properties import MIB
from workers.files.write_target import WriteTarget

# A file this close to its target is finished: another row group would be a tiny one.
_FULL = 0.95
# Parquet readers hold a row group's rows at once, however narrow they are.
_ROW_GROUP_ROWS_MAX = 8 * MIB


@dataclass(frozen=True, slots=True)
class FileNames:
    """The names of a task's files: `<partition>-<task>-<attempt
    uuid>-<salt>-<count><suffix>.<format>`.

    A task that is run again has another task attempt id, but those restart with the application;
    `salt` is what makes a name unique for sure. Two writers of one task have different suffixes.
    """

    partition_id: int
    task_attempt_id: int
    attempt: str
    salt: str
    suffix: str = ""

    def name(self, count: int, ending: str) -> str:
        task = f"{self.partition_id:05d}-{self.task_attempt_id}"
        return f"{task}-{self.attempt}-{self.salt}-{count:05d}{self.suffix}{ending}"


@dataclass(frozen=True, slots=True)
class WriterLimits:
    """The memory limits of one task. `staged`: rows that are split into partitions together;
    `row_group`: rows that become one row group, however few bytes these have on disk.
    """

    buffered_bytes: int = 256 * MIB
    staged_bytes: int = 16 * MIB
    row_group_bytes: int = 128 * MIB
    open_files: int = 100


@dataclass(slots=True)
class _Lane:
    """One partition: its waiting rows, and the file that is open for it."""

    partition: Partition
    buffer: RowBuffer = field(default_factory=RowBuffer)
    file: DataFileWriter | None = None


class Discarding(ABC):
    """Writes files, as a context manager: an error inside discards them."""

    @abstractmethod
    def discard(self) -> None:
        """Close and delete all files of this writer, which were not reported yet.

        Errors are ignored: a file that could not be deleted is an orphan, which no table names.
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is not None:
            self.discard()


class PartitionedWriter(Discarding):
    """Writes one task's rows. Use it as a context manager: an error inside discards its files.

    `write` takes batches of the file schema (`MatchedColumns.conform` makes them); `close` ends it.
    """

    def __init__(
        self,
        target: WriteTarget,
        file_schema: pa.Schema,
        names: FileNames,
        *,
        limits: WriterLimits | None = None,
        files: FileSystem | None = None,
    ) -> None:
        """Prepare to write. Errors: `UnsupportedError` for an unknown format, property,
        transform or place."""
        self._target = target
        self._schema = file_schema
        self._names = names
        self._limits = limits or WriterLimits()
        self._format = choose_format(
            target.properties, file_schema, target.schema, target.table_order
        )
        self._partitioner = bind_partitioner(target.spec, target.schema, file_schema)
        folder = data_folder(target.location, target.properties)
        self._files = files or open_file_system(folder, target.access)
        sorter = bind_sorter(target.sort_order, target.schema, file_schema)
        self._shape = FileShape(self._format, target.spec.spec_id, sorter)
        self._lanes: dict[Partition, _Lane] = {}
        self._staged = RowBuffer()
        self._staged_bytes_max = min(self._limits.staged_bytes, self._limits.buffered_bytes // 4)
        self._open: dict[str, _Lane] = {}
        self._locations: list[str] = []
        self._done: list[DataFile] = []
        self._buffered_bytes = 0
        # Bytes on disk per byte in memory, as the row groups so far had it.
        self._arrow_bytes = self._disk_bytes = 1
        self._is_closed = False

    # --- Rows in ---------------------------------------------------------------------------------

    def write(self, batch: pa.RecordBatch) -> None:
        """Take the rows of a batch. Errors: those of a full or unavailable file system."""
        if self._is_closed or not batch.schema.equals(self._schema):
            raise InvariantError(f"a writer of {self._schema} that is open, given {batch.schema}")
        for piece in _pieces(batch, self._staged_bytes_max):
            if self._target.spec.fields:
                self._stage(piece)
            else:
                self._add((), piece, batch_bytes(piece))

    def _stage(self, piece: pa.RecordBatch) -> None:
        """Collect rows before they are split: splitting costs by the partition."""
        size = batch_bytes(piece)
        if self._staged.size_bytes + size > self._staged_bytes_max:
            self._split_staged()
        self._make_room(size)
        before = self._staged.size_bytes
        self._staged.add(piece, size)
        self._count_buffered(self._staged.size_bytes - before)

    def _split_staged(self) -> None:
        if not self._staged.num_rows:
            return
        self._count_buffered(-self._staged.size_bytes)
        rows = self._staged.take_all().combine_chunks().to_batches()
        for batch in rows:
            for partition, part in self._partitioner.split(batch):
                self._add(partition, part, owned_bytes(part))

    def _add(self, partition: Partition, part: pa.RecordBatch, size: int) -> None:
        lane = self._lanes.setdefault(partition_key(partition), _Lane(partition))
        self._make_room(size)
        before = lane.buffer.size_bytes
        lane.buffer.add(part, size)
        self._count_buffered(lane.buffer.size_bytes - before)
        if lane.buffer.size_bytes >= self._row_group_bytes(lane) or (
            lane.buffer.num_rows >= _ROW_GROUP_ROWS_MAX
        ):
            self._flush(lane)

    def _make_room(self, size: int) -> None:
        """Write the largest buffers until `size` more bytes fit, or nothing waits."""
        while self._buffered_bytes and self._buffered_bytes + size > self._limits.buffered_bytes:
            largest = max(self._lanes.values(), key=_buffered, default=None)
            if largest is None or not largest.buffer.num_rows:
                return
            self._flush(largest)

    def _count_buffered(self, change: int) -> None:
        self._buffered_bytes += change

    # --- Files out -------------------------------------------------------------------------------

    def _row_group_bytes(self, lane: _Lane) -> int:
        """Return how many bytes a buffer may hold:
        a row group, or less if the file is nearly full."""
        written = lane.file.size_bytes if lane.file else 0
        left = self._in_memory(self._format.target_file_bytes - written)
        group = self._in_memory(self._format.row_group_bytes)
        return min(group, self._limits.row_group_bytes, self._limits.buffered_bytes, left)

    def _in_memory(self, size: int) -> int:
        """Return how many bytes of rows become so many on disk."""
        return size * self._arrow_bytes // self._disk_bytes

    def _flush(self, lane: _Lane) -> None:
        """Write a lane's rows as one row group; finish its file when that made it large enough."""
        size = lane.buffer.size_bytes
        self._count_buffered(-size)
        rows = lane.buffer.take_all()
        file = lane.file or self._open_file(lane, rows)
        before = file.size_bytes
        file.write(rows)
        self._open[file.location] = self._open.pop(file.location)
        self._arrow_bytes += size
        self._disk_bytes += file.size_bytes - before
        if file.size_bytes >= self._format.target_file_bytes * _FULL:
            self._finish(lane)

    def _open_file(self, lane: _Lane, rows: pa.Table) -> DataFileWriter:
        if len(self._open) >= self._limits.open_files:
            longest_idle = next(iter(self._open))
            self._finish(self._open[longest_idle])
        location = self._location(lane.partition)
        # Before the name is claimed: an interruption between the two deletes the file.
        self._locations.append(location)
        try:
            lane.file = DataFileWriter(self._files, location, lane.partition, self._shape, rows)
        except AlreadyExistsError:
            self._locations.pop()  # another's
            raise
        self._open[location] = lane
        return lane.file

    def _location(self, partition: Partition) -> str:
        target = self._target
        path = partition_path(target.spec, target.schema, partition)
        name = self._names.name(len(self._locations) + 1, f".{self._format.name}")
        return data_file_location(target.location, target.properties, path, name)

    def _finish(self, lane: _Lane) -> None:
        file = lane.file
        if file is None:
            return
        self._done.append(file.close())
        lane.file = None
        del self._open[file.location]

    # --- The end ---------------------------------------------------------------------------------

    def close(self) -> list[DataFile]:
        """Write what waits, and return the files in the order in which they were finished.

        They are durable then. Without rows there are none.
        """
        self._split_staged()
        for lane in self._lanes.values():
            if lane.buffer.num_rows:
                self._flush(lane)
            self._finish(lane)
        self._is_closed = True
        self._files.make_durable(self._locations)
        return self._done

    def discard(self) -> None:
        self._is_closed = True
        for lane in self._open.values():
            if lane.file is not None:
                lane.file.abandon()
        for kept in (self._lanes, self._open, self._done):
            kept.clear()
        for location in self._locations:
            with contextlib.suppress(Exception):
                self._files.delete(location)


def _buffered(lane: _Lane) -> int:
    return lane.buffer.size_bytes


def _pieces(batch: pa.RecordBatch, size_max: int) -> list[pa.RecordBatch]:
    """Slice the batch to pieces of about that many bytes:
    Spark bounds its batches by rows alone."""
    if not batch.num_rows:
        return []
    count = -(-batch_bytes(batch) // size_max)
    rows = max(1, -(-batch.num_rows // count))
    return [batch.slice(start, rows) for start in range(0, batch.num_rows, rows)]
