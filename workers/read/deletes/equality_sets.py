"""Rows of Arrow columns looked up among deleted rows: all columns equal, null to null, NaN to NaN.

-0.0 is not 0.0. Source: the specification, "Equality Delete Files"; docs/reference/iceberg-notes.md
6.7.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from workers.arrow.arrow_values import physical

Longs = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_ABSENT = -1


@dataclass(frozen=True, slots=True)
class _Level:
    """One column: its distinct values, and the pairs that occur of a row's code so far and the
    place of its value, each pair as one number, in ascending order."""

    values: pa.Array
    pairs: Longs

    def codes(self, before: Longs, column: pa.Array) -> Longs:
        """Return the place of each row's pair; `_ABSENT` for a row without one."""
        pairs = _pairs(before, column, self.values)
        places = np.searchsorted(self.pairs, pairs)
        places[places == len(self.pairs)] = 0
        return np.where((pairs >= 0) & (self.pairs[places] == pairs), places, _ABSENT)


@dataclass(frozen=True, slots=True)
class EqualitySet:
    """Distinct rows. Memory: the distinct values of each column, and 8 bytes a row and column."""

    levels: tuple[_Level, ...]

    @classmethod
    def of(cls, columns: Sequence[pa.Array]) -> EqualitySet:
        """Collect rows. There is at least one row, and one column."""
        levels, codes = [], np.zeros(len(columns[0]), np.int64)
        for column in map(key_values, columns):
            values = pc.unique(column)
            # A number of the code so far, below the number of rows, times the values: below 2^63.
            level = _Level(values, np.unique(_pairs(codes, column, values)))
            codes = level.codes(codes, column)
            levels.append(level)
        return cls(tuple(levels))

    def matches(self, columns: Sequence[pa.Array]) -> Mask:
        """Return which rows are in the set."""
        codes = np.zeros(len(columns[0]), np.int64)
        for level, column in zip(self.levels, map(key_values, columns), strict=True):
            codes = level.codes(codes, column)
        return codes >= 0


def key_values(column: pa.Array) -> pa.Array:
    """Return values that are equal in Arrow where Iceberg's are: floats by their bits, NaN by one
    pattern of them."""
    column = physical(column)
    if not pa.types.is_floating(column.type):
        return column
    nan = pa.scalar(float("nan"), column.type)
    bits = pa.int64() if column.type.bit_width == 64 else pa.int32()
    return pc.if_else(pc.is_nan(column), nan, column).view(bits)


def _pairs(before: Longs, column: pa.Array, values: pa.Array) -> Longs:
    """Join each row's code with the place of its value among `values`."""
    places = pc.index_in(column, value_set=values).fill_null(_ABSENT).to_numpy().astype(np.int64)
    known = (before >= 0) & (places >= 0)
    return np.where(known, before * max(1, len(values)) + places, _ABSENT)
