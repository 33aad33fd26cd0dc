"""The column metrics that a Parquet footer holds: sizes, counts and bounds over all row groups.

As Iceberg's own writers do it, a leaf inside a list or map has its size recorded and nothing more:
its counts would be of elements, not of rows. Nothing here reads rows; a writer that has them at
hand says what a footer hides (`SeenRows`). Source: docs/reference/iceberg-notes.md 1.5, 11.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pyarrow.parquet as pq

from committer.iceberg.schema.metrics_config import MetricsMode
from committer.iceberg.values.single_value import encode_value, scaled
from committer.iceberg.values.truncation import truncate_lower, truncate_upper
from committer.iceberg.values.types import (
    DecimalType,
    IcebergType,
    StringType,
    UUIDType,
    VariantType,
)

# A bound in a footer: int, float, bool or bytes, of one kind per column.
RawValue = Any
RawRange = tuple[RawValue, RawValue]
_LONG_LIMIT = 1 << 63


@dataclass(frozen=True, slots=True)
class Leaf:
    """A Parquet column. `position`: in the footer. `path` leads to it: child positions from the
    top; `repeated`: in a list or map. `units`: units of the table's type in one of the file's.
    `is_ordered`: whether the footer's bounds are by the order of the type, as its values are.
    """

    field_id: int
    kind: IcebergType
    path: tuple[int, ...]
    repeated: bool
    mode: MetricsMode
    position: int
    units: int = 1
    is_ordered: bool = True

    @property
    def has_counts(self) -> bool:
        return not self.repeated and self.mode.counts

    @property
    def has_bounds(self) -> bool:
        return self.has_counts and self.mode.bounds and not isinstance(self.kind, VariantType)


@dataclass(frozen=True, slots=True)
class SeenRows:
    """The metrics of one row group that its footer lacks, by field id."""

    nan_counts: Mapping[int, int] = field(default_factory=dict)
    long_bounds: Mapping[int, RawRange] = field(default_factory=dict)


_NOT_SEEN = SeenRows()


@dataclass(frozen=True, slots=True)
class FileMetrics:
    """The metrics of columns in `data_file`. Maps are keyed by field id; None: not collected."""

    record_count: int
    column_sizes: Mapping[int, int] | None = None
    value_counts: Mapping[int, int] | None = None
    null_value_counts: Mapping[int, int] | None = None
    nan_value_counts: Mapping[int, int] | None = None
    lower_bounds: Mapping[int, bytes] | None = None
    upper_bounds: Mapping[int, bytes] | None = None
    split_offsets: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """The counts and the bounds of one column of a file; None for what the footer does not say."""

    value_count: int
    null_count: int | None
    bounds: tuple[object, object] | None
    """The lowest and the highest value, as Iceberg has values in memory. NaN is not one of them."""


def footer_metrics(
    groups: Sequence[pq.RowGroupMetaData], leaves: Sequence[Leaf], seen: Sequence[SeenRows] = ()
) -> FileMetrics:
    """Gather the metrics of a file from its row groups, each of which has rows. `seen`: of each, in
    order; nothing where its writer is another one."""
    counted = [(leaf, column_facts(groups, leaf, seen)) for leaf in leaves if leaf.has_counts]
    bounded = [(leaf, facts.bounds) for leaf, facts in counted if leaf.has_bounds and facts.bounds]
    return FileMetrics(
        record_count=sum(group.num_rows for group in groups),
        column_sizes={
            leaf.field_id: sum(g.column(leaf.position).total_compressed_size for g in groups)
            for leaf in leaves
            if leaf.mode.counts and not isinstance(leaf.kind, VariantType)
        },
        value_counts={leaf.field_id: facts.value_count for leaf, facts in counted},
        null_value_counts={
            leaf.field_id: facts.null_count
            for leaf, facts in counted
            if facts.null_count is not None
        },
        nan_value_counts=_nan_totals(seen),
        lower_bounds=encoded_bounds(bounded, 0),
        upper_bounds=encoded_bounds(bounded, 1),
        split_offsets=_split_offsets(groups),
    )


def row_groups(footer: pq.FileMetaData) -> list[pq.RowGroupMetaData]:
    return [footer.row_group(number) for number in range(footer.num_row_groups)]


def with_rows(groups: Iterable[pq.RowGroupMetaData]) -> list[pq.RowGroupMetaData]:
    """Return the row groups that have rows. Of others, footers have neither counts nor bounds, and
    any offset."""
    return [group for group in groups if group.num_rows]


def _split_offsets(groups: Sequence[pq.RowGroupMetaData]) -> tuple[int, ...]:
    """Return where row groups start, each place once, in the order of the file. spec: field 132,
    sorted ascending; a footer may list them in another order."""
    return tuple(sorted({row_group_offset(group) for group in groups if group.num_columns}))


def column_facts(
    groups: Sequence[pq.RowGroupMetaData], leaf: Leaf, seen: Sequence[SeenRows] = ()
) -> ColumnFacts:
    """Gather counts and bounds of one column over all row groups."""
    value_count, null_count, ranges = 0, 0, list[RawRange | None]()
    for number, group in enumerate(groups):
        chunk = group.column(leaf.position)
        nulls = _null_count(chunk)
        value_count += chunk.num_values
        null_count = null_count + nulls if null_count >= 0 <= nulls else -1
        rows = seen[number] if seen else _NOT_SEEN
        nan_count = rows.nan_counts.get(leaf.field_id, 0)
        if nulls + nan_count != chunk.num_values:
            ranges.append(_range(leaf, chunk, rows))
    whole = _union(ranges)
    bounds = None if whole is None else _values(leaf, whole)
    return ColumnFacts(value_count, None if null_count < 0 else null_count, bounds)


def _null_count(chunk: pq.ColumnChunkMetaData) -> int:
    """Return how many nulls a row group has; -1 if its footer does not say, or says more than it
    has values."""
    statistics = chunk.statistics
    if statistics is None or not statistics.has_null_count:
        return -1
    count = int(statistics.null_count)
    return count if 0 <= count <= chunk.num_values else -1


def _range(leaf: Leaf, chunk: pq.ColumnChunkMetaData, rows: SeenRows) -> RawRange | None:
    """Return the lowest and highest value of one row group that has some;
    None if its footer hides them."""
    statistics = chunk.statistics
    if statistics is not None and statistics.has_min_max:
        low, high = statistics.min_raw, statistics.max_raw
        # Equal ones are bounds in every order.
        return _raw_range(leaf, low, high) if leaf.is_ordered or low == high else None
    return rows.long_bounds.get(leaf.field_id)


def _raw_range(leaf: Leaf, low: RawValue, high: RawValue) -> RawRange | None:
    if isinstance(low, float):
        # Writers of old have put NaN there, and either zero. Source: the Parquet format's
        # `ColumnOrder`.
        if math.isnan(low) or math.isnan(high):
            return None
        low, high = low or -0.0, high or 0.0
    elif isinstance(leaf.kind, DecimalType) and isinstance(low, bytes):
        # Wide decimals as integers: their big-endian bytes do not compare as numbers do.
        low, high = (int.from_bytes(one, "big", signed=True) for one in (low, high))
    return (low, high) if low <= high else None


def _union(ranges: Sequence[RawRange | None]) -> RawRange | None:
    """Return the range of all; None without any, or if one is hidden."""
    found = [one for one in ranges if one is not None]
    if not found or len(found) != len(ranges):
        return None
    return min(low for low, _ in found), max(high for _, high in found)


def _values(leaf: Leaf, raw: RawRange) -> tuple[object, object] | None:
    if not all(_is_in_type(leaf, one) for one in raw):
        return None
    try:
        return _value(leaf, raw[0]), _value(leaf, raw[1])
    except UnicodeDecodeError:
        return None  # cut within a character


def _is_in_type(leaf: Leaf, raw: RawValue) -> bool:
    """Return whether a bound is a value of the table's type: no decimal of more digits, no time
    that is out of range in the table's units."""
    if isinstance(leaf.kind, DecimalType):
        return bool(abs(raw) < 10**leaf.kind.precision)
    return leaf.units == 1 or -_LONG_LIMIT <= raw * leaf.units < _LONG_LIMIT


