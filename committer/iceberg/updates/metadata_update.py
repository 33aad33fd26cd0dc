"""Changes of a table as values (the REST model's updates), and their fold into new metadata.

How each change acts on a table lives in `metadata_builder.py`, the JSON form in
`metadata_update_json.py`. Source: docs/reference/iceberg-notes.md 4.3, 9.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.metadata.snapshot import Snapshot, SnapshotRef
from committer.iceberg.metadata.table_statistics import EncryptedKey, StatisticsFile
from committer.iceberg.schema.partition_spec import PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.sort_order import SortOrder
from committer.iceberg.updates.metadata_builder import MetadataBuilder

LAST_ADDED = -1


@dataclass(frozen=True, slots=True)
class AssignUUID:
    """Give the table its identity."""

    uuid: UUID


@dataclass(frozen=True, slots=True)
class UpgradeFormatVersion:
    """Never down."""

    format_version: int


@dataclass(frozen=True, slots=True)
class AddSchema:
    """Add a schema; an equal one is found again. Its id is given by the table.

    `last_column_id` is for old REST servers, which do not compute it.
    """

    schema: Schema
    last_column_id: int | None = None


@dataclass(frozen=True, slots=True)
class SetCurrentSchema:
    """`LAST_ADDED`: the schema that was added in the same change."""

    schema_id: int


@dataclass(frozen=True, slots=True)
class AddPartitionSpec:
    """Add a spec; an equivalent one is found again. Its id is given by the table.

    So are the ids of fields that have `NEW_FIELD_ID` (`schema/partition_field_ids.py`).
    """

    spec: PartitionSpec


@dataclass(frozen=True, slots=True)
class SetDefaultPartitionSpec:
    """`LAST_ADDED`: the spec that was added in the same change."""

    spec_id: int


@dataclass(frozen=True, slots=True)
class AddSortOrder:
    """Add an order; an equal one is found again. Its id is given by the table."""

    sort_order: SortOrder


@dataclass(frozen=True, slots=True)
class SetDefaultSortOrder:
    """`LAST_ADDED`: the order that was added in the same change."""

    sort_order_id: int


@dataclass(frozen=True, slots=True)
class AddSnapshot:
    """Add a snapshot that no ref names yet."""

    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class SetSnapshotRef:
    """Create or move a branch or tag, or change its retention."""

    ref_name: str
    ref: SnapshotRef


@dataclass(frozen=True, slots=True)
class RemoveSnapshots:
    """Remove snapshots with their statistics and the refs to them. Unknown ids are ignored."""

    snapshot_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RemoveSnapshotRef:
    """Remove a branch or tag; without `main` the table has no current snapshot."""

    ref_name: str


@dataclass(frozen=True, slots=True)
class SetLocation:
    """Sets the place of the table's new files; old files stay."""

    location: str


@dataclass(frozen=True, slots=True)
class SetProperties:
    """Set table properties, other than reserved ones."""

    updates: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RemoveProperties:
    """Remove table properties. Unknown keys are ignored."""

    removals: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SetStatistics:
    """Set the statistics file of a snapshot."""

    statistics: StatisticsFile


@dataclass(frozen=True, slots=True)
class RemoveStatistics:
    """Forget the statistics file of a snapshot."""

    snapshot_id: int


@dataclass(frozen=True, slots=True)
class SetPartitionStatistics:
    """Set the partition statistics file of a snapshot."""

    partition_statistics: StatisticsFile


@dataclass(frozen=True, slots=True)
class RemovePartitionStatistics:
    """Forget the partition statistics file of a snapshot."""

    snapshot_id: int


@dataclass(frozen=True, slots=True)
class RemovePartitionSpecs:
    """Remove specs other than the default one. Unknown ids are ignored."""

    spec_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RemoveSchemas:
    """Remove schemas other than the current one. Unknown ids are ignored."""

    schema_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AddEncryptionKey:
    """Add a key (format version 3)."""

    encryption_key: EncryptedKey


