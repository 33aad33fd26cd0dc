"""Rows as Avro: Arrow columns in, the encoded rows out, a column at a time and none of them alone.

Each column becomes a few arrays of bytes, one value a row: the branch of an optional column's
union, the length of a text, the text itself. A value that is not there has no bytes, so that a row
is what its arrays have for it, joined. What is required is not null: that was checked before.
Sources: the Avro specification, "Binary Encoding"; the Iceberg specification, Appendix A, "Avro".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from committer.errors import InvariantError
from committer.iceberg.avro.manifest_schemas import decimal_bytes

_Bytes = npt.NDArray[np.uint8]
_Numbers = npt.NDArray[np.int64]
_Valid = npt.NDArray[np.bool_]
# One array of bytes a part of the encoding: their values, joined row by row, are the encoded rows.
_Parts = list[pa.BinaryArray]

# A union of an optional column has null first: its branches are the zigzag longs 0 and 1.
_NULL, _VALUE = 0, 2
_BITS = 7
_DECIMAL_BYTES = 16


def encode_rows(rows: pa.RecordBatch) -> pa.BinaryArray:
    """Return the encoded rows. Their schema says which columns are optional: those that Arrow calls
    nullable."""
    parts = [
        part
        for field, column in zip(rows.schema, rows.columns, strict=True)
        for part in _field(field, column)
    ]
    return _join(parts)


def _field(field: pa.Field, array: pa.Array) -> _Parts:
    """Encode a column, a struct's member, or what lists and maps hold."""
    parts = _values(array)
    return [_branches(array), *parts] if field.nullable else parts


def _values(array: pa.Array) -> _Parts:
    """Encode values; those that are null have no bytes."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        lengths = pc.binary_length(array).fill_null(0).to_numpy(zero_copy_only=False)
        return [_longs(lengths.astype(np.int64), _valid(array)), array.cast(pa.binary())]
    for is_kind, encode in _NESTED:
        if is_kind(kind):
            return _where_valid(array, encode)
    for is_kind, scalar in _SCALARS:
        if is_kind(kind):
            return [scalar(array)]
    raise InvariantError(f"a column of Arrow's {kind} in an Avro file")


def _join(parts: Sequence[pa.BinaryArray]) -> pa.BinaryArray:
    return pc.binary_join_element_wise(
        *parts, pa.scalar(b"", pa.binary()), null_handling="replace", null_replacement=""
    )


# --- Nested values -------------------------------------------------------------------------------


def _where_valid(array: pa.Array, encode: Callable[[pa.Array], _Parts]) -> _Parts:
    """Encode the values that are not null: those inside of a null have no bytes either."""
    if not array.null_count:
        return encode(array)
    encoded = _join(encode(array.drop_null()))
    widths = np.zeros(len(array), np.int64)
    widths[_valid(array)] = np.diff(_offsets(encoded))
    return [_binary(_starts(widths), encoded.buffers()[2])]


def _struct(array: pa.StructArray) -> _Parts:
    return [
        part
        for field, child in zip(array.type, array.flatten(), strict=True)
        for part in _field(field, child)
    ]


def _list(array: pa.ListArray) -> _Parts:
    return _items(array, _field(array.type.value_field, _inside(array, array.values)))


def _map(array: pa.MapArray) -> _Parts:
    """Encode maps. Avro's own, which have texts as keys, are encoded as arrays of pairs are."""
    keys = _field(array.type.key_field, _inside(array, array.keys))
    return _items(array, keys + _field(array.type.item_field, _inside(array, array.items)))


def _inside(array: pa.Array, values: pa.Array) -> pa.Array:
    """Return the values of these lists alone: theirs may be a part of a longer array."""
    first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
    return values.slice(first, last - first)


def _items(array: pa.Array, parts: _Parts) -> _Parts:
    """Encode lists as one block each: how many items, the items, and the end of the blocks."""
    items = _join(parts)
    bounds = array.offsets.to_numpy().astype(np.int64)
    bounds -= bounds[0]
    counts = np.diff(bounds)
    blocks = _binary(_offsets(items)[bounds], items.buffers()[2])
    ends = _fixed(np.zeros((len(array), 1), np.uint8), None)
    return [_longs(counts, counts > 0), blocks, ends]


# --- Single values -------------------------------------------------------------------------------


def _branches(array: pa.Array) -> pa.BinaryArray:
    valid = _valid(array)
    if valid is None:
        return _fixed(np.full((len(array), 1), _VALUE, np.uint8), None)
    return _fixed(np.where(valid, _VALUE, _NULL).astype(np.uint8).reshape(-1, 1), None)


