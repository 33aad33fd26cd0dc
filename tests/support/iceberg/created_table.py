"""The table that updates create, as a REST catalog makes it."""

from __future__ import annotations

from collections.abc import Iterable

from committer.errors import InvalidMetadataError
from committer.iceberg.metadata.metadata_check import check_metadata
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.schema.partition_spec import PARTITION_FIELD_ID_START
from committer.iceberg.updates.metadata_update import (
    Update,
    UpgradeFormatVersion,
    apply_updates,
)

_FORMAT_VERSION_DEFAULT = 2


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
