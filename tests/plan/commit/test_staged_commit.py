"""The plan of a commit whose snapshot gets no ref."""

from __future__ import annotations

from uuid import UUID

from committer.iceberg.updates.metadata_update import AddSnapshot, SetSnapshotRef
from committer.iceberg.updates.requirement import AssertRefSnapshotId
from committer.ledger_entry import parse_entry, property_key
from committer.plan.cleanup.maintenance import Upkeep
from committer.plan.commit.commit import CommitPlan, Planning
from committer.plan.commit.staged_commit import plan_staged_commit
from committer.plan.commit.step_plan import Attempt
from tests.support.builders.flights import build_flights
from tests.support.builders.request_builders import build_request
from tests.support.plan.committing import NO_CHORES, Table

TAGGED = {"frazil.tags.every": "1h"}


def plan_of(table: Table) -> CommitPlan:
    batch, prepared = table.batch(build_request(table.table, partition=("AA",), epoch=7))
    attempt = Attempt(1, UUID(int=9), table.now_ms + 7_200_000)
    plan = plan_staged_commit(Planning(table.state, batch, prepared, attempt, NO_CHORES))
    assert isinstance(plan, CommitPlan)
    return plan


def test_the_head_stays_and_the_swap_requires_that() -> None:
    """A catalog that checks requirements would take it on any head: no update names one."""
    table = Table.of(build_flights(properties=TAGGED))
    head = table.commit(build_request(table.table, partition=("AA",))).snapshot
    plan = plan_of(table)
    assert AssertRefSnapshotId("main", head.snapshot_id) in plan.swap.requirements
    assert not any(isinstance(one, SetSnapshotRef) for one in plan.swap.updates)
    assert sum(isinstance(one, AddSnapshot) for one in plan.swap.updates) == 1
    assert plan.state.metadata.refs == table.state.metadata.refs
    assert plan.upkeep == Upkeep()


def test_the_ledger_names_the_head_and_the_receipt_the_staged_snapshot() -> None:
    table = Table.of(build_flights())
    head = table.commit(build_request(table.table, partition=("AA",))).snapshot
    plan = plan_of(table)
    entry = parse_entry(plan.state.metadata.properties[property_key("query-1")])
    assert {one.snapshot_id for one in entry.latest} == {head.snapshot_id}
    (landed,) = plan.landed.values()
    assert landed.snapshot_id == plan.snapshot.snapshot_id != head.snapshot_id
    assert plan.state.heads == table.state.heads
    again = table.land(plan)
    assert again.state.ledger.frozen == {}


def test_in_a_table_without_snapshots_it_requires_that_there_is_none() -> None:
    plan = plan_of(Table.of(build_flights()))
    assert AssertRefSnapshotId("main", None) in plan.swap.requirements
    assert plan.state.metadata.current_snapshot_id is None
