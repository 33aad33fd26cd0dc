"""From changes of a table to the swap that makes them, and how long that swap may land."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from committer.iceberg.metadata.metadata_gzip import writes_gzip
from committer.iceberg.updates.metadata_update import Update, apply_updates
from committer.iceberg.updates.requirement import failed_requirement
from committer.iceberg.updates.requirements_of import requirements_of_update
from committer.iceberg.values.locations import (
    metadata_file_location,
    metadata_folder,
    metadata_version,
)
from committer.ports.catalog_capabilities import Condition
from committer.ports.pointer_swap import LoadedTable, Swap


def plan_swap(base: LoadedTable, updates: Sequence[Update], *, uuid: UUID, now_ms: int) -> Swap:
    """Plan one attempt to apply the updates to this base, under a metadata file name of its own."""
    metadata = base.metadata
    return Swap(
        base=base,
        requirements=requirements_of_update(metadata, updates),
        updates=tuple(updates),
        metadata=apply_updates(
            metadata, updates, base_location=base.metadata_location, now_ms=now_ms
        ),
        metadata_location=metadata_file_location(
            metadata_folder(metadata.location, metadata.properties),
            metadata_version(base.metadata_location) + 1,
            uuid,
            gzip=writes_gzip(metadata.properties),
        ),
    )


def may_land(swap: Swap, table: LoadedTable, condition: Condition) -> bool:
    """Return whether a swap that was sent may land on the table as it is now, or has not been seen
    to be shut out: its base is current, or all that it requires holds.
    """
    if condition == "pointer":
        return swap.base.metadata_location == table.metadata_location
    return all(failed_requirement(one, table.metadata) is None for one in swap.requirements)
