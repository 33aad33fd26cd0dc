"""Builders of schemas, data files and manifests for tests. Keyword arguments, sane defaults."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import replace
from io import BytesIO
from typing import Any

import fastavro

from committer.iceberg.avro.binary import LONGS
from committer.iceberg.avro.container import encode_container, encode_header, read_header
from committer.iceberg.entry.data_file import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
)
from committer.iceberg.manifest.manifest_writer import (
    ManifestContext,
    encode_manifest,
    manifest_header,
)
from committer.iceberg.schema.bound_forms import bound_forms
from committer.iceberg.schema.partition_spec import (
    PartitionSpec,
    parse_partition_spec,
    partition_type,
)
from committer.iceberg.schema.schema import Schema, parse_schema
from committer.iceberg.splice.manifest_walk import WalkedManifest, walk_additions

SYNC = bytes(range(16))
COLUMN_ID_MAX = 10_000
SCHEMA = parse_schema(
    {
        "type": "struct",
        "schema-id": 3,
        "fields": [
            {"id": 1, "name": "id", "required": True, "type": "long"},
            {"id": 2, "name": "region", "required": False, "type": "string"},
            {"id": 3, "name": "ts", "required": False, "type": "timestamptz"},
            {"id": 4, "name": "score", "required": False, "type": "double"},
        ],
    }
)
REGION_AND_DAY = (
    {"name": "region", "transform": "identity", "source-id": 2, "field-id": 1000},
    {"name": "ts_day", "transform": "day", "source-id": 3, "field-id": 1001},
)
SCORE = ({"name": "score", "transform": "identity", "source-id": 4, "field-id": 1000},)


def added_entry(data_file: DataFile, *, snapshot_id: int | None = None) -> ManifestEntry:
    """Return the entry of a new file: everything that can be inherited is null, so it is final."""
    return ManifestEntry(ManifestEntryStatus.ADDED, snapshot_id, None, None, data_file)


def spec(*fields: dict[str, object], spec_id: int = 0) -> PartitionSpec:
    return parse_partition_spec({"spec-id": spec_id, "fields": list(fields)})


def context(
    *,
    format_version: int = 2,
    fields: Iterable[dict[str, object]] = REGION_AND_DAY,
    content: ManifestContent = ManifestContent.DATA,
    schema: Schema = SCHEMA,
) -> ManifestContext:
    return ManifestContext(format_version, schema, spec(*fields), content)


def data_file(number: int = 0, **changes: object) -> DataFile:
    """Build a file with metrics of four columns; its numbers differ by `number`."""
    count = 100 + number
    file = DataFile(
        file_path=f"s3://bucket/db/t/data/{number:05d}-0d6f8e1c-5b0f-4c0e-9a53-6f1d2b3c4d5e.parquet",
        partition=(f"r{number % 3}", 20454 + number // 10),
        record_count=count,
        file_size_in_bytes=100_000 + number,
        column_sizes={i: 4000 + i * number for i in range(1, 5)},
        value_counts=dict.fromkeys(range(1, 5), count),
        null_value_counts=dict.fromkeys(range(1, 5), number % 7),
        nan_value_counts={4: 0},
        lower_bounds={1: struct.pack("<q", number), 2: b"r", 4: struct.pack("<d", -1.5)},
        upper_bounds={1: struct.pack("<q", number + 1), 2: b"r9", 4: struct.pack("<d", 2.5)},
        split_offsets=(4,),
        sort_order_id=0,
    )
    return replace(file, **changes)  # type: ignore[arg-type]


def delete_file(number: int = 0, **changes: object) -> DataFile:
    """Build a position delete file of format version 2."""
    return data_file(
        number,
        **{
            "content": DataFileContent.POSITION_DELETES,
            "split_offsets": None,
            "sort_order_id": None,
            **changes,
        },
    )


def deletion_vector(number: int = 0, **changes: object) -> DataFile:
    return DataFile(
        content=DataFileContent.POSITION_DELETES,
        file_path=f"s3://bucket/db/t/data/{number}.puffin",
        file_format="PUFFIN",
        partition=("r0", 20454),
        record_count=3,
        file_size_in_bytes=400,
        referenced_data_file=data_file(number).file_path,
        content_offset=4,
        content_size_in_bytes=40 + number,
    )


def manifest(
    *files: DataFile, context: ManifestContext, codec: str = "deflate", sync: bytes = SYNC
) -> bytes:
    """Build a manifest of additions."""
    entries = [added_entry(file) for file in files]
    return encode_manifest(entries, context, codec=codec, sync=sync).content


def manifest_of_raw(
    *blocks: tuple[int, bytes], context: ManifestContext, sync: bytes = SYNC
) -> bytes:
    """Build a manifest whose (uncompressed) blocks are given byte for byte."""
    return encode_container(manifest_header(context, "null", sync), blocks, sync)


def walk(content: bytes, context: ManifestContext) -> WalkedManifest:
    """Walk as for a table with the manifest's schema only, of which many columns were dropped."""
    kind = partition_type(context.spec, context.schema)
    forms = bound_forms((), context.schema, COLUMN_ID_MAX)
    return walk_additions(content, kind, context.format_version, context.content, forms=forms)


def foreign_manifest(
    content: bytes, *, codec: str = "deflate", entries_per_block: int = 0, drop: int = 0
) -> bytes:
    """Write a manifest of ours again as a foreign library would: maps without sizes, its own sync
    marker, and without the data file field `drop`."""
    reader = fastavro.reader(BytesIO(content))
    schema, records = reader.writer_schema, list(reader)
    if drop:
        file = next(f["type"] for f in schema["fields"] if f["field-id"] == 2)
        file["fields"] = [field for field in file["fields"] if field["field-id"] != drop]
    kept = {
        key: value.decode()
        for key, value in read_header(content).metadata.items()
        if not key.startswith("avro.")
    }
    out = BytesIO()
    interval = 64_000 if not entries_per_block else 1
    fastavro.writer(out, schema, records, codec=codec, metadata=kept, sync_interval=interval)
    return out.getvalue()


def header_with(content: bytes, /, **changes: bytes | None) -> bytes:
    """Return the same blocks behind a changed header; None removes a key."""
    header = read_header(content)
    metadata = {**header.metadata, **changes}
    kept = {key: value for key, value in metadata.items() if value is not None}
    return encode_header(kept, header.sync) + content[header.end_offset :]


def long(value: int) -> bytes:
    return LONGS[value]


def entries(*files: DataFile) -> list[ManifestEntry]:
    return [added_entry(file) for file in files]


MAPS = (
    "column_sizes",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
)


def as_text(entries: Iterable[ManifestEntry]) -> str:
    """Return equal text for equal entries, whatever the order of the pairs in their maps. As text,
    because NaN is not equal to itself, and 0.0 is equal to -0.0.
    """
    return repr([replace(entry, data_file=_in_order(entry.data_file)) for entry in entries])


def _in_order(file: DataFile) -> DataFile:
    maps = {name: getattr(file, name) for name in MAPS}
    ordered: dict[str, Any] = {
        name: dict(sorted(pairs.items())) for name, pairs in maps.items() if pairs
    }
    return replace(file, **ordered)
