"""Container files: what is written reads back, and nothing hostile gets further than an error."""

from __future__ import annotations

from io import BytesIO

import fastavro
import pytest

from committer.errors import InvalidMetadataError
from committer.iceberg.avro.binary import LONGS, TruncatedAvroError, read_long, zigzag
from committer.iceberg.avro.codecs import compress
from committer.iceberg.avro.container import (
    encode_container,
    encode_header,
    iter_blocks,
    iter_raw_blocks,
    read_header,
)

SYNC = b"0123456789abcdef"
HEADER = encode_header({"avro.schema": b'"long"', "avro.codec": b"deflate"}, SYNC)


def file_of(*values: int, codec: str = "deflate") -> bytes:
    header = encode_header({"avro.schema": b'"long"', "avro.codec": codec.encode()}, SYNC)
    raw = b"".join(LONGS[value] for value in values)
    return encode_container(header, [(len(values), compress(codec, raw))], SYNC)


@pytest.mark.parametrize(
    "value",
    [0, 1, -1, 63, 64, -65, 8191, 8192, 2**20, 2**27 - 1, 2**27, 2**31, 2**63 - 1, -(2**63)],
)
def test_longs_read_back_and_are_what_fastavro_writes(value: int) -> None:
    out = BytesIO()
    fastavro.schemaless_writer(out, "long", value)
    assert zigzag(value) == LONGS[value] == out.getvalue()
    assert read_long(zigzag(value) + b"\x55", 0) == (value, len(zigzag(value)))


def test_a_long_of_over_64_bits_is_refused_on_both_ways() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        LONGS[2**63]
    with pytest.raises(InvalidMetadataError, match="over 10 bytes"):
        read_long(b"\xff" * 1000, 0)
    with pytest.raises(InvalidMetadataError, match="64 bits"):
        read_long(b"\xff" * 9 + b"\x7f", 0)
    with pytest.raises(TruncatedAvroError):
        read_long(b"\x80\x80", 0)


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_fastavro_reads_what_is_written(codec: str) -> None:
    assert list(fastavro.reader(BytesIO(file_of(1, -2, 300, codec=codec)))) == [1, -2, 300]


def test_a_header_reads_back_in_its_order() -> None:
    header = read_header(HEADER)
    assert list(header.metadata) == ["avro.schema", "avro.codec"]
    assert (header.sync, header.codec, header.end_offset) == (SYNC, "deflate", len(HEADER))
    assert header.schema_json == "long"


def test_a_header_in_sized_blocks_is_read() -> None:
    pair = LONGS[11] + b"avro.schema" + LONGS[6] + b'"long"'
    header = read_header(b"Obj\x01" + LONGS[-1] + LONGS[len(pair)] + pair + b"\0" + SYNC)
    assert (header.codec, header.schema_json) == ("null", "long")


def test_every_truncation_is_one_clear_error() -> None:
    whole = file_of(*range(100))
    for length in range(len(whole)):
        if length == len(HEADER):
            continue  # a file of no blocks
        with pytest.raises(TruncatedAvroError):
            list(iter_raw_blocks(whole[:length], read_header(whole[:length])))


@pytest.mark.parametrize(
    ("tail", "message"),
    [
        (LONGS[-1] + LONGS[0] + SYNC, "negative"),
        (LONGS[1] + LONGS[-5] + SYNC, "negative"),
        (LONGS[1] + LONGS[3] + compress("deflate", b"\0") + b"x" * 16, "sync marker"),
        (LONGS[1 << 40] + LONGS[3] + compress("deflate", b"\0") + SYNC, "announces"),
        (LONGS[1] + LONGS[3] + b"\xff\xff\xff" + SYNC, "damaged"),
        (LONGS[1] + LONGS[2] + compress("deflate", b"\0")[:2] + SYNC, "does not end"),
        (LONGS[1] + LONGS[8] + compress("deflate", b"\0") + b"trail" + SYNC, "does not end"),
    ],
)
def test_a_block_that_lies_is_refused(tail: bytes, message: str) -> None:
    with pytest.raises(InvalidMetadataError, match=message):
        list(iter_raw_blocks(HEADER + tail, read_header(HEADER)))


@pytest.mark.thorough
def test_a_small_file_cannot_inflate_without_end() -> None:
    bomb = compress("deflate", bytes(1 << 24), level=9)
    one = LONGS[1] + LONGS[len(bomb)] + bomb + SYNC
    with pytest.raises(InvalidMetadataError, match="100 times"):
        list(iter_raw_blocks(HEADER + one * 200, read_header(HEADER)))


@pytest.mark.parametrize(
    "content",
    [b"", b"Ob", b"PAR1" + bytes(40), b"Obj\x01" + LONGS[1 << 50], b"Obj\x01" + LONGS[-5]],
)
def test_what_is_no_avro_file_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidMetadataError):
        read_header(content)


@pytest.mark.parametrize("schema", [None, b"{", b"\xff", b"[" * 100_000])
def test_a_header_without_a_readable_schema_is_refused(schema: bytes | None) -> None:
    metadata = {"avro.codec": b"null"} | ({} if schema is None else {"avro.schema": schema})
    with pytest.raises(InvalidMetadataError):
        read_header(encode_header(metadata, SYNC))


def test_blocks_are_walked_without_being_inflated() -> None:
    whole = file_of(1, 2, 3)
    (block,) = iter_blocks(whole, read_header(whole))
    assert block.count == 3
    assert whole[block.start : block.stop] == compress("deflate", b"\x02\x04\x06")


def test_a_header_is_found_though_its_sync_marker_occurs_inside_it_too() -> None:
    metadata = {"avro.schema": b'"long"', "avro.codec": b"null", "note": b"x" + SYNC + b"y"}
    whole = encode_container(encode_header(metadata, SYNC), [(1, LONGS[5])], SYNC)
    for content in (whole, memoryview(whole)):
        header = read_header(content)
        assert dict(header.metadata) == metadata
        assert [raw for _, raw in iter_raw_blocks(content, header)] == [LONGS[5]]


def test_a_header_longer_than_what_is_kept_is_read() -> None:
    metadata = {"avro.schema": b'"long"', "avro.codec": b"null", "note": b"x" * 100_000}
    whole = encode_container(encode_header(metadata, SYNC), [(1, LONGS[5])], SYNC)
    assert len(read_header(whole).metadata["note"]) == 100_000
