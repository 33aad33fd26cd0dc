"""The properties of a table that Frazil creates, but for those that its creator chooses."""

from __future__ import annotations

from collections.abc import Mapping

EXPIRE_PROPERTY = "frazil.expire.enabled"
# How upserts from Spark delete old rows where the writer does not say; the committer has no use
# for it.
UPSERT_DELETES_PROPERTY = "frazil.upsert.deletes"
UPSERT_DELETES = ("equality", "positions")
KEEP_SNAPSHOTS_PROPERTY = "history.expire.min-snapshots-to-keep"
SNAPSHOT_AGE_PROPERTY = "history.expire.max-snapshot-age-ms"
GC_PROPERTY = "gc.enabled"
# How long engines keep the snapshots of a table that does not say: five days.
ICEBERG_SNAPSHOT_AGE_MS = 432_000_000

# 5,000 snapshots or one hour, whichever is more.
NEW_TABLE_PROPERTIES: Mapping[str, str] = {
    EXPIRE_PROPERTY: "true",
    KEEP_SNAPSHOTS_PROPERTY: "5000",
    SNAPSHOT_AGE_PROPERTY: "3600000",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}
