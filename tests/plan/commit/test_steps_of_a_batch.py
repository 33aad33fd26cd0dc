"""A batch of several steps lands by one swap, as a chain of snapshots."""

from __future__ import annotations

from itertools import pairwise
from uuid import UUID

import pytest

from committer.iceberg.updates.metadata_update import AddSnapshot, SetProperties, SetSnapshotRef
from committer.ledger_entry import property_key
from committer.plan.batch.batch import Batch, Step, prepare_manifests
from committer.plan.commit.attempt_log import AttemptLog
from committer.plan.commit.commit import CommitPlan
from committer.plan.ledger.evidence import COUNT_KEY, read_evidence
from committer.plan.ledger.state import TableState
from tests.support.builders.flights import build_flights
from tests.support.builders.request_builders import build_request
from tests.support.plan.committing import Table

VERSIONS = pytest.mark.parametrize("format_version", [1, 2, 3])


def table_of(format_version: int = 2) -> Table:
    """Return a table with one commit."""
    table = Table.of(build_flights(format_version=format_version))
    table.commit(build_request(table.table, producer="first", partition=("AA",)))
    return table


def batch_of(table: Table, *counts: int) -> Batch:
    """Return a batch with one step for each count, of so many requests."""
    steps = []
    for number, count in enumerate(counts):
        requests = [
            build_request(table.table, producer=f"writer-{number}", epoch=epoch, partition=("BB",))
            for epoch in range(count)
        ]
        batch, _ = table.batch(*requests)
        steps.append(Step(batch.requests, 9_000 + number))
    return Batch(tuple(steps), UUID(int=77))


def plan_of(table: Table, batch: Batch, number: int = 1) -> CommitPlan:
    return table.plan(batch, prepare_manifests(batch, table.state.metadata), number=number)


@VERSIONS
def test_each_step_is_a_snapshot_on_the_one_before(format_version: int) -> None:
    table = table_of(format_version)
    before = table.state.metadata
    plan = table.land(plan_of(table, batch_of(table, 1, 2, 1)))
    metadata = table.state.metadata
    first, *added = metadata.snapshots
    assert [one.snapshot_id for one in added] == [9_000, 9_001, 9_002]
    assert [one.parent_snapshot_id for one in added] == [first.snapshot_id, 9_000, 9_001]
    numbers = [0, 0, 0] if format_version == 1 else [2, 3, 4]
    assert [one.sequence_number for one in added] == numbers
    assert metadata.last_sequence_number == (0 if format_version == 1 else 4)
    times = [one.timestamp_ms for one in added]
    assert sorted(set(times)) == times
    assert plan.snapshots == tuple(added)
    assert plan.snapshot is added[-1] is metadata.current_snapshot
    # The reader of a time finds the head: the log has none of the steps before.
    assert [one.snapshot_id for one in metadata.snapshot_log] == [first.snapshot_id, 9_002]
    changes = [type(one) for one in plan.swap.updates]
    assert changes.count(AddSnapshot) == 3
    assert changes.count(SetSnapshotRef) == 1
    assert len(metadata.metadata_log) == len(before.metadata_log) + 1


@VERSIONS
def test_later_lists_keep_what_earlier_steps_were_given(format_version: int) -> None:
    table = table_of(format_version)
    table.land(plan_of(table, batch_of(table, 1, 2, 1)))
    snapshots = table.state.metadata.snapshots
    rows = [table.manifest_list(one).rows for one in snapshots]
    assert [len(one) for one in rows] == [1, 2, 3, 4]
    for earlier, later in pairwise(rows):
        assert later[1:] == earlier
    for snapshot, (newest, *_) in zip(snapshots, rows, strict=True):
        assert newest.added_snapshot_id == snapshot.snapshot_id
        assert newest.sequence_number == snapshot.sequence_number
    entries = table.entries()
    assert len({one.data_file.file_path for one in entries}) == 5
    if format_version == 3:
        first_ids = [one.first_row_id for one in snapshots]
        assert first_ids == [0, 10, 20, 40]
        assert [one.added_rows for one in snapshots] == [10, 10, 20, 10]
        assert [one[0].first_row_id for one in rows] == first_ids
        assert table.state.metadata.next_row_id == 50


def test_totals_and_requests_are_those_of_each_step() -> None:
    table = table_of()
    batch = batch_of(table, 1, 2)
    plan = table.land(plan_of(table, batch))
    summaries = [one.summary or {} for one in plan.snapshots]
    assert [one["total-data-files"] for one in summaries] == ["2", "4"]
    assert [one["added-data-files"] for one in summaries] == ["1", "2"]
    assert [one[COUNT_KEY] for one in summaries] == ["1", "2"]
    for step, snapshot in zip(batch.steps, plan.snapshots, strict=True):
        proven = read_evidence(table.objects[snapshot.manifest_list or ""], snapshot)
        assert len(proven) == len(step.requests)
        for checked in step.requests:
            landed = plan.landed[checked.request.inbox_key]
            assert landed == proven[checked.request.producer.id, checked.request.epoch]
            assert landed.snapshot_id == step.snapshot_id
            entry = table.state.ledger.entries[property_key(checked.request.producer.id)]
            assert landed in entry.latest


def test_the_state_in_memory_is_the_one_that_a_reader_finds() -> None:
    table = table_of()
    table.land(plan_of(table, batch_of(table, 2, 1)))
    decoded = table.manifest_list()
    (head,) = table.state.heads.values()
    assert decoded.rows == tuple(listed.row for listed in head)
    assert decoded.encoded_rows == tuple(listed.encoded for listed in head)
    reads = table.reads
    table.commit(build_request(table.table, producer="next", partition=("AA",)))
    assert table.reads == reads


def test_a_lost_attempt_is_known_by_any_of_its_snapshots() -> None:
    table = table_of()
    batch = batch_of(table, 1, 1)
    base, plan, other = table.state, plan_of(table, batch, 1), plan_of(table, batch, 2)
    for landed in (plan, other):
        attempts = AttemptLog()
        attempts.loaded(base)
        for sent in (plan, other):
            attempts.sending(sent, ())
            attempts.lost(sent)
        attempts.loaded(TableState.of(landed.state.table))
        resolved = attempts.take_resolved()
        assert [one.swap for one in resolved.landed] == [landed.swap]
        assert len(resolved.absent) == 1


def test_all_lists_of_a_dead_attempt_are_garbage_and_the_manifests_that_it_shares_are_not() -> None:
    table = table_of()
    batch = batch_of(table, 1, 1)
    dead = plan_of(table, batch, 1)
    attempts = AttemptLog()
    attempts.loaded(table.state)
    attempts.sending(dead, (dead.swap.metadata_location,))
    attempts.refused(dead)
    table.foreign(SetProperties({"foreign": "1"}))
    attempts.loaded(table.state)
    landing = plan_of(table, batch, 2)
    attempts.sending(landing, (landing.swap.metadata_location,))
    table.land(landing)
    attempts.landed(table.state)
    (garbage,) = attempts.take_garbage(())
    assert len(dead.manifest_lists) == 2
    assert set(garbage.files) == {*dead.manifest_lists, dead.swap.metadata_location}
