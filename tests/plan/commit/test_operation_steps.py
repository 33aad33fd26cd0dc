"""Operations in the plan of a commit: steps on one another, conflicts, and what has to be read."""

from __future__ import annotations

from itertools import pairwise
from uuid import UUID

import pytest

from committer.plan.batch.batch import Batch, Step, prepare_manifests
from committer.plan.commit.commit import CommitPlan, NeedsObjects, Planning, plan_commit
from committer.plan.commit.ledger_changes import LedgerCleanup
from committer.plan.commit.operation_step import InConflict
from committer.plan.commit.step_plan import Attempt
from committer.plan.operations import head
from committer.plan.operations.batch_steps import cut
from committer.plan.operations.conflict import ConflictCode
from committer.plan.operations.head import ObjectRange, Objects
from committer.request.request_format import EncodedRequest
from tests.support.builders.flights import build_flights
from tests.support.builders.operation_requests import base_of, build_operation
from tests.support.builders.request_builders import build_request
from tests.support.plan.committing import Table

VERSIONS = pytest.mark.parametrize("format_version", [1, 2, 3])


def table_of(format_version: int = 2, appends: int = 3) -> Table:
    """Return a table with one file of each of so many commits."""
    table = Table.of(build_flights(format_version=format_version))
    for epoch in range(appends):
        table.commit(append(table, "first", epoch))
    return table


def append(table: Table, producer: str, epoch: int = 0) -> EncodedRequest:
    return build_request(table.table, producer=producer, epoch=epoch, partition=("AA",))


def overwrite(table: Table, producer: str, *removed: str, **needs: object) -> EncodedRequest:
    return build_operation(
        table.table,
        "overwrite",
        producer=producer,
        files_count=1,
        partition=("AA",),
        needs={"removed-data-files": list(removed), **needs},
    )


def live(table: Table) -> list[str]:
    return [one.data_file.file_path for one in table.entries() if one.is_live]


def batch_of(table: Table, *requests: EncodedRequest, snapshot_id: int = 9_000) -> Batch:
    checked, _ = table.batch(*requests)
    steps = (Step(step, snapshot_id + number) for number, step in enumerate(cut(checked.requests)))
    return Batch(tuple(steps), UUID(int=77))


def answer(table: Table, batch: Batch, number: int = 1) -> tuple[object, list[set[ObjectRange]]]:
    """Plan, and return the answer with the reads of each round."""
    prepared = prepare_manifests(batch, table.state.metadata)
    attempt = Attempt(number, UUID(int=500 + number), table.now_ms)
    rounds: list[set[ObjectRange]] = []
    read: dict[ObjectRange, bytes] = {}
    while True:
        objects = Objects(read)
        found = plan_commit(
            Planning(table.state, batch, prepared, attempt, LedgerCleanup(), objects=objects)
        )
        if not isinstance(found, NeedsObjects):
            return found, rounds
        assert found.ranges.isdisjoint(read)
        rounds.append(set(found.ranges))
        read |= {one: one.of(table.objects[one.location]) for one in found.ranges}


def landed(table: Table, *requests: EncodedRequest) -> CommitPlan:
    plan, _ = answer(table, batch_of(table, *requests))
    assert isinstance(plan, CommitPlan), plan
    return table.land(plan)


@VERSIONS
def test_operations_on_one_another_are_a_chain_of_snapshots(format_version: int) -> None:
    table = table_of(format_version)
    newest, middle, oldest = live(table)
    plan = landed(
        table,
        append(table, "a"),
        overwrite(table, "b", middle),
        overwrite(table, "c", oldest),
    )
    assert [one.operation for one in plan.snapshots] == ["append", "overwrite", "overwrite"]
    left = live(table)
    assert newest in left
    assert not {middle, oldest}.intersection(left)
    assert len(left) == len(set(left)) == 4
    assert (plan.snapshot.summary or {})["total-data-files"] == "4"
    numbers = [0, 0, 0] if format_version == 1 else [4, 5, 6]
    assert [one.sequence_number for one in plan.snapshots] == numbers
    removed = {
        one.data_file.file_path: one.snapshot_id for one in table.entries() if not one.is_live
    }
    # A manifest without live files stays for the snapshot that emptied it.
    assert removed == {oldest: 9_002}
    if format_version == 3:
        files = [one.data_file for one in table.entries() if one.is_live]
        taken = sorted((one.first_row_id or 0, one.record_count) for one in files)
        assert all(first + count <= after for (first, count), (after, _) in pairwise(taken))
        assert table.state.metadata.next_row_id == sum(
            one.added_rows or 0 for one in table.state.metadata.snapshots
        )


def test_the_files_of_an_earlier_step_can_be_removed_by_a_later_one() -> None:
    table = table_of(appends=1)
    mine = append(table, "a")
    (path,) = (str(one) for one in table.batch(mine)[0].requests[0].manifests[0].walked.paths)
    landed(table, mine, overwrite(table, "b", path))
    assert path not in live(table)
    assert len(live(table)) == 2


def test_all_steps_ask_for_what_they_need_at_once() -> None:
    table = table_of(appends=4)
    first, second, third, _ = live(table)
    batch = batch_of(table, overwrite(table, "a", first), overwrite(table, "b", second, third))
    plan, rounds = answer(table, batch)
    assert isinstance(plan, CommitPlan)
    assert len(rounds) == 1


