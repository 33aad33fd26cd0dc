"""Recognises maps of metrics that are laid out byte for byte as those of an entry before.

What tells where maps end are a few of their bytes: counts, sizes, ids, lengths, and of every number
the bits that say whether it goes on. Files of one table agree in most of them. Two stretches of
bytes that agree in all of them end alike, so once the maps of one entry were stepped over, the next
ones are compared with it as one large number under a mask, in a tenth of the time.
"""

from __future__ import annotations

from committer.errors import InvalidMetadataError
from committer.iceberg.avro_binary import read_long

_MAPS = 6
_MAPS_OF_LONGS = 4
_ALL = 0xFF
_GOES_ON = 0x80
_LENGTH_BYTES_MAX = 16 * 1024
_KEPT = 3
# Learning takes the time that is saved by recognising a dozen entries. So it is paid by these, on a
# first credit; where that is used up nothing comes again, and nothing is tried for a while.
_LEARNING_COSTS = 12
_CREDIT = 32
_CREDIT_MAX = 128
_PAUSE_ENTRIES = 1_000
# Named here, because it is looked up for every entry.
_number = int.from_bytes


# Length in bytes, mask, and what a layout has under its mask.
Skeleton = tuple[int, int, int]


class Skeletons:
    """The layouts that the maps of one writer's entries have had. Mutable; may be shared by
    threads, which at worst learn a layout twice."""

    __slots__ = ("_credit", "_known", "_pause")

    def __init__(self) -> None:
        # The latest in front.
        self._known: tuple[Skeleton, ...] = ()
        self._credit, self._pause = _CREDIT, 0

    def match(self, raw: bytes, start: int) -> Skeleton | None:
        """The layout of the six maps at `start`, if others before were laid out so.

        Bytes that are missing at the end of `raw` may be taken for zeros.
        """
        known = self._known
        for one in known:
            length, mask, bits = one
            if _number(raw[start : start + length], "little") & mask == bits:
                if one is not known[0]:
                    self._known = (one, *(other for other in known if other is not one))
                if self._credit < _CREDIT_MAX:
                    self._credit += 1
                return one
        return None

    def learn(self, raw: bytes, start: int, stop: int) -> None:
        """Note six maps that were not recognised, and that fill these bytes as was proven."""
        if self._pause:
            self._pause -= 1
            return
        self._credit -= 1
        if self._credit <= 0:
            self._known, self._credit, self._pause = (), _CREDIT, _PAUSE_ENTRIES
        elif self._credit > _LEARNING_COSTS and stop - start <= _LENGTH_BYTES_MAX:
            self._credit -= _LEARNING_COSTS
            mask = _mask(raw, start, stop)
            if mask is not None:
                bits = int.from_bytes(raw[start:stop], "little") & mask
                self._known = ((stop - start, mask, bits), *self._known[: _KEPT - 1])


def _mask(raw: bytes, start: int, stop: int) -> int | None:
    """The bits that decide where the maps end; None for maps of several blocks."""
    mask = bytearray(stop - start)
    position = start

    def number(bits: int) -> int:
        nonlocal position
        before = position
        value, position = read_long(raw, before)
        mask[before - start : position - start] = bytes((bits,)) * (position - before)
        return value

    try:
        for place in range(_MAPS):
            if not number(_ALL):
                continue
            count = number(_ALL)
            if count < 0:
                number(_ALL)
            for _ in range(abs(count)):
                number(_ALL)
                if place < _MAPS_OF_LONGS:
                    number(_GOES_ON)
                else:
                    length = number(_ALL)
                    position += length
            if count and number(_ALL):
                return None
    except (InvalidMetadataError, IndexError):
        return None
    return int.from_bytes(mask, "little") if position == stop else None
