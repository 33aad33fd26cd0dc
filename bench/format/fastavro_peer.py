"""Plain fastavro's side: an Avro library that knows nothing of Iceberg."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro

from bench.format import tables
from bench.format.measure import Work
from committer.iceberg.avro.container import read_header
from committer.iceberg.entry.data_file import DataFile

_MAPS = (
    "column_sizes",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
)


def encode(size: int, _: Path) -> Work:
    """Encode from the same descriptors, so with the making of its records."""
    files = tables.files(size)
    header = read_header(tables.manifest(1))
    schema = fastavro.parse_schema(json.loads(header.metadata["avro.schema"]))
    kept = {
        key: value.decode() for key, value in header.metadata.items() if not key.startswith("avro.")
    }

    def run(_: None) -> int:
        out = BytesIO()
        records = map(record_of, files)
        fastavro.writer(out, schema, records, codec="deflate", metadata=kept, sync_interval=65_536)
        return len(files)

    return Work(run)


def record_of(file: DataFile) -> dict[str, Any]:
    maps = {
        name: [{"key": key, "value": value} for key, value in getattr(file, name).items()]
        for name in _MAPS
    }
    region, day = file.partition
    return {
        "status": 1,
        "data_file": {
            "content": 0,
            "file_path": file.file_path,
            "file_format": file.file_format,
            "partition": {"region": region, "ts_day": day},
            "record_count": file.record_count,
            "file_size_in_bytes": file.file_size_in_bytes,
            **maps,
            "split_offsets": list(file.split_offsets or ()),
        },
    }


def decode(size: int, _: Path) -> Work:
    content = tables.manifest(size)
    return Work(lambda _: sum(1 for _ in fastavro.reader(BytesIO(content))))


def check(size: int, _: Path) -> Work:
    """Check path, partition and counts, by a reader's schema without the statistics."""
    content = tables.manifest(size)
    schema = json.loads(read_header(content).metadata["avro.schema"])
    file = next(field["type"] for field in schema["fields"] if field["name"] == "data_file")
    file["fields"] = [field for field in file["fields"] if field["name"] not in _MAPS]
    projected = fastavro.parse_schema(schema)

    def run(_: None) -> int:
        reader = fastavro.reader(BytesIO(content), reader_schema=projected)
        return sum(1 for _ in reader)

    return Work(run)


CASES: Mapping[str, Callable[[int, Path], Work]] = {
    "encode": encode,
    "decode": decode,
    "check": check,
}
