"""Puffin files: blobs behind one another, and a footer that says what and where they are.

The content of a blob is not known here: deletion vectors are in `deletes/deletion_vector.py`.
Source: the Puffin specification; docs/reference/iceberg-notes.md 6.7.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from committer.errors import InvalidMetadataError, InvariantError, UnsupportedError
from committer.iceberg.avro.codecs import compress

_T = TypeVar("_T")

MAGIC = b"PFA1"
# payload size, flags and magic, behind the payload
_TRAILER_BYTES = 12
_FOOTER_BYTES_MAX = 64 * 1024 * 1024
_COMPRESSED_FLAG = 1
_ZSTD = "zstd"


@dataclass(frozen=True, slots=True)
class BlobMetadata:
    """One blob: its type, its source fields, and its place in the file."""

    type: str
    fields: tuple[int, ...]
    snapshot_id: int
    sequence_number: int
    offset: int
    length: int
    compression_codec: str | None
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PuffinFooter:
    """The blobs of a Puffin file in the order of the footer, and the file's own properties."""

    blobs: tuple[BlobMetadata, ...]
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """A blob to write. `content` is not compressed yet: `compression_codec` (None or zstd) says how
    it will be. The ids are -1 in deletion vectors: they are not known yet."""

    type: str
    fields: tuple[int, ...]
    snapshot_id: int
    sequence_number: int
    content: bytes
    compression_codec: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EncodedPuffin:
    """A Puffin file's bytes, and where its blobs lie, in the order given."""

    content: bytes
    blobs: tuple[BlobMetadata, ...]


# --- Writing -------------------------------------------------------------------------------------


def encode_puffin(
    blobs: Iterable[Blob], *, properties: Mapping[str, str] | None = None
) -> EncodedPuffin:
    """Write a file with an uncompressed footer, its keys in Iceberg Java's order.

    `properties` are the file's; `created-by` is recommended.
    Errors: `UnsupportedError` for a codec.
    """
    parts, written, offset = [MAGIC], [], len(MAGIC)
    for blob in blobs:
        content = _compressed(blob)
        written.append(
            BlobMetadata(
                blob.type,
                blob.fields,
                blob.snapshot_id,
                blob.sequence_number,
                offset,
                len(content),
                blob.compression_codec,
                blob.properties,
            )
        )
        parts.append(content)
        offset += len(content)
    payload = _print_footer(PuffinFooter(tuple(written), properties or {}))
    if len(payload) > _FOOTER_BYTES_MAX:
        raise InvariantError(f"Puffin: a footer of {len(payload)} bytes, of {len(written)} blobs")
    size = len(payload).to_bytes(4, "little")
    return EncodedPuffin(b"".join((*parts, MAGIC, payload, size, bytes(4), MAGIC)), tuple(written))


def _compressed(blob: Blob) -> bytes:
    if blob.compression_codec is None:
        return blob.content
    if blob.compression_codec == _ZSTD:
        return compress("zstandard", blob.content)
    raise UnsupportedError(f"Puffin: blobs compressed with `{blob.compression_codec}`")


def _print_footer(footer: PuffinFooter) -> bytes:
    document: dict[str, object] = {"blobs": [_print_blob(blob) for blob in footer.blobs]}
    if footer.properties:
        document["properties"] = dict(footer.properties)
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


def _print_blob(blob: BlobMetadata) -> dict[str, object]:
    document: dict[str, object] = {
        "type": blob.type,
        "fields": list(blob.fields),
        "snapshot-id": blob.snapshot_id,
        "sequence-number": blob.sequence_number,
        "offset": blob.offset,
        "length": blob.length,
    }
    if blob.compression_codec is not None:
        document["compression-codec"] = blob.compression_codec
    if blob.properties:
        document["properties"] = dict(blob.properties)
    return document


# --- Reading -------------------------------------------------------------------------------------


def decode_puffin_footer(buf: bytes | memoryview, *, where: str = "Puffin") -> PuffinFooter:
    """Read the footer from a whole file, or from its last bytes if they hold the footer.

    Errors: `InvalidMetadataError` naming `where`; `UnsupportedError` for a compressed footer.
    """
    payload = _payload(bytes(buf[-(_FOOTER_BYTES_MAX + 2 * _TRAILER_BYTES) :]), where)
    try:
        document = json.loads(payload)
        blobs = tuple(_blob(blob) for blob in document["blobs"])
        return PuffinFooter(blobs, _properties(document))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InvalidMetadataError(f"{where}: the footer's JSON is not understood") from None


def _payload(tail: bytes, where: str) -> bytes:
    if len(tail) < _TRAILER_BYTES + len(MAGIC) or not tail.endswith(MAGIC):
        raise InvalidMetadataError(
            f"{where}: not a Puffin file: expected the magic bytes PFA1 at its end"
        )
    size = int.from_bytes(tail[-12:-8], "little", signed=True)
    start = len(tail) - _TRAILER_BYTES - size
    if size < 0 or start < len(MAGIC) or tail[start - 4 : start] != MAGIC:
        raise InvalidMetadataError(f"{where}: the footer does not start where its size says")
    if tail[-8] & _COMPRESSED_FLAG:
        raise UnsupportedError(f"{where}: a compressed footer")
    return tail[start : start + size]


def _blob(document: Mapping[str, object]) -> BlobMetadata:
    fields = document["fields"]
    if not isinstance(fields, list):
        raise TypeError("fields are a list")
    codec = document.get("compression-codec")
    return BlobMetadata(
        _of(str, document["type"]),
        tuple(_of(int, field_id) for field_id in fields),
        _of(int, document["snapshot-id"]),
        _of(int, document["sequence-number"]),
        _place(document["offset"]),
        _place(document["length"]),
        None if codec is None else _of(str, codec),
        _properties(document),
    )


def _properties(document: Mapping[str, object]) -> Mapping[str, str]:
    properties = document.get("properties") or {}
    if not isinstance(properties, dict):
        raise TypeError("properties are an object")
    return {str(key): _of(str, value) for key, value in properties.items()}


def _place(value: object) -> int:
    number = _of(int, value)
    if not 0 <= number < 1 << 63:
        raise ValueError("expected a place in a file")
    return number


def _of(kind: type[_T], value: object) -> _T:
    if type(value) is not kind:
        raise TypeError(f"expected {kind.__name__}")
    return value
