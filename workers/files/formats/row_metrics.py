"""Column metrics from the rows themselves, for a format whose writer tells none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from committer.iceberg.values.types import (
    BinaryType,
    DoubleType,
    FixedType,
    FloatType,
    UUIDType,
    VariantType,
)
from workers.arrow.footer_metrics import FileMetrics, Leaf, encoded_bounds
from workers.arrow.partitioning import column_at

_Range = tuple[Any, Any]
# Iceberg's own writer of ORC has no bounds of these.
_UNBOUND = (BinaryType, FixedType, UUIDType, VariantType)


@dataclass(slots=True)
class RowMetrics:
    """Gathers the metrics of one file: `add` all of its rows, then `finish`."""

    leaves: Sequence[Leaf]
    _rows: int = 0
    _nulls: dict[int, int] = field(default_factory=dict)
    _nans: dict[int, int] = field(default_factory=dict)
    _ranges: dict[int, _Range] = field(default_factory=dict)

    def add(self, rows: pa.Table) -> None:
        self._rows += rows.num_rows
        for leaf in self.leaves:
            if leaf.has_counts:
                self._add_column(leaf, column_at(rows, leaf.path))

    def _add_column(self, leaf: Leaf, column: pa.ChunkedArray) -> None:
        number = leaf.field_id
        self._nulls[number] = self._nulls.get(number, 0) + column.null_count
        if isinstance(leaf.kind, FloatType | DoubleType):
            is_nan = pc.is_nan(column)
            self._nans[number] = self._nans.get(number, 0) + (pc.sum(is_nan).as_py() or 0)
            column = column.filter(pc.invert(is_nan))
        if leaf.has_bounds and not isinstance(leaf.kind, _UNBOUND):
            self._widen(leaf, column)

    def _widen(self, leaf: Leaf, column: pa.ChunkedArray) -> None:
        found = pc.min_max(_plain(column))
        low, high = found["min"].as_py(), found["max"].as_py()
        if low is None:
            return
        if isinstance(low, float):
            # A zero has two signs, of which Arrow sees one.
            low, high = low or -0.0, high or 0.0
        known = self._ranges.get(leaf.field_id, (low, high))
        self._ranges[leaf.field_id] = min(low, known[0]), max(high, known[1])

    def finish(self) -> FileMetrics:
        leaves = {leaf.field_id: leaf for leaf in self.leaves}
        bounded = [(leaves[number], found) for number, found in self._ranges.items()]
        return FileMetrics(
            record_count=self._rows,
            value_counts=dict.fromkeys(self._nulls, self._rows),
            null_value_counts=self._nulls,
            nan_value_counts=self._nans,
            lower_bounds=encoded_bounds(bounded, 0),
            upper_bounds=encoded_bounds(bounded, 1),
        )


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return times as the numbers that Iceberg has for them."""
    kind = column.type
    if pa.types.is_temporal(kind):
        return column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    return column
