"""Rows that metadata alone answers: snapshots, history, refs and metadata files."""

from __future__ import annotations

from collections.abc import Iterator

from committer.iceberg.inspection.values import Row
from committer.iceberg.metadata.snapshot import Snapshot, print_snapshot_ref
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.scan.time_travel import snapshot_id_as_of


def snapshot_rows(metadata: TableMetadata) -> Iterator[Row]:
    """Return the snapshots that the table still has, in the order of the metadata: oldest first."""
    return map(snapshot_row, metadata.snapshots)


def snapshot_row(snapshot: Snapshot) -> Row:
    """Describe a snapshot; its operation stands beside its summary, as in the reference."""
    summary = snapshot.summary or {}
    return {
        "snapshot_id": snapshot.snapshot_id,
        "parent_id": snapshot.parent_snapshot_id,
        "sequence_number": snapshot.sequence_number,
        "timestamp_ms": snapshot.timestamp_ms,
        "operation": snapshot.operation,
        "schema_id": snapshot.schema_id,
        "first_row_id": snapshot.first_row_id,
        "added_rows": snapshot.added_rows,
        "key_id": snapshot.key_id,
        "manifest_list": snapshot.manifest_list,
        "summary": {key: text for key, text in summary.items() if key != "operation"},
    }


def history_rows(metadata: TableMetadata) -> Iterator[Row]:
    """Yield the snapshot log; `parent_id` is null too for a snapshot that has expired."""
    ancestors = {one.snapshot_id for one in metadata.ancestors(metadata.current_snapshot_id)}
    for entry in metadata.snapshot_log:
        snapshot = metadata.snapshot_by_id(entry.snapshot_id)
        yield {
            "timestamp_ms": entry.timestamp_ms,
            "snapshot_id": entry.snapshot_id,
            "parent_id": None if snapshot is None else snapshot.parent_snapshot_id,
            "is_current_ancestor": entry.snapshot_id in ancestors,
        }


def ref_rows(metadata: TableMetadata) -> Iterator[Row]:
    """Yield branches and tags by name: the name, then the keys of the specification's JSON form."""
    for name, ref in sorted(metadata.refs.items()):
        yield {"name": name, **print_snapshot_ref(ref)}


def metadata_log_rows(metadata: TableMetadata, metadata_location: str) -> Iterator[Row]:
    """Yield the metadata files of the log and, last, the current one.

    `latest_…` are of the snapshot that was current when the file was written: null if there was
    none, and but for the id null too if it has expired.
    """
    files = [(entry.timestamp_ms, entry.metadata_file) for entry in metadata.metadata_log]
    for timestamp_ms, file in (*files, (metadata.last_updated_ms, metadata_location)):
        snapshot_id = snapshot_id_as_of(metadata, timestamp_ms)
        snapshot = None if snapshot_id is None else metadata.snapshot_by_id(snapshot_id)
        yield {
            "timestamp_ms": timestamp_ms,
            "metadata_file": file,
            "latest_snapshot_id": snapshot_id,
            "latest_schema_id": None if snapshot is None else snapshot.schema_id,
            "latest_sequence_number": None if snapshot is None else snapshot.sequence_number,
        }
