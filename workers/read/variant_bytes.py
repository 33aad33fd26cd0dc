"""The binary form of variants: what is needed to put shredded values back together.

Source: the Parquet format, "Variant Binary Encoding". Numbers are little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise

import pyarrow as pa

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.iceberg.avro.decoder import EXACT

_SHORT_TEXT_BYTES = 63
_SHORT_STRING, _OBJECT, _ARRAY = 1, 2, 3
_STRING = 16
NULL = b"\0"

_Encode = Callable[[object], bytes]


def names_of(metadata: bytes) -> dict[str, int]:
    """Return the ids of the names in a variant's metadata.
    Errors: `InvalidMetadataError`."""
    if not metadata or metadata[0] & 15 != 1:
        raise InvalidMetadataError("a variant's metadata: expected version 1")
    width = (metadata[0] >> 6) + 1
    count = _number(metadata, 1, width)
    start = 1 + width * (count + 2)
    ends = [_number(metadata, 1 + width * (1 + at), width) for at in range(count + 1)]
    texts = [metadata[start + one : start + end] for one, end in pairwise(ends)]
    return {text.decode(): at for at, text in enumerate(texts)}


def encode_array(elements: Sequence[bytes]) -> bytes:
    """Encode an array of encoded elements."""
    width, is_large = _width(sum(map(len, elements))), len(elements) > 255
    header = (width - 1 | is_large << 2) << 2 | _ARRAY
    count = len(elements).to_bytes(4 if is_large else 1, "little")
    return b"".join((bytes((header,)), count, *_offsets(elements, width), *elements))


def encode_object(fields: Mapping[str, bytes], names: Mapping[str, int]) -> bytes:
    """Encode an object of encoded values. Errors: `InvalidMetadataError` for a name that the
    metadata does not have."""
    ordered = sorted(fields, key=str.encode)
    if missing := [name for name in ordered if name not in names]:
        raise InvalidMetadataError(f"a variant's metadata: expected the name `{missing[0]}`")
    ids, values = [names[name] for name in ordered], [fields[name] for name in ordered]
    id_width, width = _width(max(ids, default=0)), _width(sum(map(len, values)))
    is_large = len(values) > 255
    header = (width - 1 | id_width - 1 << 2 | is_large << 4) << 2 | _OBJECT
    count = len(values).to_bytes(4 if is_large else 1, "little")
    numbers = (one.to_bytes(id_width, "little") for one in ids)
    return b"".join((bytes((header,)), count, *numbers, *_offsets(values, width), *values))


def fields_of(value: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the fields of an encoded object: the ids of their names, and their encoded values.
    Errors: `InvalidMetadataError` for another value."""
    if not value or value[0] & 3 != _OBJECT:
        raise InvalidMetadataError("a variant with shredded fields: expected an object beside them")
    header = value[0] >> 2
    width, id_width, is_large = (header & 3) + 1, (header >> 2 & 3) + 1, header >> 4 & 1
    start = 5 if is_large else 2
    count = _number(value, 1, start - 1)
    offsets_at = start + count * id_width
    values_at = offsets_at + (count + 1) * width
    offsets = [_number(value, offsets_at + at * width, width) for at in range(count + 1)]
    # Values need not lie in the order of their names: each ends where the next one starts.
    ends = dict(zip(sorted(offsets), sorted(offsets)[1:], strict=False))
    for at, offset in enumerate(offsets[:-1]):
        number = _number(value, start + at * id_width, id_width)
        yield number, value[values_at + offset : values_at + ends[offset]]


def primitive_encoder(kind: pa.DataType) -> _Encode:
    """Return the encoder of values of an Arrow type, in their physical form.
    Errors: `UnsupportedError` for a type that no shredded value has."""
    if pa.types.is_boolean(kind):
        return lambda value: b"\x04" if value else b"\x08"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _encode_text
    if pa.types.is_decimal(kind):
        return _decimal_encoder(kind.precision, kind.scale)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return lambda value: _sized(15, _bytes(value))
    if kind == pa.uuid() or kind == pa.binary(16):
        return lambda value: _primitive(20, _bytes(value))
    for test, number, layout in _NUMBERS:
        if test(kind):
            packed = struct.Struct(layout)
            return lambda value: _primitive(number, packed.pack(value))
    raise UnsupportedError(f"a variant with shredded values of type {kind}")


_NUMBERS: tuple[tuple[Callable[[pa.DataType], bool], int, str], ...] = (
    (pa.types.is_int8, 3, "<b"),
    (pa.types.is_int16, 4, "<h"),
    (pa.types.is_int32, 5, "<i"),
    (pa.types.is_int64, 6, "<q"),
    (pa.types.is_float64, 7, "<d"),
    (pa.types.is_date32, 11, "<i"),
    (lambda kind: kind == pa.timestamp("us", "UTC"), 12, "<q"),
    (lambda kind: kind == pa.timestamp("us"), 13, "<q"),
    (pa.types.is_float32, 14, "<f"),
    (lambda kind: kind == pa.time64("us"), 17, "<q"),
    (lambda kind: kind == pa.timestamp("ns", "UTC"), 18, "<q"),
    (lambda kind: kind == pa.timestamp("ns"), 19, "<q"),
)


def _encode_text(value: object) -> bytes:
    content = str(value).encode()
    if len(content) <= _SHORT_TEXT_BYTES:
        return bytes((len(content) << 2 | _SHORT_STRING,)) + content
    return _sized(_STRING, content)


def _decimal_encoder(precision: int, scale: int) -> _Encode:
    number, width = (8, 4) if precision <= 9 else (9, 8) if precision <= 18 else (10, 16)

    def encode(value: object) -> bytes:
        assert isinstance(value, Decimal)  # noqa: S101  # tells the type checker
        unscaled = int(value.scaleb(scale, EXACT))
        return _primitive(number, bytes((scale,)) + unscaled.to_bytes(width, "little", signed=True))

    return encode


def _bytes(value: object) -> bytes:
    assert isinstance(value, bytes)  # noqa: S101  # tells the type checker
    return value


def _primitive(number: int, content: bytes) -> bytes:
    return bytes((number << 2,)) + content


def _sized(number: int, content: bytes) -> bytes:
    return _primitive(number, len(content).to_bytes(4, "little") + content)


def _width(largest: int) -> int:
    return max(1, (largest.bit_length() + 7) // 8)


def _offsets(values: Iterable[bytes], width: int) -> Iterator[bytes]:
    offset = 0
    yield offset.to_bytes(width, "little")
    for value in values:
        offset += len(value)
        yield offset.to_bytes(width, "little")


def _number(content: bytes, at: int, width: int) -> int:
    if at + width > len(content):
        raise InvalidMetadataError("a variant: its bytes end too early")
    return int.from_bytes(content[at : at + width], "little")
