"""Metadata files as gzip: which are, packed and unpacked within bounds.

Source: docs/reference/iceberg-notes.md 3, 10.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping

from committer.errors import InvalidMetadataError

# The old ending is read, never written.
_ENDINGS = (".gz.metadata.json", ".metadata.json.gz")
GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WINDOW = 31
_LEVEL = 6
# Far above any real file: snapshots with their ids and summaries shrink to a tenth, not further. A
# few bytes of gzip can inflate to a thousand times as many.
_UNZIPPED_BYTES_FREE = 16 * 1024 * 1024
_INFLATION_MAX = 100
_STEP_BYTES = 64 * 1024


def writes_gzip(properties: Mapping[str, str]) -> bool:
    """Return whether the table's metadata files are to be gzip."""
    return properties.get("write.metadata.compression-codec", "none").lower() == "gzip"


def is_gzip_location(location: str) -> bool:
    """Return whether readers take the file at a location for gzip."""
    return location.endswith(_ENDINGS)


def zip_metadata(content: bytes) -> bytes:
    """Compress the file with gzip. Equal content gives equal bytes:
    there is no time in the header."""
    return zlib.compress(content, _LEVEL, _GZIP_WINDOW)


def unzip_metadata(content: bytes) -> bytes:
    """Return the file without gzip; unchanged if it is none, under any name.

    Errors: `InvalidMetadataError` for a file that is torn, or too large to be one.
    """
    if not content.startswith(GZIP_MAGIC):
        return content
    bytes_max = _UNZIPPED_BYTES_FREE + _INFLATION_MAX * len(content)
    unzipped, rest = bytearray(), content
    # A gzip file may be several, one behind the other. Anything else behind them is padding.
    while rest.startswith(GZIP_MAGIC):
        unzip = zlib.decompressobj(_GZIP_WINDOW)
        try:
            unzipped += unzip.decompress(rest, bytes_max + 1 - len(unzipped))
        except zlib.error as error:
            raise InvalidMetadataError(f"expected a whole gzip file: {error}") from error
        if not unzip.eof or len(unzipped) > bytes_max:
            raise InvalidMetadataError(
                f"expected a whole gzip file of at most {bytes_max} bytes unzipped, found"
                f" {len(unzipped)} bytes and no end"
            )
        rest = unzip.unused_data
    return bytes(unzipped)


def unzipped_bytes(content: bytes, bytes_max: int) -> int:
    """Return the size of the file without gzip, or more than `bytes_max` for any that is larger.
    Only a step of it is in memory. One that is torn has the size of its part."""
    size_bytes, unzip = 0, zlib.decompressobj(_GZIP_WINDOW)
    for start in range(0, len(content), _STEP_BYTES):
        rest = content[start : start + _STEP_BYTES]
        while rest and size_bytes <= bytes_max:
            try:
                size_bytes += len(unzip.decompress(rest, bytes_max + 1 - size_bytes))
            except zlib.error:
                return size_bytes
            rest = unzip.unused_data if unzip.eof else b""
            if unzip.eof:
                unzip = zlib.decompressobj(_GZIP_WINDOW)
    return size_bytes
