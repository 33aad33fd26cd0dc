"""Rows that wait for their row group, and how many bytes they hold. No files."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

# An Arrow array is more than its buffers: their padding and the objects around them.
_ARRAY_BYTES = 256
_PIECES_MAX = 64
# A batch of this size is worth its overhead, and too much to copy.
_LARGE_BYTES = 1 << 18


def batch_bytes(batch: pa.RecordBatch | pa.Table) -> int:
    """Return about how much memory a batch takes. `nbytes` counts only the rows of a slice."""
    return int(batch.nbytes) + _ARRAY_BYTES * int(batch.num_columns)


def owned_bytes(batch: pa.RecordBatch) -> int:
    """Return how much memory a batch takes that is no slice of another: forty times faster."""
    return int(batch.get_total_buffer_size()) + _ARRAY_BYTES * int(batch.num_columns)


@dataclass(slots=True)
class RowBuffer:
    """Batches of one partition. Many small ones are joined: their overhead would outgrow them."""

    size_bytes: int = 0
    num_rows: int = 0
    _joined: list[pa.RecordBatch] = field(default_factory=list)
    _small: list[pa.RecordBatch] = field(default_factory=list)
    _small_bytes: int = 0

    def add(self, batch: pa.RecordBatch, size: int) -> None:
        """Take rows that hold `size` bytes."""
        self.size_bytes += size
        self.num_rows += batch.num_rows
        self._small.append(batch)
        self._small_bytes += size
        if size >= _LARGE_BYTES:
            self._joined += self._small
            self._small, self._small_bytes = [], 0
        elif len(self._small) == _PIECES_MAX:
            self._join()

    def take_all(self) -> pa.Table:
        """Return the rows in order of arrival, and empty the buffer."""
        rows = pa.Table.from_batches([*self._joined, *self._small])
        self._joined, self._small = [], []
        self.size_bytes = self.num_rows = self._small_bytes = 0
        return rows

    def _join(self) -> None:
        joined = pa.concat_batches(self._small)
        self.size_bytes += owned_bytes(joined) - self._small_bytes
        self._joined.append(joined)
        self._small, self._small_bytes = [], 0
