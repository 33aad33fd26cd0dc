"""Reads maps of metrics that are laid out as a map before: all values at once, not one by one.

Files of one table agree in how many bytes each number and each bound takes. Where the numbers end
follows from one bit of each byte, where bounds end from their lengths; both are compared with those
of a map that was read in full. A map that is not recognized is left to a decoder.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from itertools import groupby
from operator import itemgetter

from committer.errors import InvalidMetadataError
from committer.iceberg.avro.binary import read_long

# 0 for the last byte of a varint, 1 for those before it.
_MARKS = bytes(byte >> 7 for byte in range(256))
_WIDTHS = {1: "B", 2: "H"}
# Layouts differ with the widths of values: those of a hostile writer must not fill the memory, nor
# take the time to learn them.
_LAYOUTS_MAX = 1024
_PAIRS_MAX = 1000

_Unpack = Callable[[bytes], tuple[int, ...]]
_UnpackBounds = Callable[[bytes], tuple[bytes, ...]]
_long_layouts: dict[bytes, _Unpack | None] = {}
_bounds_layouts: dict[tuple[int, int], _BoundsLayout | None] = {}


class _BoundsLayout:
    """`fixed` takes the bytes of ids and lengths out of a body, which must be `expected`."""

    __slots__ = ("expected", "field_ids", "fixed", "unpack")

    def __init__(self, body: bytes, spans: list[tuple[int, int, int]]) -> None:
        # For each pair: its field id, and where its bound starts and stops.
        self.field_ids = [field_id for field_id, _, _ in spans]
        places, layout, position = list[int](), "<", 0
        for _, start, stop in spans:
            places += range(position, start)
            layout += f"{start - position}x{stop - start}s"
            position = stop
        self.fixed: Callable[[bytes], tuple[int, ...]] = itemgetter(*places)
        self.expected = self.fixed(body)
        self.unpack: _UnpackBounds = struct.Struct(layout).unpack


def read_long_pairs(body: bytes, count: int) -> dict[int, int] | None:
    """Read the `count` > 0 pairs of ids and longs that fill the body; None for a decoder."""
    marks = body.translate(_MARKS)
    unpack = _long_layouts.get(marks)
    if unpack is None:
        unpack = _learn_longs(marks)
        if unpack is None:
            return None
    numbers = itemgetter(*unpack(body))(narrow_longs())
    if len(numbers) != 2 * count:
        return None
    return dict(zip(numbers[::2], numbers[1::2], strict=True))


def read_bounds_pairs(body: bytes, count: int) -> dict[int, bytes] | None:
    """Read pairs of ids and bytes as `read_long_pairs` does."""
    layout = _bounds_layouts.get((count, len(body)))
    if layout is None:
        layout = _learn_bounds(body, count)
        if layout is None:
            return None
    if layout.fixed(body) != layout.expected:
        return None
    return dict(zip(layout.field_ids, layout.unpack(body), strict=True))


@cache
def narrow_longs() -> tuple[int, ...]:
    """Return integers by their one byte, or by their two as a little-endian number."""
    packed = (each if each < 0x80 else each & 0x7F | each >> 8 << 7 for each in range(0x8000))
    return tuple((number >> 1) ^ -(number & 1) for number in packed)


def _learn_longs(marks: bytes) -> _Unpack | None:
    """Learn a layout; None for numbers of over two bytes, and for bytes that no pairs fill."""
    if marks in _long_layouts or len(marks) > 4 * _PAIRS_MAX or marks[-1:] != b"\0":
        return None
    widths = list(map(len, marks.decode("latin-1").replace("\0", "\0 ").split()))
    is_narrow = len(widths) > 1 and set(widths) <= _WIDTHS.keys()
    if len(_long_layouts) >= _LAYOUTS_MAX:
        _long_layouts.clear()
    if not is_narrow:
        _long_layouts[marks] = None
        return None
    runs = ((width, len(list(run))) for width, run in groupby(widths))
    layout = "<" + "".join(f"{number}{_WIDTHS[width]}" for width, number in runs)
    unpack: _Unpack = struct.Struct(layout).unpack
    _long_layouts[marks] = unpack
    return unpack


def _learn_bounds(body: bytes, count: int) -> _BoundsLayout | None:
    key = count, len(body)
    if key in _bounds_layouts or count > _PAIRS_MAX:
        return None
    if len(_bounds_layouts) >= _LAYOUTS_MAX:
        _bounds_layouts.clear()
    spans = _spans(body, count)
    layout = _bounds_layouts[key] = None if spans is None else _BoundsLayout(body, spans)
    return layout


def _spans(body: bytes, count: int) -> list[tuple[int, int, int]] | None:
    spans = []
    position = 0
    try:
        for _ in range(count):
            field_id, position = read_long(body, position)
            length, start = read_long(body, position)
            if length < 0 or not -(2**31) <= field_id < 2**31:
                return None
            position = start + length
            spans.append((field_id, start, position))
    except InvalidMetadataError:
        return None
    return spans if position == len(body) else None
