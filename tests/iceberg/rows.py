"""Rows of manifest lists for tests of scans."""

from __future__ import annotations

from collections.abc import Iterator

from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.scan.snapshot_manifests import snapshot_manifests
from tests.support.builders.fixtures import read_bytes


def rows_of(metadata: TableMetadata) -> Iterator[ManifestFile]:
    """Yield the manifests of the current snapshot of a fixture."""
    return snapshot_manifests(metadata.current_snapshot, read_bytes)


def manifest_row(content: bytes, *, first_row_id: int | None = None) -> ManifestFile:
    """Build the row of a manifest that snapshot 5 added with sequence number 3."""
    return ManifestFile(
        manifest_path="s3://bucket/db/t/metadata/m0.avro",
        manifest_length=len(content),
        partition_spec_id=0,
        sequence_number=3,
        min_sequence_number=3,
        added_snapshot_id=5,
        added_files_count=None,
        existing_files_count=None,
        deleted_files_count=None,
        added_rows_count=None,
        existing_rows_count=None,
        deleted_rows_count=None,
        first_row_id=first_row_id,
    )