def _booleans(array: pa.Array) -> pa.BinaryArray:
    values = array.fill_null(False).cast(pa.uint8()).to_numpy()
    return _fixed(values.reshape(-1, 1), _valid(array))


def _integers(array: pa.Array) -> pa.BinaryArray:
    width = array.type.bit_width // 8
    numbers = _raw(array, width).view(f"<i{width}").reshape(-1)
    return _longs(numbers.astype(np.int64), _valid(array))


def _as_stored(array: pa.Array) -> pa.BinaryArray:
    """Encode values of one width each that Avro stores as Arrow does."""
    return _fixed(_raw(array, array.type.bit_width // 8), _valid(array))


def _decimals(array: pa.Array) -> pa.BinaryArray:
    """Encode unscaled values: two's complement, big-endian, in as few bytes as all need."""
    width = decimal_bytes(array.type.precision)
    digits = _raw(array, _DECIMAL_BYTES)[:, ::-1]
    return _fixed(digits[:, _DECIMAL_BYTES - width :], _valid(array))


def _longs(values: _Numbers, valid: _Valid | None) -> pa.BinaryArray:
    """Encode zigzag integers of variable length: 7 bits a byte, the lowest first."""
    numbers = ((values << 1) ^ (values >> 63)).view(np.uint64)
    widths = np.ones(len(values), np.int64)
    largest = int(numbers.max(initial=0, where=True if valid is None else valid))
    bytes_max = max(1, -(-largest.bit_length() // _BITS))
    for count in range(1, bytes_max):
        widths += numbers >= np.uint64(1 << (_BITS * count))
    digits = np.empty((len(values), bytes_max), np.uint8)
    for at in range(bytes_max):
        low = (numbers >> np.uint64(_BITS * at)).astype(np.uint8) & np.uint8(0x7F)
        digits[:, at] = low | np.where(widths > at + 1, 0x80, 0).astype(np.uint8)
    if valid is not None:
        widths[~valid] = 0
    content = digits[np.arange(bytes_max) < widths[:, None]]
    return _binary(_starts(widths), pa.py_buffer(content))


def _fixed(values: _Bytes, valid: _Valid | None) -> pa.BinaryArray:
    """Make an array of the rows of a matrix."""
    count, width = values.shape
    if valid is None:
        starts = np.arange(count + 1, dtype=np.int64) * width
        return _binary(starts, pa.py_buffer(np.ascontiguousarray(values)))
    content = np.ascontiguousarray(values[valid])
    return _binary(_starts(valid.astype(np.int64) * width), pa.py_buffer(content))


# --- Buffers -------------------------------------------------------------------------------------


def _valid(array: pa.Array) -> _Valid | None:
    """Return which values are not null; None where all are."""
    if not array.null_count:
        return None
    found: _Valid = array.is_valid().to_numpy(zero_copy_only=False)
    return found


def _raw(array: pa.Array, width: int) -> _Bytes:
    """Return the bytes of values that have one width, a row each; those of nulls are anything."""
    if not len(array):
        return np.empty((0, width), np.uint8)
    found = np.frombuffer(array.buffers()[1], np.uint8, len(array) * width, array.offset * width)
    return found.reshape(-1, width)


def _starts(widths: _Numbers) -> _Numbers:
    """Return where values of these widths start, one behind the other, and where the last ends."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(widths)))


def _offsets(array: pa.BinaryArray) -> _Numbers:
    if not len(array):
        return np.zeros(1, np.int64)
    found = np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, 4 * array.offset)
    return found.astype(np.int64)


def _binary(starts: _Numbers, content: pa.Buffer | None) -> pa.BinaryArray:
    buffers = [None, pa.py_buffer(starts.astype(np.int32)), content or pa.py_buffer(b"")]
    return pa.BinaryArray.from_buffers(pa.binary(), len(starts) - 1, buffers)


_NESTED: list[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], _Parts]]] = [
    (pa.types.is_struct, _struct),
    (pa.types.is_list, _list),
    (pa.types.is_map, _map),
]
_SCALARS: list[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], pa.BinaryArray]]] = [
    (pa.types.is_boolean, _booleans),
    (pa.types.is_integer, _integers),
    (pa.types.is_temporal, _integers),
    (pa.types.is_floating, _as_stored),
    (pa.types.is_fixed_size_binary, _as_stored),
    (pa.types.is_decimal128, _decimals),
]
