"""The column metrics of a data file: from its Parquet footer, and from the rows where the footer
has none.

A footer counts no NaN, and has no bounds for a row group with a text or binary above 4 KiB; both
are taken from the rows while they are at hand. Nothing else here reads rows.

As Iceberg's own writers do it, a leaf inside a list or map has its size recorded and nothing more:
its counts would be of elements, not of rows. Source: docs/reference/iceberg-notes.md 1.5, 11.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from committer.errors import InvariantError
from committer.iceberg.schema.metrics_config import MetricsMode
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.single_value import encode_value, scaled
from committer.iceberg.values.truncation import truncate_lower, truncate_upper
from committer.iceberg.values.types import (
    BinaryType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    StringType,
    UUIDType,
)
from workers.arrow.arrow_types import children, field_id

# Parquet keeps no minimum or maximum of a row group above this. Source:
# docs/reference/iceberg-notes.md 11.
_FOOTER_BOUND_BYTES_MAX = 4096


@dataclass(frozen=True, slots=True)
class Leaf:
    """A Parquet column. `path` leads to it: child positions from the top; `repeated`: in a list."""

    field_id: int
    kind: IcebergType
    path: tuple[int, ...]
    repeated: bool
    mode: MetricsMode

    @property
    def has_counts(self) -> bool:
        return not self.repeated and self.mode.counts

    @property
    def has_bounds(self) -> bool:
        return self.has_counts and self.mode.bounds


@dataclass(frozen=True, slots=True)
class FileMetrics:
    """The metrics of columns in `data_file`. Maps are keyed by field id."""

    record_count: int
    column_sizes: Mapping[int, int]
    value_counts: Mapping[int, int]
    null_value_counts: Mapping[int, int]
    nan_value_counts: Mapping[int, int]
    lower_bounds: Mapping[int, bytes]
    upper_bounds: Mapping[int, bytes]
    split_offsets: tuple[int, ...]


# A bound in a footer: int, float, bool or bytes, of one kind per column.
_Raw = Any
_Range = tuple[_Raw, _Raw]
_Truncate = Callable[[IcebergType, object, int], object]


@dataclass(slots=True)
class MetricsCollector:
    """Gathers the metrics of one file: `add` before each row group, `finish` with the footer."""

    leaves: Sequence[Leaf]
    _nan_counts: list[Mapping[int, int]] = field(default_factory=list)
    _long_bounds: list[Mapping[int, _Range]] = field(default_factory=list)

    def add(self, rows: pa.Table) -> None:
        """Read the rows of the next row group; call it once per group, in order."""
        floats = [leaf for leaf in self.leaves if leaf.has_counts and _is_float(leaf.kind)]
        texts = [leaf for leaf in self.leaves if leaf.has_bounds and _is_text(leaf.kind)]
        self._nan_counts.append({at.field_id: _count_nan(_column(rows, at)) for at in floats})
        long_ones = ((at, _column(rows, at)) for at in texts)
        self._long_bounds.append(
            {at.field_id: _min_max(column) for at, column in long_ones if _has_long(column)}
        )

    def finish(self, footer: pq.FileMetaData) -> FileMetrics:
        groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
        chunks = {
            leaf.field_id: [group.column(position) for group in groups]
            for position, leaf in enumerate(self.leaves)
        }
        counted = [leaf for leaf in self.leaves if leaf.has_counts]
        bounds = {
            leaf.field_id: (leaf, self._range(leaf, chunks[leaf.field_id]))
            for leaf in counted
            if leaf.has_bounds
        }
        return FileMetrics(
            record_count=footer.num_rows,
            column_sizes={
                leaf.field_id: sum(c.total_compressed_size for c in chunks[leaf.field_id])
                for leaf in self.leaves
                if leaf.mode.counts
            },
            value_counts={
                leaf.field_id: sum(c.num_values for c in chunks[leaf.field_id]) for leaf in counted
            },
            null_value_counts={
                leaf.field_id: sum(c.statistics.null_count for c in chunks[leaf.field_id])
                for leaf in counted
            },
            nan_value_counts=self._nan_totals(),
            lower_bounds=_encoded(bounds, 0, truncate_lower),
            upper_bounds=_encoded(bounds, 1, truncate_upper),
            split_offsets=tuple(_offset(group) for group in groups),
        )

    def _nan_totals(self) -> dict[int, int]:
        totals: dict[int, int] = {}
        for counts in self._nan_counts:
            for leaf_id, count in counts.items():
                totals[leaf_id] = totals.get(leaf_id, 0) + count
        return totals

    def _range(self, leaf: Leaf, chunks: Sequence[pq.ColumnChunkMetaData]) -> _Range | None:
        """Return the smallest and greatest value over all row groups;
        None if a group hides its own."""
        ranges: list[_Range] = []
        for number, chunk in enumerate(chunks):
            statistics = chunk.statistics
            nan_count = self._nan_counts[number].get(leaf.field_id, 0)
            if statistics.has_min_max:
                ranges.append((_raw(leaf, statistics.min_raw), _raw(leaf, statistics.max_raw)))
            elif leaf.field_id in self._long_bounds[number]:
                ranges.append(self._long_bounds[number][leaf.field_id])
            elif chunk.num_values - statistics.null_count - nan_count:
                return None
        if not ranges:
            return None
        return min(low for low, _ in ranges), max(high for _, high in ranges)


def metrics_leaves(
    file_schema: pa.Schema, table: Schema, modes: Mapping[int, MetricsMode]
) -> tuple[Leaf, ...]:
    """Return the Parquet columns of a file in footer order. pyarrow does not show a footer's field
    ids."""
    return tuple(
        Leaf(leaf_id, _kind(table, leaf_id), path, repeated, modes[leaf_id])
        for leaf_id, path, repeated in _walk(list(file_schema), (), False)
    )


def _walk(
    fields: Sequence[pa.Field], path: tuple[int, ...], repeated: bool
) -> Iterator[tuple[int, tuple[int, ...], bool]]:
    for position, candidate in enumerate(fields):
        inner = children(candidate.type)
        at = (*path, position)
        if inner:
            yield from _walk(inner, at, repeated or not pa.types.is_struct(candidate.type))
        else:
            yield _required_id(candidate), at, repeated


def _kind(table: Schema, leaf_id: int) -> IcebergType:
    found = table.field(leaf_id)
    if found is None:
        raise InvariantError(f"a data file has a column with field id {leaf_id}, the table has not")
    return found.field_type


def _required_id(candidate: pa.Field) -> int:
    found = field_id(candidate)
    if found is None:
        raise InvariantError(f"column {candidate.name} of a data file has no field id")
    return found


def _column(rows: pa.Table, leaf: Leaf) -> pa.ChunkedArray:
    column = rows.column(leaf.path[0])
    return pc.struct_field(column, list(leaf.path[1:])) if len(leaf.path) > 1 else column


def _is_float(kind: IcebergType) -> bool:
    return isinstance(kind, FloatType | DoubleType)


def _is_text(kind: IcebergType) -> bool:
    return isinstance(kind, StringType | BinaryType)


def _count_nan(column: pa.ChunkedArray) -> int:
    return int(pc.sum(pc.is_nan(column)).as_py() or 0)


def _has_long(column: pa.ChunkedArray) -> bool:
    return int(pc.max(pc.binary_length(column)).as_py() or 0) > _FOOTER_BOUND_BYTES_MAX


def _min_max(column: pa.ChunkedArray) -> _Range:
    found = pc.min_max(column.cast(pa.binary()))
    return found["min"].as_py(), found["max"].as_py()


def _raw(leaf: Leaf, value: _Raw) -> _Raw:
    """Return wide decimals as integers: their big-endian bytes do not compare as numbers do."""
    if isinstance(leaf.kind, DecimalType) and isinstance(value, bytes):
        return int.from_bytes(value, "big", signed=True)
    return value


def _encoded(
    bounds: Mapping[int, tuple[Leaf, _Range | None]], side: int, truncate: _Truncate
) -> dict[int, bytes]:
    encoded: dict[int, bytes] = {}
    for leaf_id, (leaf, found) in bounds.items():
        if found is None:
            continue
        value = _value(leaf.kind, found[side])
        if leaf.mode.bounds_width is not None:
            value = truncate(leaf.kind, value, leaf.mode.bounds_width)
        if value is not None:
            encoded[leaf_id] = encode_value(leaf.kind, value)
    return encoded


def _value(kind: IcebergType, raw: _Raw) -> object:
    match kind:
        case DecimalType():
            return scaled(raw, kind.scale)
        case StringType():
            return str(raw, "utf-8")
        case UUIDType():
            return UUID(bytes=raw)
    found: object = raw
    return found


def _offset(group: pq.RowGroupMetaData) -> int:
    """Return where a row group starts: at its first column's dictionary, or data."""
    first = group.column(0)
    offset: int = first.data_page_offset
    if first.dictionary_page_offset is not None:
        offset = min(offset, first.dictionary_page_offset)
    return offset
