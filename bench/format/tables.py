"""The inputs: manifests and tables of the files of `bench/workload.py`, and metadata of many
snapshots, all as bytes or below a folder of the local disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from uuid import UUID

from bench import workload
from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.manifest.manifest_list import encode_manifest_file, encode_manifest_list
from committer.iceberg.manifest.manifest_writer import (
    EncodedManifest,
    ManifestContext,
    encode_additions,
    manifest_file,
)
from committer.iceberg.metadata.snapshot import Snapshot, SnapshotLogEntry, SnapshotRef
from committer.iceberg.metadata.table_metadata import (
    TableMetadata,
    new_table_metadata,
    print_table_metadata,
)
from committer.iceberg.schema.sort_order import UNSORTED

SYNC = bytes(range(16))
LOCATION = "file:///warehouse/db/t"
FILES_A_MANIFEST = 10_000
FILES_A_SMALL_MANIFEST = 10
_NOW_MS = 1_790_000_000_000
_UUID = UUID("0d6f8e1c-5b0f-4c0e-9a53-6f1d2b3c4d5e")
# More files than these are the same ones again, in further manifests.
_DISTINCT_FILES_MAX = 100_000


def context() -> ManifestContext:
    return ManifestContext(2, workload.schema(), workload.partition_spec())


def files(count: int, start: int = 0) -> list[DataFile]:
    found = workload.descriptors(LOCATION, start, count, max(count // 10, 1))
    attempt = workload.nonce_of(start)
    return [workload.data_file(one, attempt) for one in found]


def manifest(count: int, start: int = 0) -> bytes:
    return encode_additions(files(count, start), context(), sync=SYNC).content


def small_manifests(count: int) -> list[bytes]:
    """Return manifests of ten files each, `count` files in all."""
    found, step = files(count), FILES_A_SMALL_MANIFEST
    groups = (found[start : start + step] for start in range(0, count, step))
    return [encode_additions(group, context(), sync=SYNC).content for group in groups]


def metadata_of(snapshots: int) -> TableMetadata:
    """Return metadata of a table with so many snapshots, each an append."""
    lists = [f"{LOCATION}/metadata/snap-{number}.avro" for number in range(snapshots)]
    return _with_snapshots(_empty(LOCATION), lists)


def one_more(metadata: TableMetadata) -> TableMetadata:
    """Return the metadata after another commit."""
    number = len(metadata.snapshots)
    return _with_snapshots(metadata, [f"{LOCATION}/metadata/snap-{number}.avro"])


def write_table(folder: Path, count: int) -> Path:
    """Write a table of so many files; returns where its metadata file lies."""
    place = folder / "metadata"
    place.mkdir(parents=True)
    rows = []
    for start in range(0, count, FILES_A_MANIFEST):
        path = place / f"{start}-m0.avro"
        number = min(FILES_A_MANIFEST, count - start)
        encoded = _encoded(number, start % _DISTINCT_FILES_MAX)
        path.write_bytes(encoded.content)
        row = manifest_file(
            encoded, context(), manifest_path=f"file://{path}", snapshot_id=1, sequence_number=1
        )
        rows.append(encode_manifest_file(row, 2))
    list_path = place / "snap-1.avro"
    list_path.write_bytes(
        encode_manifest_list(
            rows,
            format_version=2,
            snapshot_id=1,
            parent_snapshot_id=None,
            sequence_number=1,
            first_row_id=None,
            sync=SYNC,
            extra_metadata={},
        )
    )
    metadata = _with_snapshots(_empty(f"file://{folder}"), [f"file://{list_path}"])
    metadata_path = place / "00001-0d6f8e1c-5b0f-4c0e-9a53-6f1d2b3c4d5e.metadata.json"
    metadata_path.write_bytes(print_table_metadata(metadata))
    return metadata_path


def filter_text(count: int) -> str:
    """Return a filter that the last tenth of the files may match, by the bounds of a column."""
    return f"l4 >= {min(count, _DISTINCT_FILES_MAX) * 900}"


@lru_cache(maxsize=_DISTINCT_FILES_MAX // FILES_A_MANIFEST)
def _encoded(count: int, start: int) -> EncodedManifest:
    return encode_additions(files(count, start), context(), sync=SYNC)


def _empty(location: str) -> TableMetadata:
    return new_table_metadata(
        table_uuid=_UUID,
        location=location,
        schema=workload.schema(),
        partition_spec=workload.partition_spec(),
        sort_order=UNSORTED,
        properties={},
        format_version=2,
        now_ms=_NOW_MS,
    )


def _with_snapshots(metadata: TableMetadata, lists: Sequence[str]) -> TableMetadata:
    first = len(metadata.snapshots) + 1
    added = tuple(_snapshot(first + place, path) for place, path in enumerate(lists))
    log = (SnapshotLogEntry(each.timestamp_ms, each.snapshot_id) for each in added)
    last = added[-1]
    return replace(
        metadata,
        last_sequence_number=last.sequence_number,
        last_updated_ms=last.timestamp_ms,
        current_snapshot_id=last.snapshot_id,
        snapshots=(*metadata.snapshots, *added),
        snapshot_log=(*metadata.snapshot_log, *log),
        refs={"main": SnapshotRef(last.snapshot_id)},
    )


def _snapshot(number: int, manifest_list: str) -> Snapshot:
    return Snapshot(
        snapshot_id=number,
        parent_snapshot_id=number - 1 or None,
        sequence_number=number,
        timestamp_ms=_NOW_MS + number,
        manifest_list=manifest_list,
        summary={
            "operation": "append",
            "added-data-files": "10",
            "added-records": "10480",
            "added-files-size": "1048576",
            "total-data-files": str(10 * number),
            "total-records": str(10_480 * number),
            "total-files-size": str(1_048_576 * number),
        },
        schema_id=0,
    )
