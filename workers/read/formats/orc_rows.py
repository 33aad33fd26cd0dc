"""The rows of an ORC file: one stripe after the other, only the top-level columns of the read."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pyarrow as pa
from pyarrow import orc

from committer.iceberg.scan.task_part import TaskPart
from committer.iceberg.values.types import (
    IcebergType,
    LongType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
)
from workers.adoption.file_columns import FileColumn, Shape, Stored, shape_of
from workers.arrow.arrow_types import children, primitive_of
from workers.arrow.footer_metrics import ColumnFacts
from workers.read.formats.stored_rows import (
    BATCH_ROWS_MAX,
    RowGroupTest,
    RowRange,
    rows_without_columns,
)

# Attributes that Iceberg's writers give to columns.
_FIELD_ID = b"iceberg.id"
# Files may not say which of these a column is: ORC has fewer types.
_MORE: dict[IcebergType, tuple[IcebergType, ...]] = {
    LongType(): (LongType(), TimeType()),
    TimestampNanoType(): (TimestampType(), TimestampNanoType()),
    TimestamptzNanoType(): (TimestamptzType(), TimestamptzNanoType()),
}


class OrcRows:
    """An open ORC file. `StoredRows`."""

    def __init__(self, source: pa.NativeFile) -> None:
        """Read the footer. Errors: `pa.ArrowException`; `OSError`."""
        self._file = orc.ORCFile(source)
        numbers = count()
        self.columns = tuple(_column(field, numbers) for field in self._file.schema)

    def readable(self, leaves: frozenset[int]) -> frozenset[int]:
        """Return all leaves of the columns that have one; of all, where a path may be a name."""
        if not leaves:
            return leaves
        has_paths = any("." in column.name for column in self.columns)
        wanted = (column.positions for column in self.columns)
        return frozenset().union(
            *(one for one in wanted if has_paths or not leaves.isdisjoint(one))
        )

    def ranges(
        self,
        leaves: frozenset[int],
        part: TaskPart | None = None,
        may_match: RowGroupTest | None = None,
    ) -> Iterator[RowRange]:
        if part is not None and not part.has(0):
            return
        if not leaves:
            yield from rows_without_columns(0, self._file.nrows)
            return
        names = self._names(leaves)
        first = 0
        for number in range(self._file.nstripes):
            stripe = self._file.read_stripe(number, columns=names)
            for start in range(0, stripe.num_rows, BATCH_ROWS_MAX):
                yield RowRange(first + start, stripe.slice(start, BATCH_ROWS_MAX))
            first += stripe.num_rows

    def facts(self, number: int, leaf: Stored, kind: IcebergType) -> ColumnFacts | None:
        return None

    def _names(self, leaves: frozenset[int]) -> list[str] | None:
        kept = [column.name for column in self.columns if not leaves.isdisjoint(column.positions)]
        return None if len(kept) == len(self.columns) else kept


def _column(field: pa.Field, numbers: Iterator[int]) -> FileColumn:
    found = (field.metadata or {}).get(_FIELD_ID)
    field_id = None if found is None else int(found)
    inner = children(field.type)
    if inner or pa.types.is_struct(field.type):
        parts = tuple(_column(one, numbers) for one in inner)
        return FileColumn(field.name, field_id, field.nullable, shape_of(field.type), parts)
    stored = Stored(next(numbers), _kinds(field.type), str(field.type))
    return FileColumn(field.name, field_id, field.nullable, Shape.VALUE, (), stored)


def _kinds(kind: pa.DataType) -> tuple[IcebergType, ...]:
    found = primitive_of(kind)
    return () if found is None else _MORE.get(found, (found,))
