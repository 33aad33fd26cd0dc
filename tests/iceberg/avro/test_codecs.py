"""Codecs: round trips, limits, damage."""

from __future__ import annotations

import random

import pytest
import zstandard

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.iceberg.avro.codecs import compress, decompress

CODECS = ["null", "deflate", "zstandard", "snappy"]
RAW = b"".join(b"%d: frazil, " % (number // 3) for number in range(30_000))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("raw", [b"", b"x", RAW])
def test_what_is_compressed_inflates_to_itself(codec: str, raw: bytes) -> None:
    assert decompress(codec, compress(codec, raw)) == raw
    assert decompress(codec, memoryview(compress(codec, raw)), len(raw)) == raw


@pytest.mark.parametrize("codec", CODECS)
def test_a_block_over_the_limit_is_refused(codec: str) -> None:
    with pytest.raises(InvalidMetadataError, match="more than 1000 bytes"):
        decompress(codec, compress(codec, RAW), 1000)


@pytest.mark.parametrize("codec", ["deflate", "zstandard", "snappy"])
def test_damage_is_an_error_or_other_bytes_but_never_another_exception(codec: str) -> None:
    chance = random.Random(7)
    content = compress(codec, RAW[:3000])
    for _ in range(300):
        damaged = bytearray(content)
        damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            decompress(codec, bytes(damaged[: chance.randrange(len(damaged) + 1)]))
        except InvalidMetadataError:
            continue


@pytest.mark.parametrize("with_size", [True, False])
def test_a_zstandard_block_that_ends_early_is_refused(with_size: bool) -> None:
    compressor = zstandard.ZstdCompressor(write_content_size=with_size).compressobj()
    content = compressor.compress(RAW) + compressor.flush()
    if with_size:
        content = compress("zstandard", RAW)
    assert decompress("zstandard", content) == RAW
    assert decompress("zstandard", content + content) == RAW + RAW
    for size in (1, 5, len(content) // 2, len(content) - 1):
        for damaged in (content[:size], content + content[:size]):
            with pytest.raises(InvalidMetadataError, match="zstandard block"):
                decompress("zstandard", damaged)


@pytest.mark.parametrize(
    ("block", "raw"),
    [
        (b"\x03\x08abc", b"abc"),
        (b"\x0b\x08abc\x01\x03\x01\x03", b"abcabcabcab"),
        (b"\x08\x0cabcd\x0e\x04\x00", b"abcdabcd"),
        (b"\x08\x0cabcd\x0f\x04\x00\x00\x00", b"abcdabcd"),
    ],
)
def test_snappy_back_references_repeat_what_was_read(block: bytes, raw: bytes) -> None:
    from committer.iceberg.avro import snappy

    assert snappy.decompress(block, 100) == raw


@pytest.mark.parametrize(
    "block",
    [
        b"",
        b"\xff\xff\xff\xff\xff",
        b"\x03\x08ab",
        b"\x04\x08abc",
        b"\x03\x0e\x04\x00",
        b"\x05\x00a\x0e\x00\x00",
        b"\x03\xfc\xff\xff\xff\xff",
    ],
)
def test_damaged_snappy_blocks_are_refused(block: bytes) -> None:
    from committer.iceberg.avro import snappy

    with pytest.raises(InvalidMetadataError):
        snappy.decompress(block, 100)


def test_an_unknown_codec_is_named() -> None:
    with pytest.raises(UnsupportedError, match="`xz`"):
        decompress("xz", b"")
    with pytest.raises(UnsupportedError, match="`bzip2`"):
        compress("bzip2", b"")
