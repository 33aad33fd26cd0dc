"""Z-order: values of several columns as one key, whose bits come from each column in turn.

Rows that are near one another by this key are near by each of its columns, so files of such rows
have narrow bounds of all of them. Runs on executors: Arrow only.
Source: Iceberg Java, `ZOrderByteUtils`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from committer.errors import UnsupportedError

Words = npt.NDArray[np.uint64]
_BYTES = 8
_SIGN = np.uint64(1 << 63)


def zorder_keys(columns: Sequence[pa.Array]) -> pa.Array:
    """Return a key of 8 bytes for each column, a row at a time; keys compare as bytes.

    Columns hold physical values (`apply_transform`). Nulls count as the least value.
    Errors: `UnsupportedError` for a column of a nested type.
    """
    rows = len(columns[0])
    words = np.stack([_words(column) for column in columns], axis=1)
    ordered = words.astype(">u8").view(np.uint8).reshape(rows, len(columns), _BYTES)
    bits = np.unpackbits(ordered, axis=2)
    width = _BYTES * len(columns)
    # From bits by column to columns by bit.
    keys = np.packbits(bits.transpose(0, 2, 1).reshape(rows, 8 * width), axis=1)
    content = pa.py_buffer(np.ascontiguousarray(keys))
    fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), rows, [None, content])
    return fixed.cast(pa.binary())


def _words(column: pa.Array) -> Words:
    """Return a number for each value that compares as the value does, as far as 64 bits tell."""
    words = _words_of_values(column)
    if column.null_count:
        words[column.is_null().to_numpy(zero_copy_only=False)] = 0
    return words


def _words_of_values(column: pa.Array) -> Words:
    kind = column.type
    if pa.types.is_null(kind):
        return np.zeros(len(column), np.uint64)
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        numbers = pc.fill_null(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
        signed: Words = numbers.view(np.uint64) ^ _SIGN
        return signed
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _float_words(pc.fill_null(column.cast(pa.float64()), 0.0))
    if pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return _first_bytes(column.cast(pa.binary()))
    raise UnsupportedError(f"rows cannot be clustered by a column of type {kind}")


def _float_words(column: pa.Array) -> Words:
    """Flip the sign of positive numbers, and all bits of negative ones."""
    bits = column.to_numpy(zero_copy_only=False).astype(np.float64).view(np.uint64)
    words: Words = np.where(bits & _SIGN, ~bits, bits | _SIGN)
    return words


def _first_bytes(column: pa.Array) -> Words:
    """Return the first 8 bytes of each value, with zeros behind those of a shorter one."""
    starts = pc.fill_null(pc.binary_slice(column, 0, _BYTES), b"")
    padded = b"".join(value.ljust(_BYTES, b"\0") for value in starts.to_pylist())
    return np.frombuffer(padded, ">u8").astype(np.uint64)
