"""Sources of regular expressions that match one pair of a map of metrics.

They know ids of up to 13 bits and bounds of under 128 bytes, and the shortest encoding of each
number only, so two different ids are different bytes. Other pairs may still be right.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from committer.iceberg.avro.binary import LONGS
from committer.iceberg.schema.bound_forms import BoundForm


def _set(values: Iterable[int]) -> bytes:
    return b"[%b]" % b"".join(re.escape(bytes((value,))) for value in values)


ID_LIMIT = 1 << 13
# Ids below it take one byte, which is ASCII.
SHORT_ID_LIMIT = 1 << 6
# A scan tries lengths in this order: the frequent ones first.
_FIRST = (8, 4, 16, 1, 12)
_LENGTHS = (*_FIRST, *(n for n in range(128) if n not in _FIRST))
SHORT_LENGTH_LIMIT, LENGTH_LIMIT = 64, 128
# Of up to 63 bits, and not negative.
COUNT = rb"(?=%b)[\x80-\xff]{0,8}+[\x00-\x7f]" % _set(range(0, 256, 2))
SHORT_ID = _set(range(2, 128, 2))
# How many pairs, if a map does not say their size or does, and the size.
EVEN = b"(?:%b|%b[\x01-\x7f])" % (SHORT_ID, _set(range(128, 256, 2)))
ODD = b"(?:%b|%b[\x01-\x7f])" % (_set(range(1, 128, 2)), _set(range(129, 256, 2)))
COUNT_OF_PAIRS = rb"[\x80-\xff]?+[\x01-\x7f]"
SIZE = rb"[\x80-\xff]{0,2}+[\x00-\x7f]"
ID = rb"[\x80-\xff]?+[\x01-\x7f]"
ANY_BYTE, ASCII = b".", rb"[\x00-\x7f]"


def long(value: int) -> bytes:
    return re.escape(LONGS[value])


def one_of(alternatives: Iterable[bytes]) -> bytes:
    """Match one of these; nothing if there are none."""
    return b"(?:%b)" % (b"|".join(alternatives) or b"(?!)")


def ids(columns: Iterable[int]) -> bytes:
    """Match the id of one of these columns."""
    lows = defaultdict[int, list[int]](list)
    for column in columns:
        lows[column >> 6].append(column & 63)
    short = lows.pop(0, [])
    # Most often ids of two bytes differ in both: those with the same first ones are one set.
    highs = defaultdict[tuple[int, ...], list[int]](list)
    for high, found in lows.items():
        highs[tuple(sorted(found))].append(high)
    long_ids = (_set(low << 1 | 128 for low in found) + _set(highs[found]) for found in highs)
    return one_of([*([_set(low << 1 for low in short)] if short else []), *long_ids])


def bound(form: BoundForm, byte: bytes = ANY_BYTE, *, limit: int = SHORT_LENGTH_LIMIT) -> bytes:
    """Match a bound of a form that has fewer bytes than a limit, with its length. Of texts a caller
    decides which `byte` they have: that they are UTF-8 is not matched here."""
    lengths = [length for length in _LENGTHS if length in form.lengths and length < limit]
    if not form.limit:
        return one_of(_bytes(length, byte) for length in lengths)
    short = [_bytes(length, byte) for length in lengths if length < form.limited_length]
    return one_of([*short, long(form.limited_length) + _below(form.limit, form.limited_length)])


def text_piece() -> bytes:
    """Match a text with its length; group 1 begins with the last byte of the length, in ASCII."""
    pieces = []
    for length in _LENGTHS:
        before, last = LONGS[length][:-1], re.escape(LONGS[length][-1:])
        behind = b"(?<=%b)" % re.escape(before) if before else b""
        pieces.append(behind + last + b".{%d}" % length)
    return rb"[\x80-\xff]?+(%b)" % one_of(pieces)


def _bytes(length: int, byte: bytes) -> bytes:
    return long(length) + byte + b"{%d}" % length


def _below(limit: int, length: int) -> bytes:
    """Match a signed integer in `length` bytes, the highest first, between -limit and limit."""
    highest = (limit - 1).to_bytes(length, "big", signed=True)
    lowest = (1 - limit).to_bytes(length, "big", signed=True)
    return one_of((*_beside(highest, 0, -1), *_beside(lowest, 255, 1)))


def _beside(edge: bytes, end: int, step: int) -> Iterator[bytes]:
    """Match what agrees with `edge` up to one byte, which is nearer to `end`; and the edge."""
    yield re.escape(edge)
    for place, byte in enumerate(edge):
        low, high = sorted((end, byte + step))
        if byte != end:
            between = b"[%b-%b]" % (re.escape(bytes((low,))), re.escape(bytes((high,))))
            yield re.escape(edge[:place]) + between + b".{%d}" % (len(edge) - place - 1)
