"""The REST model's requirements of a change of a table: conditions that it is applied under.

Source: docs/reference/iceberg-notes.md 9.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID


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
    AssertTableUUID
    | AssertRefSnapshotId
    | AssertLastAssignedFieldId
    | AssertCurrentSchemaId
    | AssertLastAssignedPartitionId
    | AssertDefaultSpecId
    | AssertDefaultSortOrderId
)


def print_requirement(requirement: Requirement) -> dict[str, object]:
    """Print the form that REST catalogs take."""
    match requirement:
        case AssertTableUUID(uuid):
            return {"type": "assert-table-uuid", "uuid": str(uuid)}
        case AssertRefSnapshotId(ref, snapshot_id):
            # The null is meant: it says that there must be no such ref.
            return {"type": "assert-ref-snapshot-id", "ref": ref, "snapshot-id": snapshot_id}
        case AssertLastAssignedFieldId(last):
            return {"type": "assert-last-assigned-field-id", "last-assigned-field-id": last}
        case AssertCurrentSchemaId(current):
            return {"type": "assert-current-schema-id", "current-schema-id": current}
        case AssertLastAssignedPartitionId(last):
            return {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": last}
        case AssertDefaultSpecId(default):
            return {"type": "assert-default-spec-id", "default-spec-id": default}
        case AssertDefaultSortOrderId(default):
            return {"type": "assert-default-sort-order-id", "default-sort-order-id": default}
