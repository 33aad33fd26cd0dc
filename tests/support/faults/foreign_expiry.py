"""Expiry as other engines do it, where that is more than taking snapshots out. Pure.

Iceberg Java, and with it Spark, Trino, Flink and Hive, leaves the parent ids of what stays, also
those of snapshots that are gone, and drops the snapshot log up to each entry that is gone: that is
what `RemoveSnapshots` does.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from committer.iceberg.metadata.metadata_model import TableMetadata


def as_pyiceberg_expires(
    base: TableMetadata, after: TableMetadata, gone: Collection[int]
) -> TableMetadata:
    """Change `after`, the base without these snapshots, as PyIceberg does: clear the parent ids
    that name them, and leave gaps in the snapshot log.
    """
    snapshots = tuple(
        replace(one, parent_snapshot_id=None) if one.parent_snapshot_id in gone else one
        for one in after.snapshots
    )
    log = tuple(one for one in base.snapshot_log if one.snapshot_id not in gone)
    return replace(after, snapshots=snapshots, snapshot_log=log)