@dataclass(frozen=True, slots=True)
class RemoveEncryptionKey:
    """Remove a key. An unknown id is ignored."""

    key_id: str


LayoutUpdate = (
    AddSchema
    | SetCurrentSchema
    | AddPartitionSpec
    | SetDefaultPartitionSpec
    | AddSortOrder
    | SetDefaultSortOrder
    | RemovePartitionSpecs
    | RemoveSchemas
)
StatisticsUpdate = (
    SetStatistics | RemoveStatistics | SetPartitionStatistics | RemovePartitionStatistics
)
Update = (
    AssignUUID
    | UpgradeFormatVersion
    | AddSnapshot
    | SetSnapshotRef
    | RemoveSnapshots
    | RemoveSnapshotRef
    | SetLocation
    | SetProperties
    | RemoveProperties
    | AddEncryptionKey
    | RemoveEncryptionKey
    | LayoutUpdate
    | StatisticsUpdate
)


def apply_updates(
    base: TableMetadata, updates: Iterable[Update], *, base_location: str | None, now_ms: int
) -> TableMetadata:
    """Fold changes into a table; the base itself if they change nothing.

    `base_location` is the file that the base was read from, None for a table without a file; it is
    added to the metadata log. Times never run backwards, even if `now_ms` does. Errors:
    `InvalidMetadataError` for a change that does not fit the base.
    """
    builder = MetadataBuilder(base, now_ms)
    for update in updates:
        _apply(builder, update)
    return builder.build(base_location)


def _apply(builder: MetadataBuilder, update: Update) -> None:
    match update:
        case AddSnapshot(snapshot):
            builder.add_snapshot(snapshot)
        case SetSnapshotRef(name, ref):
            builder.set_ref(name, ref)
        case SetProperties(updates):
            builder.set_properties(updates)
        case RemoveProperties(removals):
            builder.remove_properties(removals)
        case RemoveSnapshots(snapshot_ids):
            builder.remove_snapshots(snapshot_ids)
        case RemoveSnapshotRef(name):
            builder.remove_ref(name)
        case SetLocation(location):
            builder.set_location(location)
        case AssignUUID(uuid):
            builder.assign_uuid(uuid)
        case UpgradeFormatVersion(format_version):
            builder.upgrade_format_version(format_version)
        case AddEncryptionKey(key):
            builder.add_encryption_key(key)
        case RemoveEncryptionKey(key_id):
            builder.remove_encryption_key(key_id)
        case _:
            _apply_to_layout_or_statistics(builder, update)


def _apply_to_layout_or_statistics(
    builder: MetadataBuilder, update: LayoutUpdate | StatisticsUpdate
) -> None:
    match update:
        case AddSchema(schema, last_column_id):
            builder.layout.add_schema(schema, last_column_id)
        case SetCurrentSchema(schema_id):
            builder.layout.set_current_schema(None if schema_id == LAST_ADDED else schema_id)
        case AddPartitionSpec(spec):
            builder.layout.add_spec(spec)
        case SetDefaultPartitionSpec(spec_id):
            builder.layout.set_default_spec(None if spec_id == LAST_ADDED else spec_id)
        case AddSortOrder(order):
            builder.layout.add_sort_order(order)
        case SetDefaultSortOrder(order_id):
            builder.layout.set_default_sort_order(None if order_id == LAST_ADDED else order_id)
        case RemovePartitionSpecs(spec_ids):
            builder.layout.remove_specs(spec_ids)
        case RemoveSchemas(schema_ids):
            builder.layout.remove_schemas(schema_ids)
        case SetStatistics(statistics):
            builder.set_statistics(statistics)
        case RemoveStatistics(snapshot_id):
            builder.remove_statistics(snapshot_id)
        case SetPartitionStatistics(statistics):
            builder.set_partition_statistics(statistics)
        case RemovePartitionStatistics(snapshot_id):
            builder.remove_partition_statistics(snapshot_id)
