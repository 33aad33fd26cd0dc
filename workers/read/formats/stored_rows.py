"""An open file of rows: what each format gives, and the limits of its batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from committer.iceberg.scan.task_part import TaskPart
from committer.iceberg.values.types import IcebergType
from workers.adoption.file_columns import FileColumn as StoredColumn
from workers.adoption.file_columns import Stored
from workers.arrow.footer_metrics import ColumnFacts

BATCH_ROWS_MAX = 64 * 1024
# As the file encodes them: repeated values may have more in memory.
BATCH_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class RowRange:
    """A batch of stored rows; `first` is the position of the first one in the file."""

    first: int
    batch: pa.RecordBatch


class StoredRows(Protocol):
    """The columns and the rows of an open file."""

    @property
    def columns(self) -> Sequence[StoredColumn]:
        """The file's columns, their leaves numbered depth first."""

    def readable(self, leaves: frozenset[int]) -> frozenset[int]:
        """Return these leaves, and those that the format reads along with them."""

    def ranges(
        self,
        leaves: frozenset[int],
        part: TaskPart | None = None,
        may_match: RowGroupTest | None = None,
    ) -> Iterator[RowRange]:
        """Yield the rows of a part in the file's order, a batch in memory: the columns that have
        one of the `readable` leaves, and inside of these nothing else.

        Row groups that `may_match` denies are left out. Errors: `InvalidMetadataError`; `OSError`.
        """

    def facts(self, number: int, leaf: Stored, kind: IcebergType) -> ColumnFacts | None:
        """Return the statistics of a leaf in one row group, bounds as values of `kind`, the leaf's
        own type; None if the file has none."""


# Whether a row group of this number may have a wanted row.
RowGroupTest = Callable[[int], bool]


def batch_rows(rows: int, size_bytes: int) -> int:
    """Return how many rows a batch has, of rows that have so many bytes in all."""
    return max(1, min(BATCH_ROWS_MAX, BATCH_BYTES * rows // max(1, size_bytes)))


def rows_without_columns(first: int, count: int) -> Iterator[RowRange]:
    """Yield rows of which nothing is read but how many there are."""
    for start in range(0, count, BATCH_ROWS_MAX):
        rows = min(BATCH_ROWS_MAX, count - start)
        yield RowRange(first + start, batch_without_columns(rows))


def batch_without_columns(rows: int) -> pa.RecordBatch:
    kind = pa.struct([])
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(kind, rows, [None]))
