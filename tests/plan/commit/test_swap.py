"""A swap that was planned before an expiry, and is sent after it."""

from __future__ import annotations

from uuid import UUID

import pytest

from committer.iceberg.metadata.snapshot import MAIN, SnapshotRef
from committer.iceberg.updates.metadata_update import (
    AddSnapshot,
    RemoveSnapshotRef,
    RemoveSnapshots,
    SetSnapshotRef,
    Update,
    apply_updates,
)
from committer.plan.commit.swap import may_land, plan_swap
from committer.ports.catalog_capabilities import Condition
from tests.support.builders.flights import build_flights, changed
from tests.support.iceberg.metadata_builders import build_snapshot


@pytest.mark.parametrize("condition", ["pointer", "requirements"])
def test_a_replacement_beside_an_expiry_revives_no_snapshot(condition: Condition) -> None:
    """Iceberg Java writes what it has read before the expiry: snapshots without files are back."""
    base = build_flights()
    for number in (1, 2):
        snapshot = build_snapshot(base.metadata, snapshot_id=number, parent=number - 1 or None)
        base = changed(base, AddSnapshot(snapshot), SetSnapshotRef(MAIN, SnapshotRef(number)))
    anew = build_snapshot(base.metadata, snapshot_id=3)
    replacement: tuple[Update, ...] = (
        RemoveSnapshotRef(MAIN),
        AddSnapshot(anew),
        SetSnapshotRef(MAIN, SnapshotRef(3)),
    )
    swap = plan_swap(base, replacement, uuid=UUID(int=1), now_ms=base.metadata.last_updated_ms)
    expired = changed(base, RemoveSnapshots((1,)))
    if condition == "pointer":
        assert not may_land(swap, expired, condition)
        return
    # The catalog applies the updates to the table as it is, and no update brings a snapshot back.
    landed = apply_updates(
        expired.metadata, swap.updates, base_location=None, now_ms=swap.metadata.last_updated_ms
    )
    assert [one.snapshot_id for one in landed.snapshots] == [2, 3]
    # A commit to the branch that it replaces is not lost either.
    more = build_snapshot(base.metadata, snapshot_id=4, parent=2)
    moved = changed(base, AddSnapshot(more), SetSnapshotRef(MAIN, SnapshotRef(4)))
    assert not may_land(swap, moved, condition)
