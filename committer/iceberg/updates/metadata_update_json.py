"""The JSON form of updates, as REST catalogs take and give them.

Source: the REST catalog's OpenAPI description (`TableUpdate`); docs/reference/iceberg-notes.md 9.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TypeVar

from committer.errors import UnsupportedError
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


# --- Values under the keys of an update ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Part:
    """One field of an update: how its value is read, and the keys that it is printed under."""

    read: Callable[[Reader], object]
    print: Callable[..., dict[str, object]]


def _integer(key: str, bits: int = 64) -> _Part:
    return _Part(lambda reader: reader.integer(key, bits), lambda value: {key: value})


def _integers(key: str, bits: int = 64) -> _Part:
    return _Part(lambda reader: reader.integers(key, bits), lambda values: {key: list(values)})


def _text(key: str) -> _Part:
    return _Part(lambda reader: reader.text(key), lambda value: {key: value})


def _nested(
    key: str, parse: Callable[..., _Value], print_value: Callable[[_Value], object]
) -> _Part:
    return _Part(
        lambda reader: parse(reader.take(key), where=_place(reader, key)),
        lambda value: {key: print_value(value)},
    )


def _place(reader: Reader, key: str) -> str:
    return f"{reader.where}: `{key}`"


def _key(reader: Reader, key: str, key_of_old: str) -> str:
    """Return the key that is there: old clients have another, the new one wins."""
    return key_of_old if key not in reader.rest and key_of_old in reader.rest else key


def _read_spec(reader: Reader) -> PartitionSpec:
    spec = reader.take("spec")
    if isinstance(spec, dict):
        # Both ids are optional here: the table gives them.
        spec = {"spec-id": 0, **spec, "fields": _with_new_ids(spec.get("fields"))}
    return parse_partition_spec(spec, where=_place(reader, "spec"))


def _with_new_ids(fields: object) -> object:
    if not isinstance(fields, list):
        return fields
    numbered = {"field-id": NEW_FIELD_ID}
    return [{**numbered, **field} if isinstance(field, dict) else field for field in fields]


def _print_spec(spec: PartitionSpec) -> dict[str, object]:
    """Print a spec without the ids of fields that the table is to number."""
    printed = print_partition_fields(spec)
    for field in printed:
        if field["field-id"] == NEW_FIELD_ID:
            del field["field-id"]
    return {"spec": {"spec-id": spec.spec_id, "fields": printed}}


def _read_properties(reader: Reader) -> dict[str, str]:
    updates = reader.optional_text_map(_key(reader, "updates", "updated"))
    if updates is None:
        raise reader.expected("updates", "an object of strings", None)
    return updates


_UUID = _Part(lambda reader: reader.uuid("uuid"), lambda uuid: {"uuid": str(uuid)})
_SCHEMA = _nested("schema", parse_schema, print_schema)
_LAST_COLUMN_ID = _Part(
    lambda reader: reader.optional_integer("last-column-id", 32),
    lambda last: {} if last is None else {"last-column-id": last},
)
_SPEC = _Part(_read_spec, _print_spec)
_REF = _Part(
    lambda reader: parse_snapshot_ref(reader.rest, where=_place(reader, "ref")), print_snapshot_ref
)
_PROPERTIES = _Part(_read_properties, lambda updates: {"updates": dict(updates)})
_REMOVALS = _Part(
    lambda reader: reader.texts(_key(reader, "removals", "removed")),
    lambda removals: {"removals": list(removals)},
)
_FILE = _nested("statistics", parse_statistics_file, print_statistics_file)
# The id beside the file is for servers of old.
_STATISTICS = _Part(_FILE.read, lambda file: {"snapshot-id": file.snapshot_id, **_FILE.print(file)})
_PARTITION_STATISTICS = _nested(
    "partition-statistics", parse_statistics_file, print_statistics_file
)
_ENCRYPTION_KEY = _nested("encryption-key", parse_encrypted_key, print_encrypted_key)

# By action: the update, and its fields in their order.
_FORMS: Mapping[str, tuple[Callable[..., Update], tuple[_Part, ...]]] = {
    "assign-uuid": (AssignUUID, (_UUID,)),
    "upgrade-format-version": (UpgradeFormatVersion, (_integer("format-version"),)),
    "add-schema": (AddSchema, (_SCHEMA, _LAST_COLUMN_ID)),
    "set-current-schema": (SetCurrentSchema, (_integer("schema-id", 32),)),
    "add-spec": (AddPartitionSpec, (_SPEC,)),
    "set-default-spec": (SetDefaultPartitionSpec, (_integer("spec-id", 32),)),
    "add-sort-order": (AddSortOrder, (_nested("sort-order", parse_sort_order, print_sort_order),)),
    "set-default-sort-order": (SetDefaultSortOrder, (_integer("sort-order-id", 32),)),
    "add-snapshot": (AddSnapshot, (_nested("snapshot", parse_snapshot, print_snapshot),)),
    "set-snapshot-ref": (SetSnapshotRef, (_text("ref-name"), _REF)),
    "remove-snapshots": (RemoveSnapshots, (_integers("snapshot-ids"),)),
    "remove-snapshot-ref": (RemoveSnapshotRef, (_text("ref-name"),)),
    "set-location": (SetLocation, (_text("location"),)),
    "set-properties": (SetProperties, (_PROPERTIES,)),
    "remove-properties": (RemoveProperties, (_REMOVALS,)),
    "set-statistics": (SetStatistics, (_STATISTICS,)),
    "remove-statistics": (RemoveStatistics, (_integer("snapshot-id"),)),
    "set-partition-statistics": (SetPartitionStatistics, (_PARTITION_STATISTICS,)),
    "remove-partition-statistics": (RemovePartitionStatistics, (_integer("snapshot-id"),)),
    "remove-partition-specs": (RemovePartitionSpecs, (_integers("spec-ids", 32),)),
    "remove-schemas": (RemoveSchemas, (_integers("schema-ids", 32),)),
    "add-encryption-key": (AddEncryptionKey, (_ENCRYPTION_KEY,)),
    "remove-encryption-key": (RemoveEncryptionKey, (_text("key-id"),)),
}
_ACTIONS = {update: action for action, (update, _) in _FORMS.items()}
_VIEW_ACTIONS = ("add-view-version", "set-current-view-version")


# --- Updates -------------------------------------------------------------------------------------


def print_update(update: Update) -> dict[str, object]:
    """Print the form that REST catalogs take."""
    printed: dict[str, object] = {"action": _ACTIONS[type(update)]}
    _, parts = _FORMS[_ACTIONS[type(update)]]
    for field, part in zip(fields(update), parts, strict=True):
        printed |= part.print(getattr(update, field.name))
    return printed


def parse_update(json_value: object, *, where: str = "update") -> Update:
    """Read an update of a table. Keys that the action does not have are ignored.

    But for those of a ref: its keys lie beside the action's, and what is not known of them is kept.

    Errors: `UnsupportedError` for an unknown action or one of views, `InvalidMetadataError` for a
    malformed one.
    """
    reader = Reader(json_value, where)
    action = reader.text("action")
    if action in _VIEW_ACTIONS:
        raise UnsupportedError(f"{where}: `{action}` changes a view, expected a change of a table")
    if action not in _FORMS:
        raise UnsupportedError(f"{where}: unknown action `{action[:100]}`")
    update, parts = _FORMS[action]
    return update(*(part.read(reader) for part in parts))
