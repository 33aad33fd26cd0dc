"""The JSON form of updates and requirements, as REST catalogs take them.

The names are those of the classes and fields here: `SetSnapshotRef.ref_name` is `ref-name` of
`set-snapshot-ref`. Source: the REST catalog's OpenAPI description (`TableUpdate`,
`TableRequirement`); docs/reference/iceberg-notes.md 9.3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from uuid import UUID

from committer.iceberg.metadata.snapshot import Snapshot, print_snapshot, print_snapshot_ref
from committer.iceberg.metadata.table_statistics import (
    EncryptedKey,
    StatisticsFile,
    print_encrypted_key,
    print_statistics_file,
)
from committer.iceberg.schema.partition_field_ids import NEW_FIELD_ID
from committer.iceberg.schema.partition_spec import PartitionSpec, print_partition_fields
from committer.iceberg.schema.schema import Schema, print_schema
from committer.iceberg.schema.sort_order import SortOrder, print_sort_order
from committer.iceberg.updates.metadata_update import (
    AddPartitionSpec,
    AddSchema,
    SetDefaultPartitionSpec,
    SetSnapshotRef,
    SetStatistics,
    Update,
)
from committer.iceberg.updates.requirement import Requirement

_WORD_START = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SHORTER_ACTIONS: Mapping[type[Update], str] = {
    AddPartitionSpec: "add-spec",
    SetDefaultPartitionSpec: "set-default-spec",
}


def print_update(update: Update) -> dict[str, object]:
    """Print the form that REST catalogs take."""
    kind = type(update)
    printed: dict[str, object] = {"action": _SHORTER_ACTIONS.get(kind, _name(kind))}
    if isinstance(update, SetStatistics):
        # Beside the file as well, for servers of old.
        printed["snapshot-id"] = update.statistics.snapshot_id
    printed |= _print_fields(update)
    match update:
        case AddSchema(last_column_id=None):
            del printed["last-column-id"]
        case SetSnapshotRef(ref=ref):
            del printed["ref"]
            printed |= print_snapshot_ref(ref)
    return printed


def print_requirement(requirement: Requirement) -> dict[str, object]:
    """Print the form that REST catalogs take. A null is meant: there must be no such ref."""
    return {"type": _name(type(requirement)), **_print_fields(requirement)}


def _name(kind: type) -> str:
    return _WORD_START.sub("-", kind.__name__).lower()


def _print_fields(value: Update | Requirement) -> dict[str, object]:
    return {
        field.name.replace("_", "-"): _print_value(getattr(value, field.name))
        for field in fields(value)
    }


def _print_value(value: object) -> object:
    match value:
        case UUID():
            return str(value)
        case tuple():
            return list(value)
        case Mapping():
            return dict(value)
        case Schema():
            return print_schema(value)
        case PartitionSpec():
            return _print_spec(value)
        case SortOrder():
            return print_sort_order(value)
        case Snapshot():
            return print_snapshot(value)
        case StatisticsFile():
            return print_statistics_file(value)
        case EncryptedKey():
            return print_encrypted_key(value)
    return value


def _print_spec(spec: PartitionSpec) -> dict[str, object]:
    """Print a spec without the ids of fields that the table is to number."""
    printed = print_partition_fields(spec)
    for field in printed:
        if field["field-id"] == NEW_FIELD_ID:
            del field["field-id"]
    return {"spec-id": spec.spec_id, "fields": printed}
