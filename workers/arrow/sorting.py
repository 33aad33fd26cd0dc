"""Rows in the order of a table: a sort order applied to Arrow columns. No buffering, no files.

Source: the specification, "Sorting": NaN is above every number, -0.0 is below 0.0, and nulls are
where the order says. Texts compare as their UTF-8 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.sort_order import SortField, SortOrder
from committer.iceberg.values.transforms import Transform, UnknownTransform, VoidTransform
from workers.arrow.partitioning import apply_transform, column_at, column_path

_DIRECTIONS = {"asc": "ascending", "desc": "descending"}
_Key = tuple[pa.Array, str]


@dataclass(frozen=True, slots=True)
class Sorter:
    """A sort order bound to the columns of the files that are written."""

    order_id: int
    keys: tuple[_BoundKey, ...]

    def sort(self, rows: pa.Table) -> pa.Table:
        """Return the rows in order; equal ones keep theirs."""
        order = self._order(rows)
        if bool((np.diff(order) == 1).all()):
            return rows
        return rows.take(pa.array(order))

    def follows(self, last: pa.Table, first: pa.Table) -> bool:
        """Return whether one row may stand behind another."""
        return bool(self._order(pa.concat_tables([last, first]))[0] == 0)

    def _order(self, rows: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        pairs = [pair for key in self.keys for pair in key.columns(rows)]
        names = [f"{number}" for number in range(len(pairs))]
        columns = pa.table([column for column, _ in pairs], names=names)
        by = [(name, direction) for name, (_, direction) in zip(names, pairs, strict=True)]
        found: np.ndarray[tuple[int], np.dtype[np.uint64]] = pc.sort_indices(columns, by).to_numpy()
        return found


@dataclass(frozen=True, slots=True)
class _BoundKey:
    transform: Transform
    path: tuple[int, ...]
    direction: str
    is_nulls_first: bool

    def columns(self, rows: pa.Table) -> Iterator[_Key]:
        """Yield what to compare, and how: which are null, which are NaN, and the values."""
        column = column_at(rows, self.path).combine_chunks()
        values = apply_transform(self.transform, column)
        nulls = pc.is_null(values).cast(pa.int8())
        yield nulls, "descending" if self.is_nulls_first else "ascending"
        if pa.types.is_floating(values.type):
            yield pc.is_nan(values).cast(pa.int8()), self.direction
        yield values, self.direction
        if pa.types.is_floating(values.type):
            signs = np.signbit(values.to_numpy(zero_copy_only=False))
            yield pa.array(~signs).cast(pa.int8()), self.direction


def bind_sorter(order: SortOrder, table: Schema, file_schema: pa.Schema) -> Sorter | None:
    """Find the source columns of an order; None where it has none, or one that is not in files, or
    whose transform is not known: then rows are not sorted."""
    keys = [_bind(field, table, file_schema) for field in order.fields]
    bound = tuple(key for key in keys if key is not None)
    return Sorter(order.order_id, bound) if bound and len(bound) == len(keys) else None


def _bind(field: SortField, table: Schema, file_schema: pa.Schema) -> _BoundKey | None:
    is_known = not isinstance(field.transform, UnknownTransform | VoidTransform)
    path = column_path(list(file_schema), field.source_id)
    if not is_known or not path or table.field(field.source_id) is None:
        return None
    nulls_first = field.null_order == "nulls-first"
    return _BoundKey(field.transform, path, _DIRECTIONS[field.direction], nulls_first)
