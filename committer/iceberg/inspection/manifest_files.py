"""The manifests of snapshots: found by the bytes that the caller reads, and described as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, repeat

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.iceberg.avro_container import read_header
from committer.iceberg.inspection.values import Row, bound_describer
from committer.iceberg.manifest import manifest_spec
from committer.iceberg.manifest_list import (
    ManifestFile,
    PartitionFieldSummary,
    decode_manifest_list,
)
from committer.iceberg.partition_spec import partition_type
from committer.iceberg.snapshot import Snapshot
from committer.iceberg.table_metadata import TableMetadata
from committer.iceberg.types import IcebergType

# Gives the bytes at a location of the metadata, and raises what the storage raises.
Read = Callable[[str], bytes]


def snapshot_manifests(snapshot: Snapshot | None, read: Read) -> Iterator[ManifestFile]:
    """The rows of a snapshot's manifest list, in its order; none for a table without a snapshot.

    An old version 1 snapshot names its manifests itself. Their rows know neither counts nor
    partitions, and the snapshot that added them is taken to be this one, as in the reference.
    """
    if snapshot is None:
        return
    if snapshot.manifest_list is not None:
        content = read(snapshot.manifest_list)
        try:
            rows = decode_manifest_list(content).rows
        except (InvalidMetadataError, UnsupportedError) as error:
            raise type(error)(f"{snapshot.manifest_list}: {error}") from error
        yield from rows
        return
    for path in snapshot.manifests or ():
        content = read(path)
        yield ManifestFile(
            manifest_path=path,
            manifest_length=len(content),
            partition_spec_id=manifest_spec(read_header(content)).spec_id,
            added_snapshot_id=snapshot.snapshot_id,
            added_files_count=None,
            existing_files_count=None,
            deleted_files_count=None,
            added_rows_count=None,
            existing_rows_count=None,
            deleted_rows_count=None,
        )


def all_manifests(metadata: TableMetadata, read: Read) -> Iterator[ManifestFile]:
    """Each manifest that any snapshot has, once: with its row in the oldest list that names it."""
    seen: set[str] = set()
    for snapshot in metadata.snapshots:
        for row in snapshot_manifests(snapshot, read):
            if row.manifest_path not in seen:
                seen.add(row.manifest_path)
                yield row


def manifest_rows(metadata: TableMetadata, manifests: Iterable[ManifestFile]) -> Iterator[Row]:
    """Rows of manifest lists; bounds of partitions have the types of the table's specs."""
    return (manifest_row(row, _partition_types(metadata, row)) for row in manifests)


def all_manifest_rows(metadata: TableMetadata, read: Read) -> Iterator[Row]:
    """The manifests of every snapshot, each as often as a list names it."""
    for snapshot in metadata.snapshots:
        for row in snapshot_manifests(snapshot, read):
            described = manifest_row(row, _partition_types(metadata, row))
            yield described | {"reference_snapshot_id": snapshot.snapshot_id}


def manifest_row(
    row: ManifestFile, partition_types: Iterable[IcebergType | None] = repeat(None)
) -> Row:
    """A row of a manifest list. Without the types of its partition fields bounds stay as stored."""
    described: Row = {
        "manifest_path": row.manifest_path,
        "manifest_length": row.manifest_length,
        "partition_spec_id": row.partition_spec_id,
        "content": int(row.content),
        "sequence_number": row.sequence_number,
        "min_sequence_number": row.min_sequence_number,
        "added_snapshot_id": row.added_snapshot_id,
        "added_files_count": row.added_files_count,
        "existing_files_count": row.existing_files_count,
        "deleted_files_count": row.deleted_files_count,
        "added_rows_count": row.added_rows_count,
        "existing_rows_count": row.existing_rows_count,
        "deleted_rows_count": row.deleted_rows_count,
        "first_row_id": row.first_row_id,
        "key_metadata": None if row.key_metadata is None else row.key_metadata.hex(),
    }
    if row.partitions is not None:
        described["partitions"] = list(map(_summary, partition_types, row.partitions))
    return described


def _partition_types(metadata: TableMetadata, row: ManifestFile) -> Iterator[IcebergType | None]:
    """Of the fields of its spec; should there be more summaries, nobody knows their types."""
    spec = metadata.spec_by_id(row.partition_spec_id)
    fields = partition_type(spec, metadata.current_schema).fields
    return chain((field.field_type for field in fields), repeat(None))


def _summary(kind: IcebergType | None, summary: PartitionFieldSummary) -> Row:
    """Bounds decoded where there are any."""
    lower, upper = summary.lower_bound, summary.upper_bound
    row: Row = {
        "contains_null": summary.contains_null,
        "contains_nan": summary.contains_nan,
        "lower_hex": None if lower is None else lower.hex(),
        "upper_hex": None if upper is None else upper.hex(),
    }
    for name, bound in (("lower", lower), ("upper", upper)):
        described = {} if bound is None else bound_describer(kind)(bound)
        if "value" in described:
            row[name] = described["value"]
    return row
