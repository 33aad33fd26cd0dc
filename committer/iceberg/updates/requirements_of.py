"""Derives the requirements of a change: that nothing it was based on has changed meanwhile.

Source: docs/reference/iceberg-notes.md 9.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.updates.metadata_update import (
    AddPartitionSpec,
    AddSchema,
    RemovePartitionSpecs,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    SetCurrentSchema,
    SetDefaultPartitionSpec,
    SetDefaultSortOrder,
    SetSnapshotRef,
    Update,
)
from committer.iceberg.updates.requirement import (
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertRefSnapshotId,
    AssertTableUUID,
    Requirement,
)


def requirements_of_update(
    base: TableMetadata, updates: Iterable[Update]
) -> tuple[Requirement, ...]:
    """Return the requirements of a change of `base`: of an append, the uuid and the branch's head.

    Each requirement once, in the order in which the updates ask for them. Errors:
    `UnsupportedError` for a table without a uuid.
    """
    found: list[Requirement] = [AssertTableUUID(base.require_uuid())]
    for update in updates:
        found.extend(_of_update(base, update))
    return tuple(dict.fromkeys(found))


def _of_update(base: TableMetadata, update: Update) -> Iterator[Requirement]:
    match update:
        case SetSnapshotRef(ref_name=name) | RemoveSnapshotRef(ref_name=name):
            ref = base.refs.get(name)
            yield AssertRefSnapshotId(name, None if ref is None else ref.snapshot_id)
        case AddSchema():
            yield AssertLastAssignedFieldId(base.last_column_id)
        case SetCurrentSchema():
            yield AssertCurrentSchemaId(base.current_schema_id)
        case AddPartitionSpec():
            yield AssertLastAssignedPartitionId(base.last_partition_id)
        case SetDefaultPartitionSpec():
            yield AssertDefaultSpecId(base.default_spec_id)
        case SetDefaultSortOrder():
            yield AssertDefaultSortOrderId(base.default_sort_order_id)
        case RemovePartitionSpecs():
            yield AssertDefaultSpecId(base.default_spec_id)
            yield from _no_branch_moved(base)
        case RemoveSchemas():
            yield AssertCurrentSchemaId(base.current_schema_id)
            yield from _no_branch_moved(base)
        case RemoveSnapshots():
            yield from _no_ref_moved(base)
        case _:
            return


def _no_branch_moved(base: TableMetadata) -> Iterator[Requirement]:
    """Require every branch unmoved: its newest snapshot may use what is removed.

    Main too, which Iceberg Java leaves out: what is current says nothing of a late writer, whose
    manifests are of the schema and the spec that it has read.
    """
    for name, ref in base.refs.items():
        if ref.type == "branch":
            yield AssertRefSnapshotId(name, ref.snapshot_id)


def _no_ref_moved(base: TableMetadata) -> Iterator[Requirement]:
    """Require every ref: one may have moved to a snapshot that is removed. (Java requires none.)"""
    for name, ref in base.refs.items():
        yield AssertRefSnapshotId(name, ref.snapshot_id)