def test_a_conflict_with_what_has_landed_is_told_from_one_with_the_batch() -> None:
    table = table_of()
    one, other, _ = live(table)
    gone = "memory://warehouse/db/flights/data/gone.parquet"
    requests = [
        overwrite(table, "a", one),
        overwrite(table, "b", one),
        overwrite(table, "c", gone),
        overwrite(table, "d", other),
        overwrite(
            table, "e", other, **base_of(table.state.metadata), **{"isolation-level": "snapshot"}
        ),
    ]
    found, _ = answer(table, batch_of(table, *requests))
    assert isinstance(found, InConflict)
    assert {key: one.code for key, one in found.landed.items()} == {
        requests[2].key: ConflictCode.MISSING
    }
    assert found.waiting == {requests[1].key, requests[4].key}
    # Without them the others land.
    landed(table, requests[0], requests[3])
    found, _ = answer(table, batch_of(table, requests[1], requests[4]))
    assert isinstance(found, InConflict)
    assert set(found.landed) == {requests[1].key, requests[4].key}


def test_an_append_whose_base_never_was_is_told_from_those_that_it_shares_a_snapshot_with() -> None:
    table = table_of()
    absent: dict[str, object] = {"base-snapshot-id": 12345, "base-sequence-number": 99}
    bases = (absent, base_of(table.state.metadata))
    wrong, right = (
        build_operation(
            table.table, "append", producer=name, files_count=1, partition=("AA",), needs=needs
        )
        for name, needs in zip("ab", bases, strict=True)
    )
    found, _ = answer(table, batch_of(table, wrong, right, append(table, "c")))
    assert isinstance(found, InConflict)
    assert {key: one.code for key, one in found.landed.items()} == {
        wrong.key: ConflictCode.NO_ANCESTOR
    }
    assert found.waiting == frozenset()
    landed(table, right, append(table, "c"))


def test_names_of_what_depends_on_the_base_differ_between_attempts() -> None:
    table = table_of()
    batch = batch_of(table, append(table, "a"), overwrite(table, "b", live(table)[1]))
    plans = [answer(table, batch, number)[0] for number in (1, 2)]
    names = []
    for plan in plans:
        assert isinstance(plan, CommitPlan)
        names.append({one.location for one in plan.objects})
    prepared = {one.location for one in prepare_manifests(batch, table.state.metadata)}
    assert names[0] & names[1] == prepared
    assert len(prepared) == 1


@VERSIONS
def test_a_second_attempt_removes_what_its_filter_matches_by_then(format_version: int) -> None:
    """In Iceberg Java, the files that the first attempt has matched become required: the second one
    fails with `Missing required files to delete`."""
    table = table_of(format_version, appends=2)
    first, second = live(table)
    batch = batch_of(table, overwrite(table, "a", **{"row-filter": True}), snapshot_id=9_100)
    plan, _ = answer(table, batch)
    assert isinstance(plan, CommitPlan)
    landed(table, overwrite(table, "b", first))

    plan, _ = answer(table, batch, number=2)

    assert isinstance(plan, CommitPlan), plan
    (path,) = (str(one) for one in batch.requests[0].manifests[0].walked.paths)
    table.land(plan)
    assert live(table) == [path]
    assert second not in live(table)


@VERSIONS
def test_manifests_are_clustered_by_request(format_version: int) -> None:
    table = table_of(format_version)
    before = live(table)
    plan = landed(table, build_operation(table.table, "rewrite-manifests", producer="c"))
    assert plan.snapshot.operation == "replace"
    assert sorted(live(table)) == sorted(before)
    assert len(table.manifests()) == 1


@VERSIONS
def test_named_manifests_are_clustered_and_missing_where_they_are_gone(format_version: int) -> None:
    table = table_of(format_version)
    newest, *others = [row.manifest_path for row in table.manifest_list().rows]
    request, again = (
        build_operation(
            table.table, "rewrite-manifests", producer=name, needs={"rewritten-manifests": others}
        )
        for name in ("c", "d")
    )
    landed(table, request)
    rows = table.manifest_list().rows
    assert [row.manifest_path for row in rows][1:] == [newest]
    assert len(live(table)) == 3
    found, rounds = answer(table, batch_of(table, again))
    assert isinstance(found, InConflict)
    (conflict,) = found.landed.values()
    assert (conflict.code, set(conflict.paths)) == (ConflictCode.MISSING, set(others))
    assert rounds == []


def test_an_operation_that_would_read_too_much_is_told_the_way_out_and_the_others_land(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = table_of()
    newest, *_ = live(table)
    sizes = [row.manifest_length for row in table.manifest_list().rows]
    monkeypatch.setattr(head, "READ_BYTES_MAX", sum(sizes) - 1)
    requests = [append(table, "a"), overwrite(table, "b", newest)]

    found, rounds = answer(table, batch_of(table, *requests))

    assert isinstance(found, InConflict)
    conflict = found.landed[requests[1].key]
    assert conflict.code is ConflictCode.UNDECIDED
    assert f"3 manifests of {sum(sizes)} bytes" in conflict.message
    assert rounds == []
    landed(table, requests[0])


def test_a_manifest_that_cannot_be_read_stops_the_operation_and_no_append() -> None:
    table = table_of()
    newest, *_ = live(table)
    damaged = table.manifest_list().rows[-1].manifest_path
    table.objects[damaged] = table.objects[damaged][:40] + b"not what was written"
    requests = [append(table, "a"), overwrite(table, "b", newest)]

    found, _ = answer(table, batch_of(table, *requests))

    assert isinstance(found, InConflict)
    assert {key: one.code for key, one in found.landed.items()} == {
        requests[1].key: ConflictCode.UNDECIDED
    }
    assert damaged in found.landed[requests[1].key].message
    landed(table, requests[0])
