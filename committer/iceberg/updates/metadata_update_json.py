"""The JSON form of updates, as REST catalogs take and give them.

Source: the REST catalog's OpenAPI description (`TableUpdate`); docs/reference/iceberg-notes.md 9.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar
from uuid import UUID

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.iceberg.metadata.snapshot import (
    parse_snapshot,
    parse_snapshot_ref,
    print_snapshot,
    print_snapshot_ref,
)
from committer.iceberg.metadata.table_statistics import (
    parse_encrypted_key,
    parse_statistics_file,
    print_encrypted_key,
    print_statistics_file,
)
from committer.iceberg.schema.partition_field_ids import NEW_FIELD_ID
from committer.iceberg.schema.partition_spec import (
    PartitionSpec,
    parse_partition_spec,
    print_partition_fields,
)
from committer.iceberg.schema.schema import parse_schema, print_schema
from committer.iceberg.schema.sort_order import parse_sort_order, print_sort_order
from committer.iceberg.updates.metadata_update import (
    AddEncryptionKey,
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    AssignUUID,
    LayoutUpdate,
    RemoveEncryptionKey,
    RemovePartitionSpecs,
    RemovePartitionStatistics,
    RemoveProperties,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    RemoveStatistics,
    SetCurrentSchema,
    SetDefaultPartitionSpec,
    SetDefaultSortOrder,
    SetLocation,
    SetPartitionStatistics,
    SetProperties,
    SetSnapshotRef,
    SetStatistics,
    Update,
    UpgradeFormatVersion,
)
from committer.iceberg.values.json_reader import Reader

_Value = TypeVar("_Value")


# --- Printing ------------------------------------------------------------------------------------


def print_update(update: Update) -> dict[str, object]:
    """Print the form that REST catalogs take."""
    return {"action": _ACTIONS[type(update)], **_details(update)}


def _details(update: Update) -> dict[str, object]:
    match update:
        case AddSnapshot(snapshot):
            return {"snapshot": print_snapshot(snapshot)}
        case SetSnapshotRef(name, ref):
            return {"ref-name": name, **print_snapshot_ref(ref)}
        case SetProperties(updates):
            return {"updates": dict(updates)}
        case RemoveProperties(removals):
            return {"removals": list(removals)}
        case RemoveSnapshots(snapshot_ids):
            return {"snapshot-ids": list(snapshot_ids)}
        case RemoveSnapshotRef(name):
            return {"ref-name": name}
        case AssignUUID(uuid):
            return {"uuid": str(uuid)}
        case UpgradeFormatVersion(format_version):
            return {"format-version": format_version}
        case SetLocation(location):
            return {"location": location}
        case SetStatistics(statistics):
            # The id beside the file is for servers of old.
            printed = print_statistics_file(statistics)
            return {"snapshot-id": statistics.snapshot_id, "statistics": printed}
        case SetPartitionStatistics(statistics):
            return {"partition-statistics": print_statistics_file(statistics)}
        case RemoveStatistics(snapshot_id) | RemovePartitionStatistics(snapshot_id):
            return {"snapshot-id": snapshot_id}
        case AddEncryptionKey(key):
            return {"encryption-key": print_encrypted_key(key)}
        case RemoveEncryptionKey(key_id):
            return {"key-id": key_id}
        case _:
            return _layout_details(update)


def _layout_details(update: LayoutUpdate) -> dict[str, object]:
    match update:
        case AddSchema(schema, last):
            told = {} if last is None else {"last-column-id": last}
            return {"schema": print_schema(schema), **told}
        case SetCurrentSchema(schema_id):
            return {"schema-id": schema_id}
        case AddPartitionSpec(spec):
            return {"spec": _print_spec(spec)}
        case SetDefaultPartitionSpec(spec_id):
            return {"spec-id": spec_id}
        case AddSortOrder(order):
            return {"sort-order": print_sort_order(order)}
        case SetDefaultSortOrder(order_id):
            return {"sort-order-id": order_id}
        case RemovePartitionSpecs(spec_ids):
            return {"spec-ids": list(spec_ids)}
        case RemoveSchemas(schema_ids):
            return {"schema-ids": list(schema_ids)}


def _print_spec(spec: PartitionSpec) -> dict[str, object]:
    """Print a spec without the ids of fields that the table is to number."""
    printed = print_partition_fields(spec)
    for field in printed:
        if field["field-id"] == NEW_FIELD_ID:
            del field["field-id"]
    return {"spec-id": spec.spec_id, "fields": printed}


# --- Reading -------------------------------------------------------------------------------------


def parse_update(json_value: object, *, where: str = "update") -> Update:
    """Read an update of a table. Keys that the action does not have are ignored.

    But for those of a ref: its keys lie beside the action's, and what is not known of them is kept.

    Errors: `UnsupportedError` for an unknown action or one of views, `InvalidMetadataError` for a
    malformed one.
    """
    reader = Reader(json_value, where)
    action = reader.text("action")
    parse = _PARSERS.get(action)
    if action in _VIEW_ACTIONS:
        raise UnsupportedError(f"{where}: `{action}` changes a view, expected a change of a table")
    if parse is None:
        raise UnsupportedError(f"{where}: unknown action `{action[:100]}`")
    return parse(reader)


def _add_spec(reader: Reader) -> AddPartitionSpec:
    spec = reader.take("spec")
    if isinstance(spec, dict):
        # Both ids are optional here: the table gives them.
        spec = {"spec-id": 0, **spec, "fields": _with_new_ids(spec.get("fields"))}
    return AddPartitionSpec(parse_partition_spec(spec, where=_place(reader, "spec")))


def _with_new_ids(fields: object) -> object:
    if not isinstance(fields, list):
        return fields
    numbered = {"field-id": NEW_FIELD_ID}
    return [{**numbered, **field} if isinstance(field, dict) else field for field in fields]


def _set_ref(reader: Reader) -> SetSnapshotRef:
    name = reader.text("ref-name")
    return SetSnapshotRef(name, parse_snapshot_ref(reader.rest, where=_place(reader, "ref")))


def _set_properties(reader: Reader) -> SetProperties:
    updates = reader.optional_text_map(_key(reader, "updates", "updated"))
    if updates is None:
        raise reader.expected("updates", "an object of strings", None)
    return SetProperties(updates)


def _key(reader: Reader, key: str, key_of_old: str) -> str:
    """Return the key that is there: old clients have another one;
    the new one counts if both are."""
    return key_of_old if key not in reader.rest and key_of_old in reader.rest else key


def _assign_uuid(reader: Reader) -> AssignUUID:
    text = reader.text("uuid")
    try:
        return AssignUUID(UUID(text))
    except ValueError as error:
        raise InvalidMetadataError(
            f"{_place(reader, 'uuid')}: expected a uuid, found `{text[:100]}`"
        ) from error


def _place(reader: Reader, key: str) -> str:
    return f"{reader.where}: `{key}`"


def _nested(reader: Reader, key: str, parse: Callable[..., _Value]) -> _Value:
    return parse(reader.take(key), where=_place(reader, key))


_VIEW_ACTIONS = ("add-view-version", "set-current-view-version")

_PARSERS: Mapping[str, Callable[[Reader], Update]] = {
    "assign-uuid": _assign_uuid,
    "upgrade-format-version": lambda r: UpgradeFormatVersion(r.integer("format-version")),
    "add-schema": lambda r: AddSchema(
        _nested(r, "schema", parse_schema), r.optional_integer("last-column-id", 32)
    ),
    "set-current-schema": lambda r: SetCurrentSchema(r.integer("schema-id", 32)),
    "add-spec": _add_spec,
    "set-default-spec": lambda r: SetDefaultPartitionSpec(r.integer("spec-id", 32)),
    "add-sort-order": lambda r: AddSortOrder(_nested(r, "sort-order", parse_sort_order)),
    "set-default-sort-order": lambda r: SetDefaultSortOrder(r.integer("sort-order-id", 32)),
    "add-snapshot": lambda r: AddSnapshot(_nested(r, "snapshot", parse_snapshot)),
    "set-snapshot-ref": _set_ref,
    "remove-snapshots": lambda r: RemoveSnapshots(r.integers("snapshot-ids")),
    "remove-snapshot-ref": lambda r: RemoveSnapshotRef(r.text("ref-name")),
    "set-location": lambda r: SetLocation(r.text("location")),
    "set-properties": _set_properties,
    "remove-properties": lambda r: RemoveProperties(r.texts(_key(r, "removals", "removed"))),
    "set-statistics": lambda r: SetStatistics(_nested(r, "statistics", parse_statistics_file)),
    "remove-statistics": lambda r: RemoveStatistics(r.integer("snapshot-id")),
    "set-partition-statistics": lambda r: SetPartitionStatistics(
        _nested(r, "partition-statistics", parse_statistics_file)
    ),
    "remove-partition-statistics": lambda r: RemovePartitionStatistics(r.integer("snapshot-id")),
    "remove-partition-specs": lambda r: RemovePartitionSpecs(r.integers("spec-ids", 32)),
    "remove-schemas": lambda r: RemoveSchemas(r.integers("schema-ids", 32)),
    "add-encryption-key": lambda r: AddEncryptionKey(
        _nested(r, "encryption-key", parse_encrypted_key)
    ),
    "remove-encryption-key": lambda r: RemoveEncryptionKey(r.text("key-id")),
}

_ACTIONS: Mapping[type[Update], str] = {
    AssignUUID: "assign-uuid",
    UpgradeFormatVersion: "upgrade-format-version",
    AddSchema: "add-schema",
    SetCurrentSchema: "set-current-schema",
    AddPartitionSpec: "add-spec",
    SetDefaultPartitionSpec: "set-default-spec",
    AddSortOrder: "add-sort-order",
    SetDefaultSortOrder: "set-default-sort-order",
    AddSnapshot: "add-snapshot",
    SetSnapshotRef: "set-snapshot-ref",
    RemoveSnapshots: "remove-snapshots",
    RemoveSnapshotRef: "remove-snapshot-ref",
    SetLocation: "set-location",
    SetProperties: "set-properties",
    RemoveProperties: "remove-properties",
    SetStatistics: "set-statistics",
    RemoveStatistics: "remove-statistics",
    SetPartitionStatistics: "set-partition-statistics",
    RemovePartitionStatistics: "remove-partition-statistics",
    RemovePartitionSpecs: "remove-partition-specs",
    RemoveSchemas: "remove-schemas",
    AddEncryptionKey: "add-encryption-key",
    RemoveEncryptionKey: "remove-encryption-key",
}
