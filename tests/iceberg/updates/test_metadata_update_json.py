"""Updates in the form of the REST catalog description."""

from __future__ import annotations

from typing import Any, get_args
from uuid import UUID

import orjson
import pytest

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.iceberg.metadata.snapshot import Snapshot, SnapshotRef
from committer.iceberg.metadata.table_statistics import EncryptedKey, StatisticsFile
from committer.iceberg.schema.partition_field_ids import NEW_FIELD_ID
from committer.iceberg.schema.partition_spec import PartitionField, PartitionSpec
from committer.iceberg.schema.sort_order import SortField, SortOrder
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
from committer.iceberg.updates.metadata_update_json import parse_update, print_update
from committer.iceberg.values.transforms import parse_transform
from tests.iceberg.metadata_builders import SCHEMA

_IDENTITY = parse_transform("identity")
_FILE = {"snapshot-id": 1, "statistics-path": "p", "file-size-in-bytes": 2}
_SCHEMA_JSON = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "required": False, "type": "long"},
        {"id": 2, "name": "name", "required": False, "type": "string"},
    ],
}
_SPEC = PartitionSpec(4, (PartitionField((1,), 1000, "p", _IDENTITY),))
_SPEC_JSON = {
    "spec-id": 4,
    "fields": [{"name": "p", "transform": "identity", "source-id": 1, "field-id": 1000}],
}
_ORDER = SortOrder(1, (SortField((1,), _IDENTITY, "asc", "nulls-first"),))
_ORDER_JSON = {
    "order-id": 1,
    "fields": [
        {"transform": "identity", "source-id": 1, "direction": "asc", "null-order": "nulls-first"}
    ],
}
_SNAPSHOT = Snapshot(
    snapshot_id=1, timestamp_ms=2, manifest_list="l", summary={"operation": "append"}, schema_id=0
)
_SNAPSHOT_JSON = {
    "snapshot-id": 1,
    "timestamp-ms": 2,
    "summary": {"operation": "append"},
    "manifest-list": "l",
    "schema-id": 0,
}
_UUID = "4ee28668-b42f-46d5-9e75-6a0527ca6e9a"
_BLOBS: dict[str, Any] = {
    "file-footer-size-in-bytes": 1,
    "blob-metadata": [
        {
            "type": "apache-datasketches-theta-v1",
            "snapshot-id": 1,
            "sequence-number": 1,
            "fields": [1],
        }
    ],
}

FORMS: list[tuple[Update, dict[str, Any]]] = [
    (AssignUUID(UUID(_UUID)), {"action": "assign-uuid", "uuid": _UUID}),
    (UpgradeFormatVersion(3), {"action": "upgrade-format-version", "format-version": 3}),
    (AddSchema(SCHEMA), {"action": "add-schema", "schema": _SCHEMA_JSON}),
    (
        AddSchema(SCHEMA, 7),
        {"action": "add-schema", "schema": _SCHEMA_JSON, "last-column-id": 7},
    ),
    (SetCurrentSchema(-1), {"action": "set-current-schema", "schema-id": -1}),
    (AddPartitionSpec(_SPEC), {"action": "add-spec", "spec": _SPEC_JSON}),
    (SetDefaultPartitionSpec(-1), {"action": "set-default-spec", "spec-id": -1}),
    (AddSortOrder(_ORDER), {"action": "add-sort-order", "sort-order": _ORDER_JSON}),
    (SetDefaultSortOrder(1), {"action": "set-default-sort-order", "sort-order-id": 1}),
    (AddSnapshot(_SNAPSHOT), {"action": "add-snapshot", "snapshot": _SNAPSHOT_JSON}),
    (
        SetSnapshotRef("main", SnapshotRef(1)),
        {"action": "set-snapshot-ref", "ref-name": "main", "snapshot-id": 1, "type": "branch"},
    ),
    (
        SetSnapshotRef("b", SnapshotRef(1, "branch", 2, 3, 4)),
        {
            "action": "set-snapshot-ref",
            "ref-name": "b",
            "snapshot-id": 1,
            "type": "branch",
            "min-snapshots-to-keep": 2,
            "max-snapshot-age-ms": 3,
            "max-ref-age-ms": 4,
        },
    ),
    (RemoveSnapshots((1, 2)), {"action": "remove-snapshots", "snapshot-ids": [1, 2]}),
    (RemoveSnapshotRef("b"), {"action": "remove-snapshot-ref", "ref-name": "b"}),
    (SetLocation("s3://x"), {"action": "set-location", "location": "s3://x"}),
    (SetProperties({"a": "1"}), {"action": "set-properties", "updates": {"a": "1"}}),
    (RemoveProperties(("a", "b")), {"action": "remove-properties", "removals": ["a", "b"]}),
    (
        SetStatistics(StatisticsFile(1, "p", 2, _BLOBS)),
        {"action": "set-statistics", "snapshot-id": 1, "statistics": {**_FILE, **_BLOBS}},
    ),
    (RemoveStatistics(1), {"action": "remove-statistics", "snapshot-id": 1}),
    (
        SetPartitionStatistics(StatisticsFile(1, "p", 2)),
        {"action": "set-partition-statistics", "partition-statistics": _FILE},
    ),
    (
        RemovePartitionStatistics(1),
        {"action": "remove-partition-statistics", "snapshot-id": 1},
    ),
    (RemovePartitionSpecs((1,)), {"action": "remove-partition-specs", "spec-ids": [1]}),
    (RemoveSchemas((1,)), {"action": "remove-schemas", "schema-ids": [1]}),
    (
        AddEncryptionKey(EncryptedKey("k", "AQ==", {"encrypted-by-id": "m"})),
        {
            "action": "add-encryption-key",
            "encryption-key": {
                "key-id": "k",
                "encrypted-key-metadata": "AQ==",
                "encrypted-by-id": "m",
            },
        },
    ),
    (RemoveEncryptionKey("k"), {"action": "remove-encryption-key", "key-id": "k"}),
]


