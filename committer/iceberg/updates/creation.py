"""A new table as the updates that make it: how REST creates in a transaction.

Ids are those that the updates lead to; `new_table.py` gives new ones as an engine does.
Source: docs/reference/iceberg-notes.md 4.4, 9.3.
"""

from __future__ import annotations

from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.updates.metadata_update import (
    LAST_ADDED,
    AddPartitionSpec,
    AddSchema,
    AddSortOrder,
    AssignUUID,
    SetCurrentSchema,
    SetDefaultPartitionSpec,
    SetDefaultSortOrder,
    SetLocation,
    SetProperties,
    Update,
    UpgradeFormatVersion,
)


def updates_that_create(metadata: TableMetadata) -> tuple[Update, ...]:
    """Return the changes that make a table that has no snapshots yet, in the reference's order.

    Errors: `UnsupportedError` for a table without a uuid.
    """
    return (
        AssignUUID(metadata.require_uuid()),
        UpgradeFormatVersion(metadata.format_version),
        AddSchema(metadata.current_schema),
        SetCurrentSchema(LAST_ADDED),
        AddPartitionSpec(metadata.default_spec),
        SetDefaultPartitionSpec(LAST_ADDED),
        AddSortOrder(metadata.default_sort_order),
        SetDefaultSortOrder(LAST_ADDED),
        SetLocation(metadata.location),
        SetProperties(metadata.properties),
    )
