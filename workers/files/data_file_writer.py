"""One data file, from its name to its `DataFile`. No buffering, no partitioning."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import pyarrow as pa

from committer.iceberg.entry.data_file import DataFile
from workers.arrow.sorting import Sorter
from workers.files.file_system import FileSystem
from workers.files.formats.file_format import FileFormat

# The order id of unsorted data. Source: docs/reference/iceberg-notes.md 2.2.
_UNSORTED = 0


@dataclass(frozen=True, slots=True)
class FileShape:
    """The shape of all data files of one writer. `sorter`: None where rows stay as they come."""

    format: FileFormat
    spec_id: int
    sorter: Sorter | None = None


class DataFileWriter:
    """Writes one file. Its name is claimed at once; each `write` makes one row group."""

    def __init__(
        self,
        files: FileSystem,
        location: str,
        partition: tuple[object, ...],
        shape: FileShape,
        first_rows: pa.Table,
    ) -> None:
        """Claim the name. `first_rows`: those of the first row group, not written yet."""
        self.location = location
        self._partition = partition
        self._shape = shape
        self._last_row: pa.Table | None = None
        self._is_in_order = shape.sorter is not None
        self._sink = files.create(location)
        try:
            self._file = shape.format.open(self._sink, first_rows)
        except BaseException:
            self._sink.close()
            files.delete(location)
            raise

    @property
    def size_bytes(self) -> int:
        """Bytes written so far, without the footer."""
        return int(self._sink.tell())

    def write(self, rows: pa.Table) -> None:
        if self._shape.sorter is not None:
            rows = self._in_order(self._shape.sorter, rows)
        self._file.write(rows)

    def _in_order(self, sorter: Sorter, rows: pa.Table) -> pa.Table:
        """Sort a row group, and look whether the file stays sorted as a whole with it."""
        rows = sorter.sort(rows)
        if self._last_row is not None:
            self._is_in_order &= sorter.follows(self._last_row, rows.slice(0, 1))
        self._last_row = rows.slice(rows.num_rows - 1).take([0])
        return rows

    def _sort_order_id(self) -> int:
        sorter = self._shape.sorter
        return sorter.order_id if sorter is not None and self._is_in_order else _UNSORTED

    def close(self) -> DataFile:
        metrics = self._file.close()
        size = self.size_bytes
        self._sink.close()
        return DataFile(
            file_path=self.location,
            file_format=self._shape.format.name.upper(),
            partition=self._partition,
            record_count=metrics.record_count,
            file_size_in_bytes=size,
            column_sizes=metrics.column_sizes,
            value_counts=metrics.value_counts,
            null_value_counts=metrics.null_value_counts,
            nan_value_counts=metrics.nan_value_counts,
            lower_bounds=metrics.lower_bounds,
            upper_bounds=metrics.upper_bounds,
            split_offsets=metrics.split_offsets,
            sort_order_id=self._sort_order_id(),
            spec_id=self._shape.spec_id,
        )

    def abandon(self) -> None:
        """Close what is open. The file stays, perhaps without a footer, until it is deleted."""
        with contextlib.suppress(Exception):
            self._file.abandon()
        with contextlib.suppress(Exception):
            self._sink.close()
