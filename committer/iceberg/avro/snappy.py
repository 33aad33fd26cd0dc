"""Snappy blocks in plain Python: enough to read what other writers chose, and to answer in kind.

Written blocks hold literals only (valid, not smaller). No framing, no checksums.
Source: the Snappy format description, `format_description.txt`.
"""

from __future__ import annotations

from committer.errors import InvalidMetadataError
from committer.iceberg.avro.binary import BlockTooLargeError, varint

_LITERAL_BYTES_MAX = 1 << 16
LENGTH_BYTES_MAX = 5


def compress(raw: bytes) -> bytes:
    """Wrap the bytes in literals."""
    parts = [varint(len(raw))]
    for start in range(0, len(raw), _LITERAL_BYTES_MAX):
        literal = raw[start : start + _LITERAL_BYTES_MAX]
        parts += (b"\xf4", (len(literal) - 1).to_bytes(2, "little"), literal)
    return b"".join(parts)


def decompress(content: bytes, limit: int) -> bytes:
    """Inflate one block.
    Errors: `InvalidMetadataError` for damage, `BlockTooLargeError` for more than `limit` bytes."""
    try:
        expected, position = _read_length(content)
        if expected > limit:
            raise BlockTooLargeError(f"Avro: a snappy block announces more than {limit} bytes")
        raw = _inflate(content, position, expected)
    except IndexError:
        raise InvalidMetadataError("Avro: a snappy block is cut off") from None
    if len(raw) != expected:
        raise InvalidMetadataError("Avro: a snappy block is damaged")
    return bytes(raw)


def announced_bytes(content: bytes) -> int:
    """Return how many bytes a block says that it inflates to. Errors: `InvalidMetadataError`."""
    try:
        return _read_length(content)[0]
    except IndexError:
        raise InvalidMetadataError("Avro: a snappy block is cut off") from None


def _read_length(content: bytes) -> tuple[int, int]:
    number = 0
    for position in range(LENGTH_BYTES_MAX):
        number |= (content[position] & 0x7F) << (7 * position)
        if content[position] < 0x80:
            return number, position + 1
    raise InvalidMetadataError("Avro: a snappy block has no length")


def _inflate(content: bytes, position: int, expected: int) -> bytearray:
    raw = bytearray()
    while position < len(content) and len(raw) <= expected:
        tag = content[position]
        position += 1
        if tag & 3 == 0:
            length, position = _literal_length(content, tag, position)
            if position + length > len(content):
                raise IndexError
            raw += content[position : position + length]
            position += length
        else:
            length, offset, position = _copy(content, tag, position)
            _append_copy(raw, length, offset)
    return raw


def _literal_length(content: bytes, tag: int, position: int) -> tuple[int, int]:
    length = tag >> 2
    if length < 60:
        return length + 1, position
    width = length - 59
    if position + width > len(content):
        raise IndexError
    return int.from_bytes(content[position : position + width], "little") + 1, position + width


def _copy(content: bytes, tag: int, position: int) -> tuple[int, int, int]:
    """Decode a back reference: its length, its offset, and the position behind it."""
    if tag & 3 == 1:
        return 4 + (tag >> 2 & 7), (tag >> 5) << 8 | content[position], position + 1
    width = 2 if tag & 3 == 2 else 4
    if position + width > len(content):
        raise IndexError
    offset = int.from_bytes(content[position : position + width], "little")
    return (tag >> 2) + 1, offset, position + width


def _append_copy(raw: bytearray, length: int, offset: int) -> None:
    start = len(raw) - offset
    if offset == 0 or start < 0:
        raise InvalidMetadataError("Avro: a snappy block refers to bytes before its start")
    pattern = bytes(raw[start : start + length])
    # A copy may overlap its own output: the pattern then repeats.
    raw += (pattern * (length // len(pattern) + 1))[:length]
