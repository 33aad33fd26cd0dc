"""What must hold of a table for a change to apply: the REST model's requirements, as values.

Source: the REST catalog specification, "TableRequirement"; format.md section 12.8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import assert_never
from uuid import UUID

from committer.errors import InvalidMetadataError
from committer.iceberg.snapshot import Reader
from committer.iceberg.table_metadata import TableMetadata


@dataclass(frozen=True, slots=True)
class AssertCreate:
    """The table does not exist yet."""


@dataclass(frozen=True, slots=True)
class AssertTableUUID:
    """The table is the same one, not one created again under its name."""

    uuid: UUID


@dataclass(frozen=True, slots=True)
class AssertRefSnapshotId:
    """A ref points to this snapshot; None: there is no such ref."""

    ref: str
    snapshot_id: int | None


@dataclass(frozen=True, slots=True)
class AssertLastAssignedFieldId:
    last_assigned_field_id: int


@dataclass(frozen=True, slots=True)
class AssertCurrentSchemaId:
    current_schema_id: int


@dataclass(frozen=True, slots=True)
class AssertLastAssignedPartitionId:
    last_assigned_partition_id: int


@dataclass(frozen=True, slots=True)
class AssertDefaultSpecId:
    default_spec_id: int


@dataclass(frozen=True, slots=True)
class AssertDefaultSortOrderId:
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
    """Why a requirement does not hold, as a sentence; None if it does. No table: None."""
    if isinstance(requirement, AssertCreate):
        return None if metadata is None else "the table exists already"
    if metadata is None:
        return "the table does not exist"
    what, expected, found = _compared(requirement, metadata)
    return None if expected == found else f"{what}: expected {expected}, found {found}"


def _compared(requirement: Requirement, metadata: TableMetadata) -> tuple[str, object, object]:
    match requirement:
        case AssertTableUUID(uuid):
            return "table uuid", uuid, metadata.table_uuid
        case AssertRefSnapshotId(name, snapshot_id):
            ref = metadata.refs.get(name)
            return f"snapshot of ref `{name}`", snapshot_id, ref.snapshot_id if ref else None
        case AssertLastAssignedFieldId(field_id):
            return "last assigned field id", field_id, metadata.last_column_id
        case AssertCurrentSchemaId(schema_id):
            return "current schema id", schema_id, metadata.current_schema_id
        case AssertLastAssignedPartitionId(field_id):
            return "last assigned partition id", field_id, metadata.last_partition_id
        case AssertDefaultSpecId(spec_id):
            return "default spec id", spec_id, metadata.default_spec_id
        case AssertDefaultSortOrderId(order_id):
            return "default sort order id", order_id, metadata.default_sort_order_id
        case AssertCreate():
            return "table", None, metadata.table_uuid
        case _:
            assert_never(requirement)


# --- JSON form -----------------------------------------------------------------------------------


def print_requirement(requirement: Requirement) -> dict[str, object]:
    """The JSON form of the REST specification."""
    match requirement:
        case AssertCreate():
            return {"type": "assert-create"}
        case AssertTableUUID(uuid):
            return {"type": "assert-table-uuid", "uuid": str(uuid)}
        case AssertRefSnapshotId(ref, snapshot_id):
            return {"type": "assert-ref-snapshot-id", "ref": ref, "snapshot-id": snapshot_id}
        case _:
            name, key = _INTEGER_KEYS[type(requirement)]
            return {"type": name, key: getattr(requirement, key.replace("-", "_"))}


_INTEGER_KEYS: Mapping[type, tuple[str, str]] = {
    AssertLastAssignedFieldId: ("assert-last-assigned-field-id", "last-assigned-field-id"),
    AssertCurrentSchemaId: ("assert-current-schema-id", "current-schema-id"),
    AssertLastAssignedPartitionId: (
        "assert-last-assigned-partition-id",
        "last-assigned-partition-id",
    ),
    AssertDefaultSpecId: ("assert-default-spec-id", "default-spec-id"),
    AssertDefaultSortOrderId: ("assert-default-sort-order-id", "default-sort-order-id"),
}


def parse_requirement(json_value: object) -> Requirement:
    """Errors: `InvalidMetadataError`, also for an unknown type: it must never be ignored."""
    reader = Reader(json_value, "requirement")
    name = reader.text("type")
    if name not in _PARSERS:
        raise InvalidMetadataError(f"requirement: unknown type `{name}`")
    return _PARSERS[name](reader)


def _parse_uuid(reader: Reader) -> Requirement:
    text = reader.text("uuid")
    try:
        return AssertTableUUID(UUID(text))
    except ValueError:
        raise InvalidMetadataError(f"requirement: not a uuid: `{text}`") from None


_PARSERS: Mapping[str, Callable[[Reader], Requirement]] = {
    "assert-create": lambda reader: AssertCreate(),
    "assert-table-uuid": _parse_uuid,
    "assert-ref-snapshot-id": lambda reader: AssertRefSnapshotId(
        reader.text("ref"), reader.optional_integer("snapshot-id")
    ),
    "assert-last-assigned-field-id": lambda reader: AssertLastAssignedFieldId(
        reader.integer("last-assigned-field-id")
    ),
    "assert-current-schema-id": lambda reader: AssertCurrentSchemaId(
        reader.integer("current-schema-id")
    ),
    "assert-last-assigned-partition-id": lambda reader: AssertLastAssignedPartitionId(
        reader.integer("last-assigned-partition-id")
    ),
    "assert-default-spec-id": lambda reader: AssertDefaultSpecId(reader.integer("default-spec-id")),
    "assert-default-sort-order-id": lambda reader: AssertDefaultSortOrderId(
        reader.integer("default-sort-order-id")
    ),
}
