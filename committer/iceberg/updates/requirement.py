"""The REST model's requirements, as values: conditions that a change is applied under.

Source: docs/reference/iceberg-notes.md 9.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from committer.iceberg.metadata.metadata_model import TableMetadata


@dataclass(frozen=True, slots=True)
class AssertCreate:
    """The table does not exist."""


@dataclass(frozen=True, slots=True)
class AssertTableUUID:
    """The table is this very one."""

    uuid: UUID


@dataclass(frozen=True, slots=True)
class AssertRefSnapshotId:
    """The ref names this snapshot; None: there is no such ref."""

    ref: str
    snapshot_id: int | None


@dataclass(frozen=True, slots=True)
class AssertLastAssignedFieldId:
    """No column id was given since."""

    last_assigned_field_id: int


@dataclass(frozen=True, slots=True)
class AssertCurrentSchemaId:
    """The current schema is still this one."""

    current_schema_id: int


@dataclass(frozen=True, slots=True)
class AssertLastAssignedPartitionId:
    """No partition field id was given since."""

    last_assigned_partition_id: int


@dataclass(frozen=True, slots=True)
class AssertDefaultSpecId:
    """The default partition spec is still this one."""

    default_spec_id: int


@dataclass(frozen=True, slots=True)
class AssertDefaultSortOrderId:
    """The default sort order is still this one."""

    default_sort_order_id: int


Requirement = (
    AssertCreate
    | AssertTableUUID
    | AssertRefSnapshotId
    | AssertLastAssignedFieldId
    | AssertCurrentSchemaId
    | AssertLastAssignedPartitionId
    | AssertDefaultSpecId
    | AssertDefaultSortOrderId
)


def failed_requirement(requirement: Requirement, metadata: TableMetadata | None) -> str | None:
    """Return why a requirement does not hold for a table (None: there is none); None if it does."""
    if metadata is None:
        return None if isinstance(requirement, AssertCreate) else "the table does not exist"
    match requirement:
        case AssertCreate():
            return "the table exists already"
        case AssertTableUUID(uuid):
            return _differs("table uuid", uuid, metadata.table_uuid)
        case AssertRefSnapshotId(name, snapshot_id):
            ref = metadata.refs.get(name)
            return _differs(f"ref `{name}`", snapshot_id, None if ref is None else ref.snapshot_id)
        case AssertLastAssignedFieldId(field_id):
            return _differs("last assigned field id", field_id, metadata.last_column_id)
        case AssertCurrentSchemaId(schema_id):
            return _differs("current schema id", schema_id, metadata.current_schema_id)
        case AssertLastAssignedPartitionId(partition_id):
            return _differs("last assigned partition id", partition_id, metadata.last_partition_id)
        case AssertDefaultSpecId(spec_id):
            return _differs("default spec id", spec_id, metadata.default_spec_id)
        case AssertDefaultSortOrderId(order_id):
            return _differs("default sort order id", order_id, metadata.default_sort_order_id)


def _differs(what: str, expected: object, found: object) -> str | None:
    if expected == found:
        return None
    return f"{what}: expected {_named(expected)}, found {_named(found)}"


def _named(value: object) -> str:
    return "none" if value is None else str(value)
