"""Manifest lists as writers of version 1 may leave them: without counts."""

from __future__ import annotations

from dataclasses import replace

from committer.iceberg.manifest.manifest_list import (
    ManifestFile,
    encode_manifest_file,
    encode_manifest_list,
)
from committer.plan.ledger.state import TableState
from tests.support.plan.committing import Table


def forget_counts(table: Table) -> None:
    """Write the list of the head of a version 1 table anew without counts, and load the table as a
    new process."""
    head = table.table.metadata.branch_head()
    assert head is not None and head.manifest_list is not None
    rows = [_without_counts(row) for row in table.manifest_list(head).rows]
    table.objects[head.manifest_list] = encode_manifest_list(
        [encode_manifest_file(row, 1) for row in rows],
        format_version=1,
        snapshot_id=head.snapshot_id,
        parent_snapshot_id=head.parent_snapshot_id,
        sequence_number=0,
        first_row_id=None,
        sync=bytes(16),
        extra_metadata={},
    )
    table.state = TableState.of(table.table)


def _without_counts(row: ManifestFile) -> ManifestFile:
    return replace(
        row,
        added_files_count=None,
        existing_files_count=None,
        deleted_files_count=None,
        added_rows_count=None,
        existing_rows_count=None,
        deleted_rows_count=None,
    )
