"""Reads the JSON form of updates, as a REST catalog does.

Source: the REST catalog's OpenAPI description (`TableUpdate`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from committer.errors import UnsupportedError
from committer.iceberg.metadata.snapshot import (
    parse_snapshot,
    parse_snapshot_ref,
)
from committer.iceberg.metadata.table_statistics import (
    parse_encrypted_key,
    parse_statistics_file,
)
from committer.iceberg.schema.partition_field_ids import NEW_FIELD_ID
from committer.iceberg.schema.partition_spec import (
    PartitionSpec,
    parse_partition_spec,
)
from committer.iceberg.schema.schema import parse_schema
from committer.iceberg.schema.sort_order import parse_sort_order
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

_Read = Callable[[Reader], object]


def _integer(key: str, bits: int = 64) -> _Read:
    return lambda reader: reader.integer(key, bits)


def _integers(key: str, bits: int = 64) -> _Read:
    return lambda reader: reader.integers(key, bits)


def _text(key: str) -> _Read:
    return lambda reader: reader.text(key)


def _nested(key: str, parse: Callable[..., object]) -> _Read:
    return lambda reader: parse(reader.take(key), where=_place(reader, key))


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


def _read_properties(reader: Reader) -> dict[str, str]:
    updates = reader.optional_text_map(_key(reader, "updates", "updated"))
    if updates is None:
        raise reader.expected("updates", "an object of strings", None)
    return updates


def _read_removals(reader: Reader) -> object:
    return reader.texts(_key(reader, "removals", "removed"))


def _read_ref(reader: Reader) -> object:
    return parse_snapshot_ref(reader.rest, where=_place(reader, "ref"))


# By action: the update, and the readers of its fields in their order.
_FORMS: Mapping[str, tuple[Callable[..., Update], tuple[_Read, ...]]] = {
    "assign-uuid": (AssignUUID, (lambda reader: reader.uuid("uuid"),)),
    "upgrade-format-version": (UpgradeFormatVersion, (_integer("format-version"),)),
    "add-schema": (
        AddSchema,
        (
            _nested("schema", parse_schema),
            lambda reader: reader.optional_integer("last-column-id", 32),
        ),
    ),
    "set-current-schema": (SetCurrentSchema, (_integer("schema-id", 32),)),
    "add-spec": (AddPartitionSpec, (_read_spec,)),
    "set-default-spec": (SetDefaultPartitionSpec, (_integer("spec-id", 32),)),
    "add-sort-order": (AddSortOrder, (_nested("sort-order", parse_sort_order),)),
    "set-default-sort-order": (SetDefaultSortOrder, (_integer("sort-order-id", 32),)),
    "add-snapshot": (AddSnapshot, (_nested("snapshot", parse_snapshot),)),
    "set-snapshot-ref": (SetSnapshotRef, (_text("ref-name"), _read_ref)),
    "remove-snapshots": (RemoveSnapshots, (_integers("snapshot-ids"),)),
    "remove-snapshot-ref": (RemoveSnapshotRef, (_text("ref-name"),)),
    "set-location": (SetLocation, (_text("location"),)),
    "set-properties": (SetProperties, (_read_properties,)),
    "remove-properties": (RemoveProperties, (_read_removals,)),
    "set-statistics": (SetStatistics, (_nested("statistics", parse_statistics_file),)),
    "remove-statistics": (RemoveStatistics, (_integer("snapshot-id"),)),
    "set-partition-statistics": (
        SetPartitionStatistics,
        (_nested("partition-statistics", parse_statistics_file),),
    ),
    "remove-partition-statistics": (RemovePartitionStatistics, (_integer("snapshot-id"),)),
    "remove-partition-specs": (RemovePartitionSpecs, (_integers("spec-ids", 32),)),
    "remove-schemas": (RemoveSchemas, (_integers("schema-ids", 32),)),
    "add-encryption-key": (AddEncryptionKey, (_nested("encryption-key", parse_encrypted_key),)),
    "remove-encryption-key": (RemoveEncryptionKey, (_text("key-id"),)),
}
_VIEW_ACTIONS = ("add-view-version", "set-current-view-version")


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
    return update(*(read(reader) for read in parts))
