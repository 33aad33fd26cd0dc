"""A new table as the updates that make it, and back: how REST creates in a transaction.

Ids are those that the updates lead to; `new_table.py` gives new ones as an engine does.
Source: docs/reference/iceberg-notes.md 4.4, 9.3.
"""

from __future__ import annotations

from collections.abc import Iterable

from committer.errors import InvalidMetadataError
from committer.iceberg.metadata.metadata_check import check_metadata
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.schema.partition_spec import PARTITION_FIELD_ID_START
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
    apply_updates,
)

_FORMAT_VERSION_DEFAULT = 2


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


def table_of_updates(updates: Iterable[Update], *, now_ms: int) -> TableMetadata:
    """Build the table that these changes create.

    Format version 2 if they name none. Errors: `InvalidMetadataError` if they leave something out
    that a table needs, or do not fit each other.
    """
    changes = tuple(updates)
    versions = [each.format_version for each in changes if isinstance(each, UpgradeFormatVersion)]
    made = apply_updates(
        _nothing(versions[-1] if versions else _FORMAT_VERSION_DEFAULT, now_ms),
        changes,
        base_location=None,
        now_ms=now_ms,
    )
    if made.table_uuid is None or not made.location:
        raise InvalidMetadataError("a new table: expected the updates to set a uuid and a location")
    check_metadata(made)
    return made


def _nothing(format_version: int, now_ms: int) -> TableMetadata:
    return TableMetadata(
        format_version=format_version,
        table_uuid=None,
        location="",
        last_sequence_number=0,
        last_updated_ms=now_ms,
        last_column_id=0,
        current_schema_id=0,
        schemas=(),
        default_spec_id=0,
        partition_specs=(),
        last_partition_id=PARTITION_FIELD_ID_START - 1,
        default_sort_order_id=0,
        sort_orders=(),
        properties={},
        next_row_id=0 if format_version >= 3 else None,
    )
