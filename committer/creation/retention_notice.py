"""The history that a new table keeps, in one sentence for its creator. Texts only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from committer.iceberg.metadata.property_values import is_true
from committer.table_defaults import (
    EXPIRE_PROPERTY,
    GC_PROPERTY,
    ICEBERG_SNAPSHOT_AGE_MS,
    KEEP_SNAPSHOTS_PROPERTY,
    NEW_TABLE_PROPERTIES,
    SNAPSHOT_AGE_PROPERTY,
)

if TYPE_CHECKING:
    from committer.creation.create_table import NewTable
    from committer.ports.catalog_capabilities import CatalogCapabilities

_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS


def retention_notice(new: NewTable, can: CatalogCapabilities) -> str:
    """Say which snapshots the table keeps, and how to keep as many as by Iceberg's own default.

    Empty where the creator has chosen an age, where nothing expires, and where the service of the
    catalog expires by rules of its own.
    """
    own = new.properties
    expires = all(is_true(own, key, default=True) for key in (EXPIRE_PROPERTY, GC_PROPERTY))
    if can.maintains_tables or not expires or SNAPSHOT_AGE_PROPERTY in own:
        return ""
    number = own.get(KEEP_SNAPSHOTS_PROPERTY, NEW_TABLE_PROPERTIES[KEEP_SNAPSHOTS_PROPERTY])
    hours = int(NEW_TABLE_PROPERTIES[SNAPSHOT_AGE_PROPERTY]) // _HOUR_MS
    period = "hour" if hours == 1 else f"{hours} hours"
    return (
        f"{new.identifier} keeps the newest {_grouped(number)} snapshots of each branch and those"
        f" of the last {period}; no reader and no rollback reaches older ones. For Iceberg's own"
        f" default of {ICEBERG_SNAPSHOT_AGE_MS // _DAY_MS} days:"
        f" frazil table set {new.identifier} {SNAPSHOT_AGE_PROPERTY}={ICEBERG_SNAPSHOT_AGE_MS}"
    )


def _grouped(number: str) -> str:
    return f"{int(number):,}" if number.isdecimal() else number
