"""Chooses the columns whose values are written as dictionaries, from the first rows of a task.

A dictionary of values that hardly repeat takes as much time as everything else about a column, and
makes its pages larger: each value is written, and its number beside it. Parquet writers notice that
late, at a dictionary's limit of bytes. Here a sample tells in time.
Source: docs/reference/iceberg-notes.md 11.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

SAMPLE_ROWS = 1 << 14
# A dictionary has to save this much of the plain values: pages are compressed afterwards, which
# saves a part of that as well.
_WORTH = 0.8
_LENGTH_BYTES = 4
_HALVINGS = 60


class DictionaryChoice:
    """The choice for all files of a task. Mutable: made by the first rows that it is asked with."""

    __slots__ = ("_columns", "_limit_bytes")

    def __init__(self, limit_bytes: int) -> None:
        """Prepare a choice. `limit_bytes`: of one dictionary; writers give up a larger one."""
        self._limit_bytes = limit_bytes
        self._columns: list[str] | None = None

    def columns(self, rows: pa.Table) -> list[str]:
        """Return the Parquet paths of the columns with dictionaries. `rows`: of one row group."""
        if self._columns is None:
            sample = _sample(rows)
            self._columns = [
                path
                for field, column in zip(sample.schema, sample.itercolumns(), strict=True)
                for path, leaf in _leaves(field.name, _joined(column))
                if self._is_worth(leaf, rows.num_rows / max(sample.num_rows, 1))
            ]
        return self._columns

    def _is_worth(self, leaf: pa.Array, scale: float) -> bool:
        """Return whether a dictionary makes a column smaller. `scale`: rows for each of the
        sample's."""
        seen = len(leaf) - leaf.null_count
        if not seen or pa.types.is_boolean(leaf.type) or pa.types.is_null(leaf.type):
            return False
        width = _value_bytes(leaf, seen)
        values = seen * scale
        distinct = estimated_distinct(seen, pc.count_distinct(leaf).as_py(), values)
        dictionary = distinct * width
        numbers = values * math.ceil(math.log2(distinct + 1)) / 8
        return dictionary <= self._limit_bytes and dictionary + numbers < _WORTH * values * width


def estimated_distinct(seen: int, distinct: int, values: float) -> float:
    """Estimate how many distinct values so many `values` have, of which a sample of `seen` has
    `distinct`: as if each came equally often, which is the most that there can be.
    """
    if seen >= values or not distinct:
        return distinct
    low, high = float(distinct), values
    if _expected(high, seen) <= distinct:
        return high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _expected(middle, seen) < distinct:
            low = middle
        else:
            high = middle
    return high


def _expected(distinct: float, draws: int) -> float:
    """Return how many of so many distinct values come in `draws` of them."""
    return -distinct * math.expm1(-draws / distinct)


def _sample(rows: pa.Table) -> pa.Table:
    """Return one of every so many rows, drawn by lot: neighbors would look as if values repeated,
    and equal distances see little of values that come in turn. The lot is the same every time.
    """
    step = -(-rows.num_rows // SAMPLE_ROWS)
    if step <= 1:
        return rows
    firsts = np.arange(0, rows.num_rows - step + 1, step)
    return rows.take(pa.array(firsts + np.random.default_rng(0).integers(0, step, len(firsts))))


def _joined(column: pa.ChunkedArray) -> pa.Array:
    joined = column.combine_chunks()
    return joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined


def _leaves(path: str, array: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    """Yield the columns of Parquet that an array becomes, by their paths."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    kind = array.type
    if pa.types.is_struct(kind):
        for field, child in zip(kind, array.flatten(), strict=True):
            yield from _leaves(f"{path}.{field.name}", child)
    elif pa.types.is_map(kind):
        yield from _leaves(f"{path}.key_value.key", array.keys)
        yield from _leaves(f"{path}.key_value.value", array.items)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _leaves(f"{path}.list.element", array.flatten())
    else:
        yield path, array


def _value_bytes(leaf: pa.Array, seen: int) -> float:
    """Return how many bytes a value takes that is written plainly, on average."""
    kind = leaf.type
    if pa.types.is_decimal(kind):
        return 4 if kind.precision <= 9 else 8 if kind.precision <= 18 else 16
    if pa.types.is_primitive(kind) or pa.types.is_fixed_size_binary(kind):
        return float(kind.byte_width)
    lengths = pc.sum(pc.binary_length(leaf)).as_py() or 0
    return float(lengths / seen + _LENGTH_BYTES)