@pytest.mark.parametrize(("update", "form"), FORMS, ids=lambda each: type(each).__name__)
def test_an_update_is_printed_and_read_in_the_form_of_rest(
    update: Update, form: dict[str, Any]
) -> None:
    printed = orjson.loads(orjson.dumps(print_update(update)))
    assert printed == form
    assert parse_update(printed) == update


def test_every_update_has_its_form_here() -> None:
    assert {type(update) for update, _ in FORMS} == set(get_args(Update))


def test_an_added_spec_needs_no_id() -> None:
    form = {"action": "add-spec", "spec": {"fields": _SPEC_JSON["fields"]}}
    assert parse_update(form) == AddPartitionSpec(PartitionSpec(0, _SPEC.fields))


def test_fields_of_an_added_spec_need_no_ids_and_are_printed_without() -> None:
    bare = {"name": "b", "transform": "bucket[4]", "source-id": 1}
    form = {"action": "add-spec", "spec": {"spec-id": 0, "fields": [bare, bare | {"name": "c"}]}}
    update = parse_update(form)
    assert isinstance(update, AddPartitionSpec)
    assert [field.field_id for field in update.spec.fields] == [NEW_FIELD_ID, NEW_FIELD_ID]
    assert print_update(update) == form


def test_the_keys_of_old_clients_are_understood() -> None:
    set_old = {"action": "set-properties", "updated": {"a": "1"}}
    assert parse_update(set_old) == SetProperties({"a": "1"})
    assert parse_update({**set_old, "updates": {"b": "2"}}) == SetProperties({"b": "2"})
    remove_old = {"action": "remove-properties", "removed": ["a"]}
    assert parse_update(remove_old) == RemoveProperties(("a",))
    assert parse_update({**remove_old, "removals": ["b"]}) == RemoveProperties(("b",))


def test_an_unknown_action_is_named() -> None:
    with pytest.raises(UnsupportedError, match="unknown action `add-magic`"):
        parse_update({"action": "add-magic"})


@pytest.mark.parametrize("action", ["add-view-version", "set-current-view-version"])
def test_a_change_of_a_view_is_refused_as_such(action: str) -> None:
    with pytest.raises(UnsupportedError, match=f"`{action}` changes a view"):
        parse_update({"action": action})


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ([], "update: expected an object"),
        ({}, "update: `action`: expected a string, found nothing"),
        ({"action": "assign-uuid", "uuid": "x"}, "`uuid`: expected a uuid, found `x`"),
        ({"action": "set-properties"}, "`updates`: expected an object of strings, found nothing"),
        ({"action": "remove-properties", "removals": [1]}, "`removals`: expected a list of str"),
        ({"action": "remove-snapshots", "snapshot-ids": ["1"]}, "expected a list of integers"),
        ({"action": "add-snapshot"}, "`snapshot`: expected an object, found nothing"),
        ({"action": "add-spec", "spec": None}, "`spec`"),
        ({"action": "set-snapshot-ref", "ref-name": "b"}, "`ref`: `type`|`snapshot-id`"),
    ],
)
def test_a_malformed_update_is_refused_with_its_key(form: object, message: str) -> None:
    with pytest.raises(InvalidMetadataError, match=message):
        parse_update(form)
