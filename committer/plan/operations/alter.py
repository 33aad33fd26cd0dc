"""Changes of a table that have no files: planned on the table as it is when their turn comes.

The changes of one request are folded over the table, and what has changed at the end is said in as
few updates as it takes: some REST servers refuse two updates of a kind, and no schema is stored
that was never current.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.updates.metadata_update import (
    LAST_ADDED,
    AddPartitionSpec,
    AddSchema,
    AddSortOrder,
    RemoveProperties,
    RemoveSnapshotRef,
    SetCurrentSchema,
    SetDefaultPartitionSpec,
    SetDefaultSortOrder,
    SetProperties,
    SetSnapshotRef,
    Update,
    UpgradeFormatVersion,
    apply_updates,
)
from committer.plan.operations.alter_columns import alter_columns, changed_properties
from committer.plan.operations.alter_layout import alter_layout
from committer.plan.operations.alter_refs import alter_refs
from committer.plan.operations.conflict import Conflict, ConflictCode
from committer.request import alterations as ask


def plan_alter(
    changes: Sequence[ask.TableChange], metadata: TableMetadata, branch: str, *, now_ms: int
) -> tuple[Update, ...] | Conflict:
    """Plan the changes of one request in their order; nothing if the table is so already.

    `branch`: the request's. A change that does not fit the table is a conflict, and then none of
    them is made; its message names the change if there are several.
    """
    altered = metadata
    for number, change in enumerate(changes, 1):
        place = f"change {number} (`{change.action}`): " if len(changes) > 1 else ""
        try:
            planned = _planned(change, altered, branch)
            if isinstance(planned, Conflict):
                return Conflict(planned.code, f"{place}{planned.message}", planned.snapshot_id)
            altered = apply_updates(altered, planned, base_location=None, now_ms=now_ms)
        except (InvalidMetadataError, UnsupportedError) as error:
            return Conflict(ConflictCode.INCOMPATIBLE, f"{place}{error}")
    return tuple(_difference(metadata, altered))


def _planned(
    change: ask.TableChange, metadata: TableMetadata, branch: str
) -> tuple[Update, ...] | Conflict:
    if isinstance(change, ask.RefChange):
        return alter_refs(change, metadata, branch)
    if isinstance(change, ask.SchemaChange):
        return alter_columns(change, metadata)
    if isinstance(change, ask.LayoutChange):
        return alter_layout(change, metadata)
    match change:
        case ask.SetProperties(updates=updates):
            return (SetProperties(updates),)
        case ask.RemoveProperties(removals=removals):
            return (RemoveProperties(removals),)
        case ask.UpgradeFormatVersion(format_version=format_version):
            return (UpgradeFormatVersion(format_version),)


def _difference(before: TableMetadata, after: TableMetadata) -> Iterator[Update]:
    if after.format_version != before.format_version:
        yield UpgradeFormatVersion(after.format_version)
    if after.current_schema_id != before.current_schema_id:
        yield AddSchema(after.current_schema, after.last_column_id)
        yield SetCurrentSchema(LAST_ADDED)
    if after.default_spec_id != before.default_spec_id:
        yield AddPartitionSpec(after.default_spec)
        yield SetDefaultPartitionSpec(LAST_ADDED)
    if after.default_sort_order_id != before.default_sort_order_id:
        yield AddSortOrder(after.default_sort_order)
        yield SetDefaultSortOrder(LAST_ADDED)
    yield from changed_properties(before.properties, after.properties)
    yield from _changed_refs(before, after)


def _changed_refs(before: TableMetadata, after: TableMetadata) -> Iterable[Update]:
    for name in before.refs:
        if name not in after.refs:
            yield RemoveSnapshotRef(name)
    for name, ref in after.refs.items():
        if before.refs.get(name) != ref:
            yield SetSnapshotRef(name, ref)
