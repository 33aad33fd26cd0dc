"""Compression codecs of Avro blocks, with a limit on what a block may inflate to.

Nothing here knows containers or schemas. Source: the Avro specification, "Required Codecs" and
"Optional Codecs"; docs/reference/iceberg-notes.md 6.2.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.iceberg.avro import snappy
from committer.iceberg.avro.binary import BlockTooLargeError

# One block never needs to inflate further than this; writers close blocks at about 64 kB.
BLOCK_BYTES_MAX = 32 * 1024 * 1024

# Measured on blocks of 84 entries with metrics of 20 columns, 770 bytes each, per entry: level 1
# makes 230 bytes in 3.4 µs, level 2 226 in 3.9, level 4 211 in 5.9, level 6 207 in 9.8, level 9 as
# many in 31. A writer of new files pays for the time, a merge of them for the bytes.
DEFLATE_LEVEL = 4
DEFLATE_LEVEL_FAST = 1
_ZLIB_CHECKSUM_BYTES = 4
_ZSTANDARD_LEVEL = 1
_ZSTANDARD_STEP_BYTES = 1024
_ZSTANDARD_WINDOW_BYTES_MAX = 2 * BLOCK_BYTES_MAX

# Preparing the full window costs 45 µs, three times what a lone entry needs in one of its size.
_SMALL_BYTES = 4096
_SMALL = (12, 6)
_LARGE = (15, 8)


def compress(codec: str, raw: bytes, *, level: int = DEFLATE_LEVEL) -> bytes:
    """Compress one block. `level` is that of deflate. Errors: `UnsupportedError`."""
    if codec == "null":
        return raw
    if codec == "deflate":
        window_bits, memory_level = _SMALL if len(raw) <= _SMALL_BYTES else _LARGE
        deflate = zlib.compressobj(level, zlib.DEFLATED, -window_bits, memory_level)
        return deflate.compress(raw) + deflate.flush()
    if codec == "zstandard":
        _require_zstandard()
        import zstandard

        return zstandard.ZstdCompressor(level=_ZSTANDARD_LEVEL).compress(raw)
    if codec == "snappy":
        return snappy.compress(raw) + zlib.crc32(raw).to_bytes(4, "big")
    raise UnsupportedError(f"Avro codec `{codec}`")


def decompress(codec: str, content: bytes | memoryview, limit: int = BLOCK_BYTES_MAX) -> bytes:
    """Inflate one block to at most `limit` bytes.

    Errors: `InvalidMetadataError` for damage, `BlockTooLargeError` for more than `limit` bytes;
    `UnsupportedError`.
    """
    inflate = _INFLATE.get(codec)
    if inflate is None:
        raise UnsupportedError(f"Avro codec `{codec}`")
    raw = inflate(content, limit)
    if len(raw) > limit:
        raise BlockTooLargeError(f"Avro: a block inflates to more than {limit} bytes")
    return raw


def inflated_bytes(codec: str, content: bytes | memoryview) -> int:
    """Return how many bytes a block inflates to. Errors: as `decompress`."""
    if codec == "null":
        return len(content)
    if codec == "snappy":
        # It says so itself, and is refused where that is not true. Plain Python inflates it slowly.
        return snappy.announced_bytes(bytes(content[: snappy.LENGTH_BYTES_MAX]))
    return len(decompress(codec, content))


def _null(content: bytes | memoryview, _limit: int) -> bytes:
    return bytes(content)


def _deflate(content: bytes | memoryview, limit: int) -> bytes:
    inflate = zlib.decompressobj(-15)
    try:
        raw = inflate.decompress(content, limit + 1)
    except zlib.error as error:
        raise InvalidMetadataError(f"Avro: a deflate block is damaged ({error})") from None
    # Some writers cut a zlib stream instead of writing raw deflate, and leave of its checksum.
    rest = len(inflate.unused_data)
    if len(raw) <= limit and (not inflate.eof or rest > _ZLIB_CHECKSUM_BYTES):
        raise InvalidMetadataError("Avro: a deflate block does not end where it should")
    return raw


def _snappy(content: bytes | memoryview, limit: int) -> bytes:
    raw = snappy.decompress(bytes(content[:-4]), limit)
    if zlib.crc32(raw).to_bytes(4, "big") != bytes(content[-4:]):
        raise InvalidMetadataError("Avro: a snappy block has a wrong checksum")
    return raw


def _zstd(content: bytes | memoryview, limit: int) -> bytes:
    """Inflate frame by frame, in steps of a few bytes: one of them may inflate to 32 MiB."""
    _require_zstandard()
    import zstandard

    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTANDARD_WINDOW_BYTES_MAX)
    parts: list[bytes] = []
    size, frame = 0, None
    try:
        for start in range(0, len(content), _ZSTANDARD_STEP_BYTES):
            rest = bytes(content[start : start + _ZSTANDARD_STEP_BYTES])
            while rest and size <= limit:
                frame = frame or decompressor.decompressobj()
                parts.append(frame.decompress(rest))
                size += len(parts[-1])
                rest, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
    except zstandard.ZstdError as error:
        raise InvalidMetadataError(f"Avro: a zstandard block is damaged ({error})") from None
    if frame is not None and size <= limit:
        raise InvalidMetadataError("Avro: a zstandard block does not end where it should")
    return b"".join(parts)


def _require_zstandard() -> None:
    # Optional: only tables whose writers chose this codec need the library.
    try:
        importlib.import_module("zstandard")
    except ImportError:
        raise UnsupportedError("Avro codec `zstandard`: install the library `zstandard`") from None


_INFLATE: dict[str, Callable[[bytes | memoryview, int], bytes]] = {
    "null": _null,
    "deflate": _deflate,
    "snappy": _snappy,
    "zstandard": _zstd,
}
