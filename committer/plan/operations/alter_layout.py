"""Changes of how new files are partitioned and sorted."""

from __future__ import annotations

from typing import assert_never

from committer.iceberg.evolution.partition_evolution import PartitionSpecUpdate
from committer.iceberg.evolution.sort_order_evolution import SortOrderUpdate
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.schema.partition_spec import same_fields
from committer.iceberg.updates.metadata_update import (
    LAST_ADDED,
    AddPartitionSpec,
    AddSortOrder,
    SetDefaultPartitionSpec,
    SetDefaultSortOrder,
    Update,
)
from committer.iceberg.values.transforms import parse_transform
from committer.request import alterations as ask


def alter_layout(change: ask.LayoutChange, metadata: TableMetadata) -> tuple[Update, ...]:
    """Plan one change of the layout. Errors: `InvalidMetadataError`, `UnsupportedError`."""
    if isinstance(change, ask.ReplaceSortOrder):
        return _sorted(change, metadata)
    is_cased = not isinstance(change, ask.AddPartitionField) or change.case_sensitive
    update = PartitionSpecUpdate(
        metadata.default_spec,
        metadata.current_schema,
        specs=metadata.partition_specs,
        last_partition_id=metadata.last_partition_id,
        format_version=metadata.format_version,
        case_sensitive=is_cased,
    )
    match change:
        case ask.AddPartitionField(source=source, transform=transform, name=name):
            update.add_field(source, parse_transform(transform), name)
        case ask.RemovePartitionField(name=name):
            update.remove_field(name)
        case ask.RenamePartitionField(name=name, new_name=new_name):
            update.rename_field(name, new_name)
        case _:
            assert_never(change)
    evolved = update.apply().spec
    if same_fields(evolved, metadata.default_spec):
        return ()
    return AddPartitionSpec(evolved), SetDefaultPartitionSpec(LAST_ADDED)


def _sorted(change: ask.ReplaceSortOrder, metadata: TableMetadata) -> tuple[Update, ...]:
    update = SortOrderUpdate(metadata.current_schema, case_sensitive=change.case_sensitive)
    for key in change.fields:
        add = update.asc if key.direction == "asc" else update.desc
        transform = parse_transform(key.transform)
        if key.null_order is None:
            add(key.source, transform)
        else:
            add(key.source, transform, null_order=key.null_order)
    order = update.apply()
    if order.fields == metadata.default_sort_order.fields:
        return ()
    return AddSortOrder(order), SetDefaultSortOrder(LAST_ADDED)
