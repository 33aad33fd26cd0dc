"""Commits that take along the tag of an hour: in the same swap, at no read and no write more."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

import pytest

from committer.iceberg.metadata.snapshot import Snapshot, SnapshotRef
from committer.iceberg.updates.metadata_update import SetProperties, SetSnapshotRef
from committer.plan.cleanup import expiry
from committer.plan.cleanup.expiry import ExpiredSnapshots
from committer.plan.cleanup.maintenance import Upkeep
from committer.plan.commit.commit import CommitPlan, Planning, plan_commit
from committer.plan.commit.step_plan import Attempt
from committer.request.request_format import EncodedRequest
from tests.support.builders.flights import build_flights
from tests.support.builders.request_builders import build_request
from tests.support.plan.committing import NO_CHORES, Table

HOUR_MS = 3_600_000
PROPERTIES = {
    "frazil.tags.every": "1h",
    "frazil.expire.enabled": "true",
    "history.expire.max-snapshot-age-ms": "1",
    "history.expire.min-snapshots-to-keep": "1",
}


def request(table: Table, epoch: int, branch: str = "main") -> EncodedRequest:
    return build_request(table.table, epoch=epoch, branch=branch, partition=("AA",))


def tagged_table(properties: Mapping[str, str] = PROPERTIES) -> Table:
    """Return a table with a commit just before the hour."""
    table = Table.of(build_flights(properties=properties))
    table.now_ms += HOUR_MS - table.now_ms % HOUR_MS - 60_000
    table.commit(request(table, epoch=0))
    return table


def tags(table: Table) -> dict[str, int]:
    return {
        name: ref.snapshot_id
        for name, ref in table.state.metadata.refs.items()
        if ref.type == "tag"
    }


def test_the_first_commit_after_the_hour_tags_what_was_current_then() -> None:
    table = tagged_table()
    before = table.state.metadata.current_snapshot_id
    within = table.commit(request(table, epoch=1))
    assert tags(table) == {}
    table.now_ms += HOUR_MS
    objects = len(within.objects)
    first = table.commit(request(table, epoch=2))
    assert list(tags(table).values()) == [within.snapshot.snapshot_id]
    assert before != within.snapshot.snapshot_id
    assert (len(first.objects), table.reads) == (objects, 0)
    again = table.commit(request(table, epoch=3))
    assert len(tags(table)) == 1
    assert again.state.metadata == again.swap.metadata


def test_a_commit_to_another_branch_tags_nothing() -> None:
    """A catalog may check that branch alone, so the snapshot to tag may be gone by then."""
    table = tagged_table()
    head = table.state.metadata.current_snapshot_id
    assert head is not None
    table.foreign(SetSnapshotRef("audit", SnapshotRef(head)))
    table.now_ms += HOUR_MS
    table.commit(request(table, epoch=0, branch="audit"))
    assert tags(table) == {}


def test_an_expiry_that_was_chosen_before_the_tag_does_not_remove_what_it_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(expiry, "SNAPSHOTS_MIN", 0)
    table = tagged_table({})
    table.now_ms += HOUR_MS
    table.commit(request(table, epoch=1))
    table.commit(request(table, epoch=2))
    of_the_hour, later, _ = table.state.metadata.snapshots
    table.foreign(SetProperties(PROPERTIES))
    for one, is_taken in ((later, True), (of_the_hour, False)):
        plan = _plan_with(table, one)
        assert (plan.upkeep.expired is not None) == is_taken
        refs = plan.swap.metadata.refs.values()
        assert of_the_hour.snapshot_id in {ref.snapshot_id for ref in refs if ref.type == "tag"}


def _plan_with(table: Table, expired: Snapshot) -> CommitPlan:
    batch, prepared = table.batch(request(table, epoch=9))
    attempt = Attempt(1, UUID(int=9), table.now_ms)
    upkeep = Upkeep(expired=ExpiredSnapshots((expired,)))
    plan = plan_commit(Planning(table.state, batch, prepared, attempt, NO_CHORES, upkeep))
    assert isinstance(plan, CommitPlan)
    return plan
