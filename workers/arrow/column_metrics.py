"""The column metrics of a data file that is being written: from its Parquet footer, and from the
rows where the footer has none.

A footer counts no NaN, and has no bounds for a row group with a text or binary above 4 KiB; both
are taken from the rows while they are at hand. Nothing else here reads rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from committer.errors import InvariantError
from committer.iceberg.schema.metrics_config import MetricsMode
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.types import (
    BinaryType,
    DoubleType,
    FloatType,
    IcebergType,
    StringType,
)
from workers.arrow.arrow_types import VARIANT, children, field_id
from workers.arrow.footer_metrics import (
    FileMetrics,
    Leaf,
    RawRange,
    SeenRows,
    footer_metrics,
    row_groups,
)
from workers.arrow.partitioning import column_at

# Parquet keeps no minimum or maximum of a row group above this. Source:
# docs/reference/iceberg-notes.md 11.
_FOOTER_BOUND_BYTES_MAX = 4096


@dataclass(slots=True)
class MetricsCollector:
    """Gathers the metrics of one file: `add` before each row group, `finish` with the footer."""

    leaves: Sequence[Leaf]
    _seen: list[SeenRows] = field(default_factory=list)

    def add(self, rows: pa.Table) -> None:
        """Read the rows of the next row group; call it once per group, in order."""
        floats = [leaf for leaf in self.leaves if leaf.has_counts and _is_float(leaf.kind)]
        texts = [leaf for leaf in self.leaves if leaf.has_bounds and _is_text(leaf.kind)]
        long_ones = ((at, column_at(rows, at.path)) for at in texts)
        self._seen.append(
            SeenRows(
                {at.field_id: _count_nan(column_at(rows, at.path)) for at in floats},
                {at.field_id: _min_max(column) for at, column in long_ones if _has_long(column)},
            )
        )

    def finish(self, footer: pq.FileMetaData) -> FileMetrics:
        return footer_metrics(row_groups(footer), self.leaves, self._seen)


def metrics_leaves(
    file_schema: pa.Schema, table: Schema, modes: Mapping[int, MetricsMode]
) -> tuple[Leaf, ...]:
    """Return the Parquet columns of a file in footer order. pyarrow does not show a footer's field
    ids."""
    walked = enumerate(_walk(list(file_schema), (), False))
    return tuple(
        Leaf(leaf_id, _kind(table, leaf_id), path, repeated, modes[leaf_id], position)
        for position, (leaf_id, path, repeated) in walked
        if leaf_id is not None
    )


def _walk(
    fields: Sequence[pa.Field], path: tuple[int, ...], repeated: bool
) -> Iterator[tuple[int | None, tuple[int, ...], bool]]:
    """Yield id, path and whether it is repeated, of each Parquet column. A variant's counts are
    those of its first one, which alone has the id."""
    for position, candidate in enumerate(fields):
        inner = children(candidate.type)
        at = (*path, position)
        if candidate.type == VARIANT:
            yield _required_id(candidate), (*at, 0), repeated
            yield None, (*at, 1), repeated
        elif inner:
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


def _is_float(kind: IcebergType) -> bool:
    return isinstance(kind, FloatType | DoubleType)


def _is_text(kind: IcebergType) -> bool:
    return isinstance(kind, StringType | BinaryType)


def _count_nan(column: pa.ChunkedArray) -> int:
    return int(pc.sum(pc.is_nan(column)).as_py() or 0)


def _has_long(column: pa.ChunkedArray) -> bool:
    return int(pc.max(pc.binary_length(column)).as_py() or 0) > _FOOTER_BOUND_BYTES_MAX


def _min_max(column: pa.ChunkedArray) -> RawRange:
    found = pc.min_max(column.cast(pa.binary()))
    return found["min"].as_py(), found["max"].as_py()
