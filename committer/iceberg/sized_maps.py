"""Proves that the pairs of a map end where its size says. The innermost check of every entry.

A reader that decodes the pairs ends where they end, one that jumps where the size says: a writer
that counts wrong would make a table unreadable for some. Whether pairs fill their bytes follows
from a few of these bytes alone, and files of one table have maps of the same shape, so a shape that
was matched once is recognised by comparing them.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter

from committer.errors import InvalidMetadataError
from committer.iceberg.avro_binary import read_long
from committer.iceberg.manifest_layout import PAIRS_MAX, pairs

# Shapes differ with the widths of values: those of a hostile writer must not fill the memory.
_SHAPES_MAX = 4096
# Ids of two bytes are those that `pairs` takes too.
_ID_BYTES_MAX = 2
# 0 for the last byte of a varint, 1 for those before it.
_MARKS = bytes(byte >> 7 for byte in range(256))

_long_shapes: dict[bytes, int] = {}
_bound_shapes: dict[
    tuple[int, int], tuple[Callable[[bytes], tuple[int, ...]], tuple[int, ...]]
] = {}


def holds_longs(body: bytes, count: int) -> bool:
    """Whether `body` is `count` > 0 pairs of field id and long. False also where only a decoder can
    tell.
    """
    # Where each varint ends decides everything: how many there are, and how long each is.
    marks = body.translate(_MARKS)
    return _long_shapes.get(marks) == count or _learn_longs(body, count, marks)


def holds_bounds(body: bytes, count: int) -> bool:
    """As `holds_longs`, of pairs of field id and bytes."""
    shape = _bound_shapes.get((count, len(body)))
    if shape is not None and shape[0](body) == shape[1]:
        return True
    return _learn_bounds(body, count)


def _learn_longs(body: bytes, count: int, marks: bytes) -> bool:
    if count > PAIRS_MAX or pairs(count, of_bytes=False).fullmatch(body) is None:
        return False
    if len(_long_shapes) >= _SHAPES_MAX:
        _long_shapes.clear()
    _long_shapes[marks] = count
    return True


def _learn_bounds(body: bytes, count: int) -> bool:
    """The pattern is the quicker way, but knows bounds of under 64 bytes only."""
    key = count, len(body)
    if count > PAIRS_MAX:
        return False
    if key in _bound_shapes and pairs(count, of_bytes=True).fullmatch(body) is not None:
        return True
    places = _places_of_ids_and_lengths(body, count)
    if places is None:
        return False
    if key not in _bound_shapes:
        if len(_bound_shapes) >= _SHAPES_MAX:
            _bound_shapes.clear()
        _bound_shapes[key] = itemgetter(*places), tuple(body[place] for place in places)
    return True


def _places_of_ids_and_lengths(body: bytes, count: int) -> list[int] | None:
    """Where the bytes lie that say which columns have bounds, and how long each is: two at least.

    None if `count` pairs do not fill the body.
    """
    places: list[int] = []
    position = 0
    try:
        for _ in range(count):
            start = position
            _, position = read_long(body, position)
            if position - start > _ID_BYTES_MAX:
                return None
            length, position = read_long(body, position)
            if length < 0:
                return None
            places.extend(range(start, position))
            position += length
    except InvalidMetadataError:
        return None
    return places if position == len(body) else None
