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


@dataclass(frozen=True, slots=True)
class Leaf:
    """A Parquet column. `position`: in the footer. `path` leads to it: child positions from the
    top; `repeated`: in a list or map. `units`: units of the table's type in one of the file's.
    """

    field_id: int
    kind: IcebergType
    path: tuple[int, ...]
    repeated: bool
    mode: MetricsMode
    position: int
    units: int = 1

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
    footer: pq.FileMetaData, leaves: Sequence[Leaf], seen: Sequence[SeenRows] = ()
) -> FileMetrics:
    """Gather the metrics of a file. `seen`: of each row group, in order; none without rows."""
    groups = row_groups(footer)
    counted = [(leaf, column_facts(groups, leaf, seen)) for leaf in leaves if leaf.has_counts]
    bounded = [(leaf, facts.bounds) for leaf, facts in counted if leaf.has_bounds and facts.bounds]
    return FileMetrics(
        record_count=footer.num_rows,
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
        split_offsets=tuple(row_group_offset(group) for group in groups if group.num_columns),
    )


def row_groups(footer: pq.FileMetaData) -> list[pq.RowGroupMetaData]:
    return [footer.row_group(number) for number in range(footer.num_row_groups)]


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
    """Return how many nulls a row group has; -1 if its footer does not say."""
    statistics = chunk.statistics
    known = statistics is not None and statistics.has_null_count
    return int(statistics.null_count) if known else -1


def _range(leaf: Leaf, chunk: pq.ColumnChunkMetaData, rows: SeenRows) -> RawRange | None:
    """Return the lowest and highest value of one row group that has some;
    None if its footer hides them."""
    statistics = chunk.statistics
    if statistics is not None and statistics.has_min_max:
        return _raw_range(leaf, statistics.min_raw, statistics.max_raw)
    return rows.long_bounds.get(leaf.field_id)


def _raw_range(leaf: Leaf, low: RawValue, high: RawValue) -> RawRange | None:
    if isinstance(low, float):
        # Writers of old have put NaN there, and either zero. Source: the Parquet format's
        # `ColumnOrder`.
        if math.isnan(low) or math.isnan(high):
            return None
        return low or -0.0, high or 0.0
    if isinstance(leaf.kind, DecimalType) and isinstance(low, bytes):
        # Wide decimals as integers: their big-endian bytes do not compare as numbers do.
        return tuple(int.from_bytes(one, "big", signed=True) for one in (low, high))  # type: ignore[return-value]
    return low, high


def _union(ranges: Sequence[RawRange | None]) -> RawRange | None:
    """Return the range of all; None without any, or if one is hidden."""
    found = [one for one in ranges if one is not None]
    if not found or len(found) != len(ranges):
        return None
    return min(low for low, _ in found), max(high for _, high in found)


def _values(leaf: Leaf, raw: RawRange) -> tuple[object, object] | None:
    try:
        return _value(leaf, raw[0]), _value(leaf, raw[1])
    except UnicodeDecodeError:
        return None  # cut within a character


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
    if first.dictionary_page_offset:  # writers of old say 0 for none
        offset = min(offset, first.dictionary_page_offset)
    return offset
