"""Avro object container files: header, blocks and their codecs. Nothing here knows Iceberg.

Every size and count that a file announces is checked before it is believed.
Source: the Avro specification, "Object Container Files".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from committer.errors import InvalidMetadataError
from committer.iceberg.avro.binary import (
    LONGS,
    TruncatedAvroError,
    encode_bytes,
    read_bytes,
    read_long,
)
from committer.iceberg.avro.codecs import BLOCK_BYTES_MAX, decompress
from committer.iceberg.avro.codecs import inflated_bytes as block_bytes

MAGIC = b"Obj\x01"
SYNC_BYTES = 16
_METADATA_KEYS_MAX = 1000
_HEADER_BYTES_KEPT = 64 * 1024
# A manifest's entries differ at least in a uuid each: no honest file inflates further. Without the
# ratio, a small file of valid blocks could keep a reader busy for hours.
_INFLATION_MAX = 100


@dataclass(frozen=True, slots=True)
class Header:
    """The start of a container file. `end_offset` is where the first block starts."""

    metadata: Mapping[str, bytes]
    sync: bytes
    codec: str
    end_offset: int
    schema_json: object


@dataclass(frozen=True, slots=True)
class Block:
    """One block: number of records, and where its (compressed) content starts and stops."""

    count: int
    start: int
    stop: int


def encode_header(metadata: Mapping[str, bytes], sync: bytes) -> bytes:
    """Encode the header; `metadata` holds `avro.schema` and `avro.codec`. `sync` has 16 bytes."""
    parts = [MAGIC, LONGS[len(metadata)]]
    for key, value in metadata.items():
        parts += (encode_bytes(key.encode()), encode_bytes(value))
    return b"".join((*parts, b"\0", sync))


def encode_block(
    count: int, content: bytes | memoryview, sync: bytes
) -> tuple[bytes | memoryview, ...]:
    """Return the parts of one block whose content is compressed already, to be joined."""
    return (LONGS[count], LONGS[len(content)], content, sync)


def read_header(buf: bytes | memoryview) -> Header:
    """Read the header of a container file.

    Errors: `TruncatedAvroError`; `InvalidMetadataError` for anything that is not Avro.
    """
    # Every file ends with the sync marker that its header ends with: its first occurrence is where
    # the metadata ends. One writer's files repeat the metadata to the byte, so it is read once.
    sync, start = bytes(buf[-SYNC_BYTES:]), bytes(buf[:_HEADER_BYTES_KEPT])
    stop = start.find(sync)
    if len(sync) == SYNC_BYTES and stop > 0:
        metadata, end = _kept_metadata(start[:stop])
        if end == stop:
            return _header(metadata, sync, stop)
    metadata, stop = _read_metadata(buf)
    sync = bytes(buf[stop : stop + SYNC_BYTES])
    if len(sync) != SYNC_BYTES:
        raise TruncatedAvroError("Avro: the file ends inside its header")
    return _header(metadata, sync, stop)


def _header(metadata: Mapping[str, bytes], sync: bytes, stop: int) -> Header:
    try:
        schema = _parse_schema(metadata["avro.schema"])
        codec = metadata.get("avro.codec", b"null").decode("ascii")
    except KeyError:
        raise InvalidMetadataError("Avro: the header has no `avro.schema`") from None
    except (ValueError, RecursionError):
        raise InvalidMetadataError("Avro: `avro.schema` or `avro.codec` is unreadable") from None
    return Header(metadata, sync, codec, stop + SYNC_BYTES, schema)


@lru_cache(maxsize=64)
def _kept_metadata(start: bytes) -> tuple[Mapping[str, bytes], int]:
    """Read the metadata of these bytes and where it ends; -1 if the bytes end before."""
    try:
        metadata, end = _read_metadata(start)
    except TruncatedAvroError:
        return {}, -1
    return MappingProxyType(metadata), end


@lru_cache(maxsize=64)
def _parse_schema(schema_text: bytes) -> object:
    # The files of one writer repeat their schema to the byte. The parsed value is never changed.
    return json.loads(schema_text)


def _not_avro(buf: bytes | memoryview) -> InvalidMetadataError:
    if MAGIC.startswith(bytes(buf[:4])):
        return TruncatedAvroError("Avro: the file ends inside its header")
    return InvalidMetadataError("not an Avro file: expected the magic bytes `Obj` 1")


def _read_metadata(buf: bytes | memoryview) -> tuple[dict[str, bytes], int]:
    if bytes(buf[:4]) != MAGIC:
        raise _not_avro(buf)
    position = len(MAGIC)
    metadata: dict[str, bytes] = {}
    while True:
        count, position = read_long(buf, position)
        if count == 0:
            return metadata, position
        if count < 0:
            count = -count
            _, position = read_long(buf, position)
        if count + len(metadata) > _METADATA_KEYS_MAX:
            raise InvalidMetadataError(f"Avro: a header of more than {_METADATA_KEYS_MAX} keys")
        for _ in range(count):
            key, position = read_bytes(buf, position)
            metadata[key.decode(errors="replace")], position = read_bytes(buf, position)


def iter_blocks(buf: bytes | memoryview, header: Header) -> Iterator[Block]:
    """Walk the blocks and check each one's size, count and sync marker. Nothing is inflated.

    Errors: `TruncatedAvroError`; `InvalidMetadataError`.
    """
    position, end = header.end_offset, len(buf)
    while position < end:
        count, position = read_long(buf, position)
        size, start = read_long(buf, position)
        if count < 0 or size < 0:
            raise InvalidMetadataError("Avro: a block has a negative size or count")
        stop = start + size
        if stop + SYNC_BYTES > end:
            raise TruncatedAvroError("Avro: the file ends inside a block")
        position = stop + SYNC_BYTES
        if buf[stop:position] != header.sync:
            raise InvalidMetadataError("Avro: a block does not end with the file's sync marker")
        yield Block(count, start, stop)


def iter_raw_blocks(
    buf: bytes | memoryview, header: Header, block_bytes_max: int = BLOCK_BYTES_MAX
) -> Iterator[tuple[Block, bytes]]:
    """Walk the blocks and inflate each. A record takes at least one byte, so counts are bounded.

    Errors: as `iter_blocks` and `decompress`; more than 100 times the file's size in all.
    """
    view = memoryview(buf)
    budget = BLOCK_BYTES_MAX + _INFLATION_MAX * len(buf)
    for block in iter_blocks(buf, header):
        raw = decompress(header.codec, view[block.start : block.stop], block_bytes_max)
        if block.count > len(raw):
            raise InvalidMetadataError(
                f"Avro: a block of {len(raw)} bytes announces {block.count} records"
            )
        budget -= len(raw)
        if budget < 0:
            raise InvalidMetadataError("Avro: the file inflates to over 100 times its size")
        yield block, raw


def inflated_bytes(buf: bytes | memoryview, header: Header, bytes_max: int) -> int:
    """Return how many bytes the blocks inflate to, or more than `bytes_max` where that is exceeded;
    one block is in memory at a time. Errors: as `iter_blocks` and `decompress`.
    """
    view, size_bytes = memoryview(buf), 0
    for block in iter_blocks(buf, header):
        size_bytes += block_bytes(header.codec, view[block.start : block.stop])
        if size_bytes > bytes_max:
            break
    return size_bytes


def encode_container(
    header: bytes, blocks: Iterable[tuple[int, bytes | memoryview]], sync: bytes
) -> bytes:
    """Join an encoded header and (count, compressed content) pairs to a file."""
    parts: list[bytes | memoryview] = [header]
    for count, content in blocks:
        parts += encode_block(count, content, sync)
    return b"".join(parts)
