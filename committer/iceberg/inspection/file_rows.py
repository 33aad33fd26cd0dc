"""Rows of files: those that a snapshot consists of, and the entries of manifests as they stand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from committer.iceberg.entry.data_file import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
)
from committer.iceberg.inspection.values import (
    BoundDescriber,
    Row,
    bound_describers,
    describe_bounds,
    describe_partition,
)
from committer.iceberg.manifest.manifest import DecodedManifest, decode_manifest
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.scan.snapshot_manifests import Read
from committer.iceberg.schema.partition_spec import PartitionSpec, partition_path, partition_type
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.types import StructType


@dataclass(frozen=True, slots=True)
class FoundEntry:
    """An entry with its inherited ids, and how its partition and its columns' bounds are read."""

    entry: ManifestEntry
    spec: PartitionSpec
    schema: Schema
    partition_type: StructType
    bounds: Mapping[int, BoundDescriber]


def entries(
    manifests: Iterable[ManifestFile], read: Read, current_schema: Schema
) -> Iterator[FoundEntry]:
    """Yield the entries of manifests, deleted ones too, one manifest in memory at a time.

    Columns have the type of the current schema, removed ones that of their manifest's.
    """
    for row in manifests:
        decoded = decode_manifest(read(row.manifest_path), manifest_file=row)
        yield from found_entries(decoded, current_schema)


def found_entries(decoded: DecodedManifest, current_schema: Schema) -> Iterator[FoundEntry]:
    """Return the entries of one manifest."""
    schema, spec = decoded.schema, decoded.spec
    kind, bounds = partition_type(spec, schema), bound_describers(schema, current_schema)
    return (FoundEntry(entry, spec, schema, kind, bounds) for entry in decoded.entries)


def live_entries(
    manifests: Iterable[ManifestFile],
    read: Read,
    current_schema: Schema,
    content: ManifestContent | None = None,
) -> Iterator[FoundEntry]:
    """Read the live entries of manifests, all or those of one content, and no other manifest."""
    wanted = (row for row in manifests if row.has_live_files and content in (None, row.content))
    return (found for found in entries(wanted, read, current_schema) if found.entry.is_live)


def entry_row(found: FoundEntry) -> Row:
    """Describe an entry; its file without metrics."""
    entry = found.entry
    return {
        "status": int(entry.status),
        "snapshot_id": entry.snapshot_id,
        "data_sequence_number": entry.sequence_number,
        "file_sequence_number": entry.file_sequence_number,
        "file": {**_identity(found), **_key(entry.data_file), **_tracking(entry)},
    }


def file_row(found: FoundEntry) -> Row:
    """Describe a file with its metrics by field id."""
    file = found.entry.data_file
    return {
        **_identity(found),
        "column_sizes": _counts(file.column_sizes),
        "value_counts": _counts(file.value_counts),
        "null_value_counts": _counts(file.null_value_counts),
        "nan_value_counts": _counts(file.nan_value_counts),
        "lower_bounds": describe_bounds(file.lower_bounds, found.bounds),
        "upper_bounds": describe_bounds(file.upper_bounds, found.bounds),
        **_key(file),
        "split_offsets": _list(file.split_offsets),
        **_tracking(found.entry),
    }


def file_order(row: Row) -> tuple[bool, str]:
    """Return a key that sorts data files before delete files, each by path;
    a deletion vector also by its offset."""
    offset = row.get("content_offset")
    path = str(row["file_path"])
    return row["content"] != DataFileContent.DATA, path if offset is None else f"{path}#{offset}"


def _identity(found: FoundEntry) -> Row:
    file = found.entry.data_file
    return {
        "content": int(file.content),
        "file_path": file.file_path,
        "file_format": file.file_format,
        "spec_id": file.spec_id,
        "partition": describe_partition(found.partition_type, file.partition),
        "partition_path": partition_path(found.spec, found.schema, file.partition),
        "record_count": file.record_count,
        "file_size_in_bytes": file.file_size_in_bytes,
    }


def _key(file: DataFile) -> Row:
    return {"key_metadata": None if file.key_metadata is None else file.key_metadata.hex()}


def _tracking(entry: ManifestEntry) -> Row:
    file = entry.data_file
    row: Row = {
        "equality_ids": _list(file.equality_ids),
        "sort_order_id": file.sort_order_id,
        "first_row_id": file.first_row_id,
        "data_sequence_number": entry.sequence_number,
        "file_sequence_number": entry.file_sequence_number,
    }
    if file.content == DataFileContent.DATA:
        return row
    return row | {
        "referenced_data_file": file.referenced_data_file,
        "content_offset": file.content_offset,
        "content_size_in_bytes": file.content_size_in_bytes,
    }


def _counts(counts: Mapping[int, int] | None) -> Row | None:
    return None if counts is None else {str(field_id): count for field_id, count in counts.items()}


def _list(numbers: tuple[int, ...] | None) -> list[int] | None:
    return None if numbers is None else list(numbers)
