"""Every update and every requirement with its form in the description of the REST catalog."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from committer.iceberg.metadata.snapshot import Snapshot, SnapshotRef
from committer.iceberg.metadata.table_statistics import EncryptedKey, StatisticsFile
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
from committer.iceberg.updates.requirement import (
    AssertCreate,
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertRefSnapshotId,
    AssertTableUUID,
    Requirement,
)
from committer.iceberg.values.transforms import parse_transform
from tests.support.iceberg.metadata_builders import SCHEMA, TABLE_UUID

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
SPEC = PartitionSpec(4, (PartitionField((1,), 1000, "p", _IDENTITY),))
SPEC_JSON = {
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

UPDATE_FORMS: list[tuple[Update, dict[str, Any]]] = [
    (AssignUUID(UUID(_UUID)), {"action": "assign-uuid", "uuid": _UUID}),
    (UpgradeFormatVersion(3), {"action": "upgrade-format-version", "format-version": 3}),
    (AddSchema(SCHEMA), {"action": "add-schema", "schema": _SCHEMA_JSON}),
    (
        AddSchema(SCHEMA, 7),
        {"action": "add-schema", "schema": _SCHEMA_JSON, "last-column-id": 7},
    ),
    (SetCurrentSchema(-1), {"action": "set-current-schema", "schema-id": -1}),
    (AddPartitionSpec(SPEC), {"action": "add-spec", "spec": SPEC_JSON}),
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

REQUIREMENT_FORMS: list[tuple[Requirement, dict[str, Any]]] = [
    (AssertCreate(), {"type": "assert-create"}),
    (AssertTableUUID(TABLE_UUID), {"type": "assert-table-uuid", "uuid": str(TABLE_UUID)}),
    (
        AssertRefSnapshotId("main", 1),
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 1},
    ),
    (
        AssertRefSnapshotId("main", None),
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None},
    ),
    (
        AssertLastAssignedFieldId(2),
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 2},
    ),
    (
        AssertCurrentSchemaId(3),
        {"type": "assert-current-schema-id", "current-schema-id": 3},
    ),
    (
        AssertLastAssignedPartitionId(1000),
        {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 1000},
    ),
    (AssertDefaultSpecId(4), {"type": "assert-default-spec-id", "default-spec-id": 4}),
    (
        AssertDefaultSortOrderId(5),
        {"type": "assert-default-sort-order-id", "default-sort-order-id": 5},
    ),
]
