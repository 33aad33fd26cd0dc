"""Avro's variable-length integers, the smallest piece that the encoders and decoders share.

Nothing here knows schemas, containers or Iceberg.
Source: the Avro specification, "Primitive Types".
"""

from __future__ import annotations

from committer.errors import InvalidMetadataError

LONG_MAX = 2**63 - 1
_CACHED = 1 << 14
_LOW = _CACHED - 1


class TruncatedAvroError(InvalidMetadataError):
    """The bytes end in the middle of a value. A sender may send them again, whole."""


class BlockTooLargeError(InvalidMetadataError):
    """A block inflates to more than its reader takes."""


# 14 bits each: as the last two bytes of an integer (or its only one), and as two with more behind.
_MORE = [bytes((number | 128,)) for number in range(128)]
_LAST = [bytes((number,)) for number in range(128)]
_LAST += [low + high for high in _LAST[1:] for low in _MORE]
_INNER = [low + high for high in _MORE for low in _MORE]


def zigzag(value: int) -> bytes:
    """Encode an int or long. Shapes: 1 to 10 bytes for -2^63 ≤ value < 2^63."""
    number = value << 1 if value >= 0 else ((-value) << 1) - 1
    # Sizes and counts of real files have three to six bytes: those are two or three look-ups.
    if number < _CACHED:
        return _LAST[number]
    if number < 1 << 28:
        return _INNER[number & _LOW] + _LAST[number >> 14]
    if number < 1 << 42:
        return _INNER[number & _LOW] + _INNER[number >> 14 & _LOW] + _LAST[number >> 28]
    return varint(number)


def varint(number: int) -> bytes:
    """Encode a number that is not negative, 7 bits a byte, the lowest first."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


class _Longs(dict[int, bytes]):
    """Encoded longs by value: small ones are looked up, others computed and not kept."""

    def __missing__(self, value: int) -> bytes:
        # The most frequent case first, and without another call.
        if _CACHED <= value < 1 << 27:
            number = value << 1
            return _INNER[number & _LOW] + _LAST[number >> 14]
        if not -LONG_MAX - 1 <= value <= LONG_MAX:
            raise ValueError(f"{value} does not fit a long")
        return zigzag(value)


# A lookup in C instead of a call: nearly every count, size, id and length is small.
LONGS = _Longs((value, zigzag(value)) for value in range(-256, _CACHED))
# The small ones alone: looking up many at once is a third faster where nothing is computed.
SMALL_LONGS = dict(LONGS)


def read_long(buf: bytes | memoryview, position: int) -> tuple[int, int]:
    """Decode an int or long at `position`; return it and the position behind it.

    Errors: `TruncatedAvroError`; `InvalidMetadataError` for more than 64 bits.
    """
    try:
        byte = buf[position]
        if byte < 0x80:
            return (byte >> 1) ^ -(byte & 1), position + 1
        number, shift = byte & 0x7F, 7
        while True:
            position += 1
            byte = buf[position]
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 63:
                raise InvalidMetadataError("Avro: a variable-length integer has over 10 bytes")
    except IndexError:
        raise TruncatedAvroError("Avro: the bytes end inside an integer") from None
    if number >> 64:
        raise InvalidMetadataError("Avro: an integer has more than 64 bits")
    return (number >> 1) ^ -(number & 1), position + 1


def read_bytes(buf: bytes | memoryview, position: int) -> tuple[bytes, int]:
    """Decode a length-prefixed string of bytes. Errors: as `read_long`, and a negative length."""
    length, position = read_long(buf, position)
    if length < 0:
        raise InvalidMetadataError("Avro: a negative length")
    stop = position + length
    if stop > len(buf):
        raise TruncatedAvroError(f"Avro: expected {length} bytes, {len(buf) - position} are left")
    return bytes(buf[position:stop]), stop


def encode_bytes(content: bytes) -> bytes:
    """Encode bytes with their length in front: the inverse of `read_bytes`."""
    return LONGS[len(content)] + content
