"""Proves that the pairs of a map end where its size says, and are what they must be. The innermost
check of every entry.

A reader that decodes the pairs ends where they end, one that jumps where the size says: a writer
that counts wrong would make a table unreadable for some. Whether pairs fill their bytes follows
from a few of these bytes alone, and files of one table have maps of the same shape, so a shape that
was matched once is recognised by comparing them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any

from committer.errors import InvalidMetadataError
from committer.iceberg.bound_forms import BoundForms
from committer.iceberg.bound_values import Bound, BoundValues, read_bound_pairs
from committer.iceberg.manifest_layout import PAIRS_MAX
from committer.iceberg.map_patterns import MapPatterns, count_pairs

# Shapes differ with the widths of values: those of a hostile writer must not fill the memory.
_SHAPES_MAX = 4096
# 0 for the last byte of a varint, 1 for those before it.
_MARKS = bytes(byte >> 7 for byte in range(256))

# By where varints end: how many pairs they are, and the bit of each value that says its sign.
_long_shapes: dict[bytes, tuple[int, int]] = {}


def holds_counts(body: bytes, count: int) -> bool:
    """Whether `body` is `count` > 0 pairs of field id and a long that is not negative. False also
    where only a decoder can tell.
    """
    # Where each varint ends decides how many there are, and how long each is.
    marks = body.translate(_MARKS)
    shape = _long_shapes.get(marks)
    if shape is None:
        return _learn_counts(body, count, marks)
    return shape[0] == count and not int.from_bytes(body, "little") & shape[1]


def _learn_counts(body: bytes, count: int, marks: bytes) -> bool:
    if count > PAIRS_MAX or _counts(count).fullmatch(body) is None:
        return False
    if len(_long_shapes) >= _SHAPES_MAX:
        _long_shapes.clear()
    ends = [place for place, mark in enumerate(marks) if not mark]
    # Every other varint is a value, which begins behind its field id.
    signs = sum(1 << 8 * (end + 1) for end in ends[::2])
    _long_shapes[marks] = count, signs
    return True


@lru_cache(maxsize=256)
def _counts(count: int) -> re.Pattern[bytes]:
    return re.compile(count_pairs(count), re.DOTALL)


class SizedBounds:
    """Checks maps of bounds of one table's columns. Mutable; may be shared by threads, which at
    worst learn a shape twice."""

    __slots__ = ("_forms", "_patterns", "_shapes")

    def __init__(self, forms: BoundForms, patterns: MapPatterns) -> None:
        self._forms, self._patterns = forms, patterns
        self._shapes: dict[tuple[int, int], _Shape] = {}

    def hold(self, body: bytes, count: int) -> bool:
        """Whether `body` is `count` > 0 pairs of field id and a bound of its column's form. False
        also where only a decoder can tell."""
        shape = self._shapes.get((count, len(body)))
        if shape is not None and shape.fixed(body) == shape.expected:
            return shape.values is None or shape.values.fit(body, 0)
        # A pattern is the quicker way for what has had another shape before.
        if shape is not None and self._patterns.match_bounds(body, count):
            return True
        return self._learn(body, count)

    def _learn(self, body: bytes, count: int) -> bool:
        bounds: list[Bound] = []
        try:
            if read_bound_pairs(body, 0, count, self._forms, bounds) != len(body):
                return False
        except InvalidMetadataError:
            return False
        key = count, len(body)
        if key in self._shapes:
            self._patterns.learn_bounds(tuple(one.field_id for one in bounds))
        else:
            if len(self._shapes) >= _SHAPES_MAX:
                self._shapes.clear()
            self._shapes[key] = _Shape.of(body, bounds)
        return True


@dataclass(frozen=True, slots=True)
class _Shape:
    """`fixed` takes the bytes of ids and lengths out of a body, which must be `expected`."""

    fixed: Callable[[bytes], tuple[int, ...]]
    expected: tuple[int, ...]
    values: BoundValues | None

    @classmethod
    def of(cls, body: bytes, bounds: Sequence[Bound]) -> _Shape:
        places, position = list[int](), 0
        for one in bounds:
            places += range(position, one.start)
            position = one.stop
        fixed: Callable[[bytes], Any] = itemgetter(*places)
        return cls(fixed, fixed(body), BoundValues(bounds) or None)
