"""Walks a serialized 32-bit Roaring bitmap: where it ends, and what is wrong with it.

The bitmap library does not say how many bytes it has read, and how far it checks them depends on
its version.

Source: the Roaring format specification, "Standard 32-bit Roaring Bitmap".
"""

from __future__ import annotations

import struct
from operator import lt

from committer.errors import InvalidMetadataError

_COOKIE_WITHOUT_RUNS = 12346
_COOKIE = 12347
_CONTAINERS_MAX = 1 << 16
# A container holds the values that share their upper 16 bits.
_CONTAINER_VALUES_MAX = 1 << 16
_ARRAY_VALUES_MAX = 4096
_BITSET_BYTES = 8192
# Below so many containers a bitmap with runs has no list of their offsets.
_CONTAINERS_WITH_OFFSETS = 4
_U16 = struct.Struct("<H")
_U32 = struct.Struct("<I")


def check_roaring_bitmap(buf: bytes, start: int, where: str) -> tuple[int, int]:
    """Check the bitmap at `start`: its end, and how many values it has.

    Every container must be inside `buf` and match its header, in order; the offsets of containers
    are not checked, as no reader of a whole bitmap uses them. Costs time and memory in proportion
    to the bitmap's bytes. Errors: `InvalidMetadataError` naming `where`.
    """
    try:
        return _Walk(buf, start).run()
    except ValueError as error:
        raise InvalidMetadataError(f"{where}: a bitmap {error}") from None


class _Walk:
    """A position in the bitmap. Errors: `ValueError` saying what the bitmap has or does."""

    def __init__(self, buf: bytes, position: int) -> None:
        self._buf = buf
        self._position = position

    def run(self) -> tuple[int, int]:
        runs, count = self._header()
        described = self._u16s(2 * count)
        keys, cardinalities = described[::2], [less_one + 1 for less_one in described[1::2]]
        if not _ascend(keys):
            raise ValueError("has containers out of order")
        if runs is None or count >= _CONTAINERS_WITH_OFFSETS:
            self._take(4 * count)
        for number, cardinality in enumerate(cardinalities):
            if runs is not None and runs[number // 8] >> (number % 8) & 1:
                self._run_container(cardinality)
            elif cardinality <= _ARRAY_VALUES_MAX:
                self._array_container(cardinality)
            else:
                self._bitset_container(cardinality)
        return self._position, sum(cardinalities)

    def _header(self) -> tuple[bytes | None, int]:
        """Read which containers are runs (a bit each, None if none is), and how many there are."""
        cookie = self._unpack(_U32)
        if cookie == _COOKIE_WITHOUT_RUNS:
            count = self._unpack(_U32)
            if count > _CONTAINERS_MAX:
                raise ValueError(f"has {count} containers, expected at most {_CONTAINERS_MAX}")
            return None, count
        if cookie & 0xFFFF != _COOKIE:
            raise ValueError(f"starts with {cookie:#x}, expected a cookie of the Roaring format")
        count = (cookie >> 16) + 1
        return self._take((count + 7) // 8), count

    def _run_container(self, cardinality: int) -> None:
        pairs = self._u16s(2 * self._unpack(_U16))
        starts, lengths = pairs[::2], pairs[1::2]
        ends = [start + length + 1 for start, length in zip(starts, lengths, strict=True)]
        if not all(map(lt, ends, starts[1:])):
            raise ValueError("has runs that are out of order, or touch")
        if ends and ends[-1] > _CONTAINER_VALUES_MAX:
            raise ValueError("has a run beyond its container")
        _check_cardinality(sum(lengths) + len(lengths), cardinality)

    def _array_container(self, cardinality: int) -> None:
        if not _ascend(self._u16s(cardinality)):
            raise ValueError("has values out of order")

    def _bitset_container(self, cardinality: int) -> None:
        bits = int.from_bytes(self._take(_BITSET_BYTES), "little")
        _check_cardinality(bits.bit_count(), cardinality)

    def _u16s(self, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}H", self._take(2 * count))

    def _unpack(self, number: struct.Struct) -> int:
        value: int = number.unpack(self._take(number.size))[0]
        return value

    def _take(self, size: int) -> bytes:
        start, self._position = self._position, self._position + size
        if self._position > len(self._buf):
            raise ValueError("ends early")
        return self._buf[start : self._position]


def _ascend(values: tuple[int, ...]) -> bool:
    return all(map(lt, values, values[1:]))


def _check_cardinality(found: int, said: int) -> None:
    if found != said:
        raise ValueError(f"has a container of {found} values, expected {said}")
