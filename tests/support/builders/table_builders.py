"""Tables and swaps for tests of ports and of the service: real metadata, made by the real code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from uuid import UUID, uuid4

from committer.iceberg.metadata.snapshot import MAIN, Snapshot, SnapshotRef
from committer.iceberg.metadata.table_metadata import TableMetadata, new_table_metadata
from committer.iceberg.schema.partition_spec import UNPARTITIONED
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.sort_order import UNSORTED
from committer.iceberg.updates.metadata_update import (
    AddSnapshot,
    SetProperties,
    SetSnapshotRef,
    apply_updates,
)
from committer.iceberg.updates.requirement import AssertTableUUID
from committer.iceberg.values.locations import (
    manifest_list_location,
    metadata_file_location,
    metadata_folder,
    metadata_version,
)
from committer.iceberg.values.types import LongType, NestedField, StringType
from committer.plan.commit.swap import plan_swap
from committer.ports.pointer_swap import LoadedTable, Swap
from committer.request.table_identifier import TableIdentifier

_clock_ms = count(1_700_000_000_000, 1_000)


def build_metadata(
    *,
    location: str,
    properties: Mapping[str, str] | None = None,
    format_version: int = 2,
    table_uuid: UUID | None = None,
) -> TableMetadata:
    """Build the metadata of a table with columns `id` and `name`, without snapshots."""
    fields = (
        NestedField(1, "id", LongType(), required=False),
        NestedField(2, "name", StringType(), required=False),
    )
    return new_table_metadata(
        table_uuid=table_uuid or uuid4(),
        location=location,
        schema=Schema(fields),
        partition_spec=UNPARTITIONED,
        sort_order=UNSORTED,
        properties=properties or {},
        format_version=format_version,
        now_ms=next(_clock_ms),
    )


def build_table(
    name: str = "db.flights",
    *,
    warehouse: str,
    properties: Mapping[str, str] | None = None,
    gzip: bool = False,
    format_version: int = 2,
) -> LoadedTable:
    """Build a table that no catalog knows yet, with the location of its first metadata file."""
    identifier = TableIdentifier.parse(name)
    location = "/".join((warehouse, *identifier.namespace, identifier.name))
    metadata = build_metadata(
        location=location, properties=properties, format_version=format_version
    )
    first = metadata_file_location(
        metadata_folder(location, metadata.properties), 0, uuid4(), gzip=gzip
    )
    return LoadedTable(identifier, metadata, first)


def build_swap(
    base: LoadedTable, *, properties: Mapping[str, str] | None = None, gzip: bool = False
) -> Swap:
    """Build a swap that sets properties."""
    updates = (SetProperties(properties or {"touched": "yes"}),)
    metadata = apply_updates(
        base.metadata, updates, base_location=base.metadata_location, now_ms=next(_clock_ms)
    )
    folder = metadata_folder(metadata.location, metadata.properties)
    version = metadata_version(base.metadata_location) + 1
    return Swap(
        base=base,
        requirements=(AssertTableUUID(base.metadata.require_uuid()),),
        updates=updates,
        metadata=metadata,
        metadata_location=metadata_file_location(folder, version, uuid4(), gzip=gzip),
    )


def build_head_swap(
    base: LoadedTable, *, properties: Mapping[str, str] | None = None, gzip: bool = False
) -> Swap:
    """Build a swap that sets properties and moves `main`, as every commit does: to a snapshot whose
    manifest list is nowhere.
    """
    metadata = base.metadata
    snapshot_id, commit_uuid = uuid4().int >> 66, uuid4()
    folder = metadata_folder(metadata.location, metadata.properties)
    head = metadata.current_snapshot
    snapshot = Snapshot(
        snapshot_id=snapshot_id,
        parent_snapshot_id=None if head is None else head.snapshot_id,
        sequence_number=metadata.last_sequence_number + 1 if metadata.format_version > 1 else 0,
        timestamp_ms=max(next(_clock_ms), metadata.last_updated_ms),
        manifest_list=manifest_list_location(folder, snapshot_id, 1, commit_uuid),
        summary={"operation": "append"},
        schema_id=metadata.current_schema_id,
    )
    updates = (
        AddSnapshot(snapshot),
        SetSnapshotRef(MAIN, SnapshotRef(snapshot_id, "branch")),
        SetProperties(properties or {"touched": "yes"}),
    )
    swap = plan_swap(base, updates, uuid=uuid4(), now_ms=next(_clock_ms))
    if not gzip:
        return swap
    version = metadata_version(base.metadata_location) + 1
    location = metadata_file_location(folder, version, uuid4(), gzip=True)
    return replace(swap, metadata_location=location)
