"""Builders of table metadata for tests. Keyword arguments, sane defaults, no clock, no chance."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

import orjson

from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.metadata.new_table import new_table_metadata
from committer.iceberg.metadata.snapshot import MAIN, Snapshot, SnapshotRef
from committer.iceberg.metadata.table_metadata import (
    parse_table_metadata_json,
    print_table_metadata,
)
from committer.iceberg.metadata.table_statistics import StatisticsFile
from committer.iceberg.schema.partition_spec import UNPARTITIONED, PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.sort_order import UNSORTED, SortOrder
from committer.iceberg.updates.metadata_update import (
    AddSnapshot,
    SetSnapshotRef,
    Update,
    apply_updates,
)
from committer.iceberg.values.types import LongType, NestedField, StringType

TABLE_UUID = UUID("4ee28668-b42f-46d5-9e75-6a0527ca6e9a")
START_MS = 1_700_000_000_000
MINUTE_MS = 60_000
SCHEMA = Schema(
    (
        NestedField(1, "id", LongType(), required=False),
        NestedField(2, "name", StringType(), required=False),
    )
)


def build_table(
    *,
    format_version: int = 2,
    schema: Schema = SCHEMA,
    partition_spec: PartitionSpec = UNPARTITIONED,
    sort_order: SortOrder = UNSORTED,
    properties: Mapping[str, str] | None = None,
    location: str = "s3://lake/db/flights",
    now_ms: int = START_MS,
) -> TableMetadata:
    """Build a table without snapshots."""
    return new_table_metadata(
        table_uuid=TABLE_UUID,
        location=location,
        schema=schema,
        partition_spec=partition_spec,
        sort_order=sort_order,
        properties=properties or {},
        format_version=format_version,
        now_ms=now_ms,
    )


def build_snapshot(
    base: TableMetadata,
    *,
    snapshot_id: int,
    parent: int | None = None,
    timestamp_ms: int | None = None,
    added_rows: int = 10,
    sequence_number: int | None = None,
    first_row_id: int | None = None,
) -> Snapshot:
    """Build the next snapshot of a table, with the numbers that its format version wants."""
    number = base.last_sequence_number + 1 if sequence_number is None else sequence_number
    lineage = base.format_version >= 3
    first = base.next_row_id if first_row_id is None else first_row_id
    return Snapshot(
        snapshot_id=snapshot_id,
        parent_snapshot_id=parent,
        sequence_number=0 if base.format_version == 1 else number,
        timestamp_ms=base.last_updated_ms if timestamp_ms is None else timestamp_ms,
        manifest_list=f"{base.location}/metadata/snap-{snapshot_id}-1-x.avro",
        summary={"operation": "append", "total-records": "10"},
        schema_id=base.current_schema_id,
        first_row_id=first if lineage else None,
        added_rows=added_rows if lineage else None,
    )


def append(
    base: TableMetadata,
    *,
    snapshot_id: int,
    branch: str = MAIN,
    timestamp_ms: int | None = None,
    now_ms: int | None = None,
    base_location: str | None = None,
    further: tuple[Update, ...] = (),
) -> TableMetadata:
    """Return the table after one commit to a branch."""
    head = base.branch_head(branch)
    parent = None if head is None else head.snapshot_id
    snapshot = build_snapshot(
        base, snapshot_id=snapshot_id, parent=parent, timestamp_ms=timestamp_ms
    )
    updates = (AddSnapshot(snapshot), SetSnapshotRef(branch, SnapshotRef(snapshot_id)), *further)
    return apply_updates(
        base,
        updates,
        base_location=base_location,
        now_ms=snapshot.timestamp_ms if now_ms is None else now_ms,
    )


def build_history(count: int, *, format_version: int = 2) -> TableMetadata:
    """Build a table with so many snapshots on main, ids from 1."""
    table = build_table(format_version=format_version)
    for snapshot_id in range(1, count + 1):
        table = append(table, snapshot_id=snapshot_id, timestamp_ms=START_MS + snapshot_id)
    return table


def build_statistics(snapshot_id: int, path: str = "s") -> StatisticsFile:
    """Build table statistics of a snapshot, with all that readers require."""
    blob = {
        "type": "apache-datasketches-theta-v1",
        "snapshot-id": snapshot_id,
        "sequence-number": 1,
        "fields": [1],
    }
    return StatisticsFile(
        snapshot_id, path, 70, {"file-footer-size-in-bytes": 30, "blob-metadata": [blob]}
    )


def as_json(metadata: TableMetadata) -> dict[str, object]:
    """Return the metadata file as JSON values."""
    found: dict[str, object] = orjson.loads(print_table_metadata(metadata))
    return found


def read_back(json_value: Mapping[str, object]) -> TableMetadata:
    """Return metadata through its JSON form, as a file holds it."""
    return parse_table_metadata_json(orjson.loads(orjson.dumps(json_value)))
