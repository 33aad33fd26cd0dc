"""Finds the snapshot that a reader asks for, and the schema to read it with.

Source: the specification, "Point in Time Reads (Time Travel)"; a branch is read with the table's
current schema, everything older with the schema of its snapshot, as the reference does.
"""

from __future__ import annotations

from committer.errors import NotFoundError
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.calendar import print_instant


def find_snapshot(
    metadata: TableMetadata,
    *,
    snapshot_id: int | None = None,
    ref: str | None = None,
    as_of_ms: int | None = None,
) -> Snapshot | None:
    """Find a snapshot by one of its id, a branch or tag, or a time (ms, UTC).

    Without any it is the current one: None for a table that has none.
    Errors: `NotFoundError` if there is no such snapshot; `ValueError` for more than one question.
    """
    if sum(asked is not None for asked in (snapshot_id, ref, as_of_ms)) > 1:
        raise ValueError("expected at most one of a snapshot id, a ref and a time")
    if snapshot_id is not None:
        return _found(metadata.snapshot_by_id(snapshot_id), f"snapshot {snapshot_id}")
    if ref is not None:
        return _found(metadata.branch_head(ref), f"branch or tag `{ref}`")
    if as_of_ms is not None:
        return _found(
            snapshot_as_of(metadata, as_of_ms), f"snapshot as old as {print_instant(as_of_ms)}"
        )
    return metadata.current_snapshot


def snapshot_as_of(metadata: TableMetadata, time_ms: int) -> Snapshot | None:
    """Return the snapshot current at a time, by the snapshot log; None before the first."""
    current = snapshot_id_as_of(metadata, time_ms)
    return None if current is None else metadata.snapshot_by_id(current)


def snapshot_id_as_of(metadata: TableMetadata, time_ms: int) -> int | None:
    """Return the id of the snapshot current at a time, which may have expired since.
    Of entries of one millisecond the last counts."""
    log = reversed(metadata.snapshot_log)
    return next((entry.snapshot_id for entry in log if entry.timestamp_ms <= time_ms), None)


def scan_schema(
    metadata: TableMetadata, snapshot: Snapshot | None, *, ref: str | None = None
) -> Schema:
    """Return the schema that a snapshot is read with.
    `ref`: the branch or tag that it was found by."""
    found_by = None if ref is None else metadata.refs.get(ref)
    is_branch = found_by is not None and found_by.type == "branch"
    if is_branch or snapshot is None or snapshot.snapshot_id == metadata.current_snapshot_id:
        return metadata.current_schema
    return snapshot_schema(metadata, snapshot)


def snapshot_schema(metadata: TableMetadata, snapshot: Snapshot) -> Schema:
    """Return the schema that a snapshot was written with; the current one for an old snapshot that
    names none."""
    if snapshot.schema_id is None:
        return metadata.current_schema
    return metadata.schema_by_id(snapshot.schema_id)


def _found(snapshot: Snapshot | None, what: str) -> Snapshot:
    if snapshot is None:
        raise NotFoundError(f"the table has no {what}")
    return snapshot
