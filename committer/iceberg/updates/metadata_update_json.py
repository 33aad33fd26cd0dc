"""The JSON form of updates, as REST catalogs take them.

Source: the REST catalog's OpenAPI description (`TableUpdate`); docs/reference/iceberg-notes.md 9.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TypeVar

from committer.iceberg.metadata.snapshot import (
    print_snapshot,
    print_snapshot_ref,
)
from committer.iceberg.metadata.table_statistics import (
    StatisticsFile,
    print_encrypted_key,
    print_statistics_file,
)
from committer.iceberg.schema.partition_field_ids import NEW_FIELD_ID
from committer.iceberg.schema.partition_spec import (
    PartitionSpec,
    print_partition_fields,
)
from committer.iceberg.schema.schema import print_schema
from committer.iceberg.schema.sort_order import print_sort_order
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

_Printer = Callable[..., dict[str, object]]
_Value = TypeVar("_Value")


# --- Values under the keys of an update ----------------------------------------------------------


def _plain(key: str) -> _Printer:
    return lambda value: {key: value}


def _listed(key: str) -> _Printer:
    return lambda values: {key: list(values)}


def _nested(key: str, print_value: Callable[[_Value], object]) -> _Printer:
    return lambda value: {key: print_value(value)}


def _print_spec(spec: PartitionSpec) -> dict[str, object]:
    """Print a spec without the ids of fields that the table is to number."""
    printed = print_partition_fields(spec)
    for field in printed:
        if field["field-id"] == NEW_FIELD_ID:
            del field["field-id"]
    return {"spec": {"spec-id": spec.spec_id, "fields": printed}}


def _print_last_column_id(last: int | None) -> dict[str, object]:
    return {} if last is None else {"last-column-id": last}


def _print_statistics(file: StatisticsFile) -> dict[str, object]:
    """Print a file with its id beside it, for servers of old."""
    return {"snapshot-id": file.snapshot_id, "statistics": print_statistics_file(file)}


# By update: its action, and the printers of its fields in their order.
_FORMS: Mapping[type[Update], tuple[str, tuple[_Printer, ...]]] = {
    AssignUUID: ("assign-uuid", (_nested("uuid", str),)),
    UpgradeFormatVersion: ("upgrade-format-version", (_plain("format-version"),)),
    AddSchema: ("add-schema", (_nested("schema", print_schema), _print_last_column_id)),
    SetCurrentSchema: ("set-current-schema", (_plain("schema-id"),)),
    AddPartitionSpec: ("add-spec", (_print_spec,)),
    SetDefaultPartitionSpec: ("set-default-spec", (_plain("spec-id"),)),
    AddSortOrder: ("add-sort-order", (_nested("sort-order", print_sort_order),)),
    SetDefaultSortOrder: ("set-default-sort-order", (_plain("sort-order-id"),)),
    AddSnapshot: ("add-snapshot", (_nested("snapshot", print_snapshot),)),
    SetSnapshotRef: ("set-snapshot-ref", (_plain("ref-name"), print_snapshot_ref)),
    RemoveSnapshots: ("remove-snapshots", (_listed("snapshot-ids"),)),
    RemoveSnapshotRef: ("remove-snapshot-ref", (_plain("ref-name"),)),
    SetLocation: ("set-location", (_plain("location"),)),
    SetProperties: ("set-properties", (_nested("updates", dict),)),
    RemoveProperties: ("remove-properties", (_listed("removals"),)),
    SetStatistics: ("set-statistics", (_print_statistics,)),
    RemoveStatistics: ("remove-statistics", (_plain("snapshot-id"),)),
    SetPartitionStatistics: (
        "set-partition-statistics",
        (_nested("partition-statistics", print_statistics_file),),
    ),
    RemovePartitionStatistics: ("remove-partition-statistics", (_plain("snapshot-id"),)),
    RemovePartitionSpecs: ("remove-partition-specs", (_listed("spec-ids"),)),
    RemoveSchemas: ("remove-schemas", (_listed("schema-ids"),)),
    AddEncryptionKey: (
        "add-encryption-key",
        (_nested("encryption-key", print_encrypted_key),),
    ),
    RemoveEncryptionKey: ("remove-encryption-key", (_plain("key-id"),)),
}


# --- Updates -------------------------------------------------------------------------------------


def print_update(update: Update) -> dict[str, object]:
    """Print the form that REST catalogs take."""
    action, printers = _FORMS[type(update)]
    printed: dict[str, object] = {"action": action}
    for field, print_field in zip(fields(update), printers, strict=True):
        printed |= print_field(getattr(update, field.name))
    return printed
