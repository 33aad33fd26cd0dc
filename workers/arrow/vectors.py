"""Iceberg's partition transforms on whole Arrow arrays. Every transform keeps nulls.

One function per transform, and nothing about specs, tables or files. One value at a time, and the
rule book: `committer.iceberg.values.transforms`, which these must equal. Source:
docs/reference/iceberg-notes.md 1.7, 1.8. Arrays have the types of `arrow_types.arrow_type`; slices
are fine.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from workers.arrow.arrow_values import physical
from workers.arrow.murmur3 import Bytes, Hashes, Longs, hash_longs, hash_ranges

_Number = TypeVar("_Number", bound=np.generic)

_INT_MAX = np.uint32(0x7FFFFFFF)
_DAY_US = 86_400_000_000
_HOUR_US = 3_600_000_000


def bucket(array: pa.Array, count: int) -> pa.Array:
    hashes = (_hashes(array) & _INT_MAX) % np.uint32(count)
    return _like(array, hashes.astype(np.int32))


def year(array: pa.Array) -> pa.Array:
    return _like(array, _calendar(array, "datetime64[Y]"))


def month(array: pa.Array) -> pa.Array:
    return _like(array, _calendar(array, "datetime64[M]"))


def day(array: pa.Array) -> pa.Array:
    """Return days as int32, not as Arrow dates: the partition value is a number of days."""
    return _like(array, _days(array).astype(np.int32))


def hour(array: pa.Array) -> pa.Array:
    return _like(array, _floor_us(array, _HOUR_US).astype(np.int32))


def truncate(array: pa.Array, width: int) -> pa.Array:
    kind = array.type
    if pa.types.is_string(kind):
        return pc.utf8_slice_codeunits(array, 0, width)
    if pa.types.is_binary(kind):
        return pc.binary_slice(array, 0, width)
    if pa.types.is_decimal(kind):
        return _truncate_decimal(array, width)
    values = integers(array)
    # Wraps below the smallest value as Iceberg's own does: numpy's mod is never negative.
    return _like(array, values - np.mod(values, values.dtype.type(width)))


def integers(array: pa.Array) -> npt.NDArray[np.int32] | npt.NDArray[np.int64]:
    """Return the numbers behind an int, long, date, time or timestamp array;
    anything where it is null."""
    rows = slice(array.offset, array.offset + len(array))
    if array.type.bit_width == 32:
        return _buffer(array, 1, np.int32)[rows]
    return _buffer(array, 1, np.int64)[rows]


def _buffer(array: pa.Array, number: int, kind: type[_Number]) -> npt.NDArray[_Number]:
    buffer = array.buffers()[number]
    return np.frombuffer(buffer if buffer is not None else b"", kind)


def _like(array: pa.Array, values: npt.NDArray[np.generic]) -> pa.Array:
    """Return the values with the nulls of `array`."""
    if not array.null_count:
        return pa.array(values)
    return pa.array(values, mask=array.is_null().to_numpy(zero_copy_only=False))


def _hashes(array: pa.Array) -> Hashes:
    kind = array.type
    if pa.types.is_timestamp(kind):
        return hash_longs(_floor_us(array, 1))
    if pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        return hash_longs(integers(array).astype(np.int64))
    return hash_ranges(*_ranges(physical(array)))


def _ranges(array: pa.Array) -> tuple[Bytes, Longs, Longs]:
    """Return the bytes of each value: content, starts, lengths."""
    kind, rows = array.type, np.arange(len(array), dtype=np.int64)
    if pa.types.is_decimal(kind):
        return _decimal_ranges(array)
    if pa.types.is_fixed_size_binary(kind):
        starts = (rows + array.offset) * kind.byte_width
        content = _buffer(array, 1, np.uint8)
        return content, starts, np.full(len(array), kind.byte_width, np.int64)
    offsets = _buffer(array, 1, np.int32)[array.offset : array.offset + len(array) + 1]
    starts = offsets[:-1].astype(np.int64)
    return _buffer(array, 2, np.uint8), starts, offsets[1:] - starts


def _decimal_ranges(array: pa.Array) -> tuple[Bytes, Longs, Longs]:
    """Return unscaled values, big-endian, in the fewest bytes.
    Arrow keeps 16 bytes, little-endian."""
    big = np.ascontiguousarray(_decimal_bytes(array)[:, ::-1])
    sign = (big[:, :1].view(np.int8) >> 7).view(np.uint8)
    magnitude = big ^ sign
    first = np.argmax(magnitude != 0, axis=1)
    top = magnitude[np.arange(len(big)), first]
    lengths = np.where(top == 0, 1, 16 - first + (top >> 7)).astype(np.int64)
    ends = np.arange(1, len(big) + 1, dtype=np.int64) * 16
    return big.ravel(), ends - lengths, lengths


def _decimal_bytes(array: pa.Array) -> Bytes:
    content = _buffer(array, 1, np.uint8).reshape(-1, 16)
    return content[array.offset : array.offset + len(array)]


def _truncate_decimal(array: pa.Array, width: int) -> pa.Array:
    words = np.ascontiguousarray(_decimal_bytes(array)).view("<i8").reshape(-1, 2)
    if array.type.precision <= 18:
        low = words[:, 0] - np.mod(words[:, 0], np.int64(width))
        pairs = np.stack([low, low >> 63], axis=1)
    else:
        pairs = _truncate_wide(words, width)
    valid = None
    if array.null_count:
        valid = pa.array(array.is_valid().to_numpy(zero_copy_only=False)).buffers()[1]
    buffers = [valid, pa.py_buffer(np.ascontiguousarray(pairs).tobytes())]
    return pa.Array.from_buffers(array.type, len(array), buffers)


def _truncate_wide(words: Longs, width: int) -> Longs:
    """Compute (high * 2^64 + low) mod width from 32-bit limbs, then a 128-bit subtraction.

    A width takes at most 31 bits, so no step leaves 64 bits.
    """
    modulus = np.uint64(width)
    unsigned = words.view(np.uint64)
    low, high = unsigned[:, 0], unsigned[:, 1]
    shift, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    rest = np.zeros(len(words), np.uint64)
    for limb in (high >> shift, high & mask, low >> shift, low & mask):
        rest = ((rest << shift) | limb) % modulus
    negative = words[:, 1] < 0
    # The limbs of a negative value are those of value + 2^128.
    wrapped = np.uint64((1 << 128) % width)
    rest = np.where(negative, (rest + modulus - wrapped) % modulus, rest)
    result = np.empty_like(unsigned)
    result[:, 0] = low - rest
    result[:, 1] = high - (low < rest)
    return result.view(np.int64)


def _days(array: pa.Array) -> Longs:
    if pa.types.is_date32(array.type):
        return integers(array).astype(np.int64)
    return _floor_us(array, _DAY_US)


def _floor_us(array: pa.Array, unit_us: int) -> Longs:
    per_us = 1000 if array.type.unit == "ns" else 1
    return np.floor_divide(integers(array), unit_us * per_us)


def _calendar(array: pa.Array, unit: str) -> npt.NDArray[np.int32]:
    return _days(array).view("datetime64[D]").astype(unit).view(np.int64).astype(np.int32)
