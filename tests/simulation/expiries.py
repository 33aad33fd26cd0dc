"""How other engines shorten a history: each in its way, and none asks who relies on it.

By age or by number, by id or between two times; some clear the parent ids that name what is gone,
some delete no files; and tags hold back what is old, so that gaps are anywhere.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from enum import Enum
from functools import partial

from committer.iceberg.metadata.snapshot import MAIN, SnapshotRef
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.updates.metadata_update import (
    AddSnapshot,
    RemoveSnapshotRef,
    RemoveSnapshots,
    SetSnapshotRef,
)
from tests.simulation.engine import Change, Worker
from tests.support.faults.foreign_expiry import as_pyiceberg_expires
from tests.support.iceberg.manifest_builders import added_entry

Step = Callable[[Worker], Awaitable[Change | None]]
SNAPSHOTS_KEPT = 2


class Expiry(Enum):
    """Which snapshots go, and how. The value is who does it like that."""

    OLD = "expire_snapshots of Spark, Trino and Flink"
    OLD_WITHOUT_FILES = "iceberg_expire_snapshots of DuckDB"
    OLD_CLEARED = "PyIceberg's expire_snapshots, by time"
    SOME = "Iceberg Java's expire_snapshots, by id or between two times"
    SOME_CLEARED = "PyIceberg's expire_snapshots, by id"

    @property
    def deletes_files(self) -> bool:
        return self in (Expiry.OLD, Expiry.SOME)

    @property
    def clears_parents(self) -> bool:
        return self in (Expiry.OLD_CLEARED, Expiry.SOME_CLEARED)

    def step(self) -> Step:
        """Return the step that expires the snapshots of a table."""
        return partial(_expire, self)


async def _expire(expiry: Expiry, worker: Worker) -> Change | None:
    metadata = worker.metadata
    kept = {ref.snapshot_id for ref in metadata.refs.values()}
    match expiry:
        case Expiry.OLD | Expiry.OLD_WITHOUT_FILES:
            newest = list(metadata.branch_history())[:SNAPSHOTS_KEPT]
            kept.update(one.snapshot_id for one in newest)
        case Expiry.OLD_CLEARED:
            pass
        case Expiry.SOME | Expiry.SOME_CLEARED:
            some = worker.chance.sample(metadata.snapshots, len(metadata.snapshots) // 2)
            kept.update(one.snapshot_id for one in some)
    gone = tuple(one.snapshot_id for one in metadata.snapshots if one.snapshot_id not in kept)
    finish = partial(_cleared, gone) if expiry.clears_parents else None
    return Change((RemoveSnapshots(gone),), finish=finish) if gone else None


def _cleared(gone: Collection[int], base: TableMetadata, after: TableMetadata) -> TableMetadata:
    return as_pyiceberg_expires(base, after, gone)


async def tag(worker: Worker) -> Change | None:
    """Hold back any snapshot that is retained; or let the one go that is held back."""
    metadata = worker.metadata
    tags = [name for name, ref in metadata.refs.items() if ref.type == "tag"]
    if tags:
        return Change((RemoveSnapshotRef(tags[0]),))
    if not metadata.snapshots:
        return None
    held = worker.chance.choice(metadata.snapshots)
    return Change((SetSnapshotRef("held", SnapshotRef(held.snapshot_id, "tag")),))


async def replace_table(worker: Worker) -> Change | None:
    """Run `CREATE OR REPLACE TABLE … AS SELECT`: drop the refs, retain the old snapshots."""
    if worker.metadata.current_snapshot is None:
        return None
    without = replace(worker.metadata, refs={}, current_snapshot_id=None)
    anew = Worker(worker.ports, replace(worker.base, metadata=without), worker.chance)
    snapshot_id = anew.new_snapshot_id()
    file = anew.new_file(rows=3)
    manifests = [anew.manifest([added_entry(file)], 0, file.spec_id, snapshot_id)]
    counts = {
        "added-data-files": 1,
        "added-records": file.record_count,
        "added-files-size": file.file_size_in_bytes,
    }
    snapshot, manifest_list = anew.snapshot("append", counts, manifests, (), snapshot_id)
    objects = (*(written for _, written in manifests), manifest_list)
    head = SnapshotRef(snapshot_id, "branch")
    updates = (RemoveSnapshotRef(MAIN), AddSnapshot(snapshot), SetSnapshotRef(MAIN, head))
    return Change(updates, objects, (file,))
