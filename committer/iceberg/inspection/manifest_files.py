"""The manifests of snapshots: found by the bytes that the caller reads, and described as rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, repeat

from committer.iceberg.inspection.values import Row, bound_describer
from committer.iceberg.manifest.manifest_list import ManifestFile, PartitionFieldSummary
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.scan.snapshot_manifests import Read, snapshot_manifests
from committer.iceberg.schema.partition_spec import partition_type
from committer.iceberg.values.types import IcebergType


def manifest_rows(metadata: TableMetadata, manifests: Iterable[ManifestFile]) -> Iterator[Row]:
    """Describe rows of manifest lists; bounds of partitions have the types of the table's specs."""
    return (manifest_row(row, _partition_types(metadata, row)) for row in manifests)


def all_manifest_rows(metadata: TableMetadata, read: Read) -> Iterator[Row]:
    """Yield the manifests of every snapshot, each as often as a list names it."""
    for snapshot in metadata.snapshots:
        for row in snapshot_manifests(snapshot, read):
            described = manifest_row(row, _partition_types(metadata, row))
            yield described | {"reference_snapshot_id": snapshot.snapshot_id}


def manifest_row(
    row: ManifestFile, partition_types: Iterable[IcebergType | None] = repeat(None)
) -> Row:
    """Describe a row of a manifest list.
    Without the types of its partition fields bounds stay as stored."""
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
    """Yield the types of the fields of its spec, then None for any further summaries."""
    spec = metadata.spec_by_id(row.partition_spec_id)
    fields = partition_type(spec, metadata.current_schema).fields
    return chain((field.field_type for field in fields), repeat(None))


def _summary(kind: IcebergType | None, summary: PartitionFieldSummary) -> Row:
    """Describe a summary, bounds decoded where there are any."""
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
