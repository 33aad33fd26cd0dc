"""Files of tables that are too large: not read, or not decoded, with the limit and what to do."""

from __future__ import annotations

import gzip
from io import BytesIO

import fastavro
import pytest

from committer.errors import ObjectTooLargeError
from committer.iceberg.avro.codecs import compress
from committer.iceberg.avro.container import encode_container, read_header
from committer.iceberg.manifest.manifest_list import (
    ManifestFile,
    encode_manifest_file,
    encode_manifest_list,
)
from committer.ports.storage import NewObject
from committer.storage.bounded import BoundedStorage, ReadLimit, ReadLimits
from tests.support.builders.request_builders import SYNC, build_file, build_manifest
from tests.support.builders.table_builders import build_table
from tests.support.memory.memory_storage import MemoryStorage

KIB = 1024
METADATA, LIST, MANIFEST = (ReadLimit(size * KIB, f"advice {size}") for size in (10, 20, 40))
LIMITS = ReadLimits(METADATA, LIST, MANIFEST)
TABLE = build_table(warehouse="memory://warehouse")
NAME = "memory://warehouse/t/metadata/00001.metadata.json"
AVRO = "memory://warehouse/t/metadata/m.avro"
ROW = ManifestFile(
    manifest_path="memory://warehouse/t/metadata/some-long-name-m0.avro",
    manifest_length=5_000,
    partition_spec_id=0,
    added_snapshot_id=1,
    added_files_count=1,
    existing_files_count=0,
    deleted_files_count=0,
    added_rows_count=1,
    existing_rows_count=0,
    deleted_rows_count=0,
)


def manifest_list(rows: int) -> bytes:
    return encode_manifest_list(
        [encode_manifest_file(ROW, 2)] * rows,
        format_version=2,
        snapshot_id=1,
        parent_snapshot_id=None,
        sequence_number=1,
        first_row_id=None,
        sync=SYNC,
        extra_metadata={},
    )


def manifest(files: int) -> bytes:
    file = build_file(TABLE.metadata, TABLE.metadata.require_uuid())
    return build_manifest(TABLE.metadata, [file] * files).content


def position_deletes(count: int) -> bytes:
    """Return a file of deletes, which is Avro and none of the table's own files."""
    schema = {
        "type": "record",
        "name": "table",
        "fields": [
            {"name": "file_path", "type": "string", "field-id": 2147483546},
            {"name": "pos", "type": "long", "field-id": 2147483545},
        ],
    }
    out = BytesIO()
    fastavro.writer(out, schema, [{"file_path": "f" * 50, "pos": 1}] * count, codec="deflate")
    return out.getvalue()


class _Read(MemoryStorage):
    """Counts the bytes that are read."""

    read_bytes = 0

    async def get(
        self,
        location: str,
        *,
        offset: int = 0,
        length: int | None = None,
        size_bytes_max: int | None = None,
    ) -> bytes:
        content = await super().get(
            location, offset=offset, length=length, size_bytes_max=size_bytes_max
        )
        self.read_bytes += len(content)
        return content


async def read(location: str, content: bytes) -> bytes:
    """Read an object that another engine has written."""
    inner = MemoryStorage()
    await inner.create([NewObject(location, content)])
    return await BoundedStorage(inner, LIMITS).get(location)


@pytest.mark.parametrize(
    ("location", "content", "limit"),
    [
        (NAME, b"{" + b" " * METADATA.bytes_max, METADATA),
        (AVRO, b"x" * (MANIFEST.bytes_max + 1), MANIFEST),
    ],
)
async def test_an_object_that_is_stored_with_too_many_bytes_is_not_read(
    location: str, content: bytes, limit: ReadLimit
) -> None:
    inner = _Read()
    await inner.create([NewObject(location, content)])
    with pytest.raises(ObjectTooLargeError) as caught:
        await BoundedStorage(inner, LIMITS).get(location)
    assert inner.read_bytes == 0
    assert str(caught.value) == (
        f"`{location}` has {len(content)} bytes, and at most {limit.bytes_max} are read:"
        f" {limit.advice}"
    )


@pytest.mark.parametrize(
    ("location", "content", "limit"),
    [
        (NAME, gzip.compress(b"{" + b" " * METADATA.bytes_max), METADATA),
        (NAME.replace("json", "json.gz"), gzip.compress(b" " * 2**20), METADATA),
        (AVRO, manifest_list(600), LIST),
        (AVRO, manifest(300), MANIFEST),
    ],
    ids=["gzip", "gzip by its name", "list", "manifest"],
)
async def test_an_object_that_inflates_to_too_many_bytes_is_not_decoded(
    location: str, content: bytes, limit: ReadLimit
) -> None:
    assert len(content) < limit.bytes_max
    with pytest.raises(ObjectTooLargeError) as caught:
        await read(location, content)
    assert str(caught.value) == (
        f"`{location}` has {len(content)} bytes, and inflates to more than the {limit.bytes_max}"
        f" that are read: {limit.advice}"
    )


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard"])
async def test_blocks_of_every_codec_are_measured(codec: str) -> None:
    header = read_header(plain := manifest_list(0))
    named = bytes([2 * len(codec)]) + codec.encode()
    start = plain[: header.end_offset].replace(b"\x0edeflate", named)
    for size_bytes in (LIST.bytes_max, LIST.bytes_max + 1):
        block = (1, compress(codec, bytes(size_bytes)))
        content = encode_container(start, [block], header.sync)
        if size_bytes == LIST.bytes_max and len(content) <= LIST.bytes_max:
            assert await read(AVRO, content) == content
        elif size_bytes > LIST.bytes_max:
            with pytest.raises(ObjectTooLargeError):
                await read(AVRO, content)


@pytest.mark.parametrize(
    ("location", "content"),
    [
        (NAME, b"{" + b" " * (METADATA.bytes_max - 1)),
        (NAME, gzip.compress(b"{" + b" " * (METADATA.bytes_max - 1))),
        (NAME, gzip.compress(b"{" + b" " * 5_000)[:-4]),
        (AVRO, manifest_list(80)),
        (AVRO, manifest(80)),
        (AVRO, position_deletes(2_000)),
        (AVRO, manifest_list(80)[:-40]),
        (AVRO, b"Obj\x01 and nothing more"),
    ],
    ids=["plain", "gzip", "gzip cut off", "list", "manifest", "deletes", "list cut off", "magic"],
)
async def test_anything_else_is_left_to_its_reader(location: str, content: bytes) -> None:
    assert await read(location, content) == content


async def test_a_part_of_an_object_has_no_limit() -> None:
    inner = MemoryStorage()
    content = b"x" * (MANIFEST.bytes_max + 1)
    await inner.create([NewObject(AVRO, content)])
    storage = BoundedStorage(inner, LIMITS)
    assert await storage.get(AVRO, offset=1, length=MANIFEST.bytes_max) == content[1:]
    assert await storage.get(AVRO, size_bytes_max=len(content)) == content


async def test_a_file_that_could_not_be_read_again_is_not_written() -> None:
    inner = MemoryStorage()
    storage = BoundedStorage(inner, LIMITS)
    fits = NewObject(AVRO, manifest_list(80))
    large = NewObject(NAME, b"{" + b" " * METADATA.bytes_max)
    with pytest.raises(ObjectTooLargeError, match="advice 10"):
        await storage.create([fits, large])
    assert [one async for one in inner.list("memory://warehouse")] == []
    await storage.create([fits])
    assert await storage.get(AVRO) == fits.content
