"""The content of the blobs of a Puffin file."""

from __future__ import annotations

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.iceberg.avro.codecs import decompress
from committer.iceberg.deletes.puffin import BlobMetadata

# Sketches have kilobytes, and vectors are not compressed.
_INFLATED_BYTES_MAX = 64 * 1024 * 1024


def decode_blob(buf: bytes | memoryview, blob: BlobMetadata, *, where: str = "Puffin") -> bytes:
    """Decode the content of a blob of a whole file.

    Errors: `InvalidMetadataError` naming `where` for a blob outside the file, or that does not
    inflate; `UnsupportedError` for lz4.
    """
    place = f"{where}: the blob at {blob.offset}"
    if blob.offset + blob.length > len(buf):
        raise InvalidMetadataError(f"{place}: {blob.length} bytes in a file of {len(buf)}")
    content = bytes(buf[blob.offset : blob.offset + blob.length])
    if blob.compression_codec is None:
        return content
    if blob.compression_codec != "zstd":
        raise UnsupportedError(f"{place}: compressed with `{blob.compression_codec}`")
    try:
        return decompress("zstandard", content, _INFLATED_BYTES_MAX)
    except InvalidMetadataError as error:
        raise InvalidMetadataError(f"{place}: {error}") from error
