"""Reads the footer of a Puffin file: which blobs it has. Blob contents are not read here.

Source: the Puffin specification; format.md 8.7.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from committer.errors import InvalidMetadataError, UnsupportedError

_T = TypeVar("_T")

MAGIC = b"PFA1"
# payload size, flags and magic, behind the payload
_TRAILER_BYTES = 12
_FOOTER_BYTES_MAX = 64 * 1024 * 1024
_COMPRESSED_FLAG = 1


@dataclass(frozen=True, slots=True)
class BlobMetadata:
    """One blob: its type, the fields it was computed from, and where it lies in the file."""

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


def decode_puffin_footer(buf: bytes | memoryview) -> PuffinFooter:
    """Read the footer from a whole file, or from its last bytes if they hold the footer.

    Errors: `InvalidMetadataError`; `UnsupportedError` for a compressed footer.
    """
    payload = _payload(bytes(buf[-(_FOOTER_BYTES_MAX + 2 * _TRAILER_BYTES) :]))
    try:
        document = json.loads(payload)
        blobs = tuple(_blob(blob) for blob in document["blobs"])
        return PuffinFooter(blobs, _properties(document))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InvalidMetadataError("Puffin: the footer's JSON is not understood") from None


def _payload(tail: bytes) -> bytes:
    if len(tail) < _TRAILER_BYTES + len(MAGIC) or not tail.endswith(MAGIC):
        raise InvalidMetadataError("not a Puffin file: expected the magic bytes PFA1 at its end")
    size = int.from_bytes(tail[-12:-8], "little", signed=True)
    start = len(tail) - _TRAILER_BYTES - size
    if size < 0 or start < len(MAGIC) or tail[start - 4 : start] != MAGIC:
        raise InvalidMetadataError("Puffin: the footer does not start where its size says")
    if tail[-8] & _COMPRESSED_FLAG:
        raise UnsupportedError("Puffin: a compressed footer")
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
        _of(int, document["offset"]),
        _of(int, document["length"]),
        None if codec is None else _of(str, codec),
        _properties(document),
    )


def _properties(document: Mapping[str, object]) -> Mapping[str, str]:
    properties = document.get("properties") or {}
    if not isinstance(properties, dict):
        raise TypeError("properties are an object")
    return {str(key): _of(str, value) for key, value in properties.items()}


def _of(kind: type[_T], value: object) -> _T:
    if type(value) is not kind:
        raise TypeError(f"expected {kind.__name__}")
    return value