def _value(leaf: Leaf, raw: RawValue) -> object:
    match leaf.kind:
        case DecimalType():
            return scaled(raw, leaf.kind.scale)
        case StringType():
            return str(raw, "utf-8")
        case UUIDType():
            return UUID(bytes=raw)
    found: object = raw * leaf.units if leaf.units != 1 else raw
    return found


def _nan_totals(seen: Sequence[SeenRows]) -> dict[int, int]:
    totals: dict[int, int] = {}
    for rows in seen:
        for leaf_id, count in rows.nan_counts.items():
            totals[leaf_id] = totals.get(leaf_id, 0) + count
    return totals


def encoded_bounds(
    bounded: Iterable[tuple[Leaf, tuple[object, object]]], side: int
) -> dict[int, bytes]:
    """Encode the lowest values of columns (`side` 0) or the highest ones (1), cut to the width of
    the table's bounds; without those that cannot be cut."""
    truncate = (truncate_lower, truncate_upper)[side]
    encoded: dict[int, bytes] = {}
    for leaf, bounds in bounded:
        value = bounds[side]
        if leaf.mode.bounds_width is not None:
            value = truncate(leaf.kind, value, leaf.mode.bounds_width)
        if value is not None:
            encoded[leaf.field_id] = encode_value(leaf.kind, value)
    return encoded


def row_group_offset(group: pq.RowGroupMetaData) -> int:
    """Return where a row group starts: at its first column's dictionary, or data."""
    first = group.column(0)
    offset: int = first.data_page_offset
    if (first.dictionary_page_offset or 0) > 0:  # writers of old say 0 for none
        offset = min(offset, first.dictionary_page_offset)
    return offset
