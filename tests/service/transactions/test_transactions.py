"""The requests of a transaction land on all of its tables by one swap, or on none."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Literal
from uuid import UUID

import pytest

from committer.ports.pointer_swap import GroupAnswer, Swap
from committer.reason import Reason
from committer.request.needs import Needs
from committer.request.receipt_model import ReceiptState
from committer.request.request_format import seal_request
from committer.service.requests import large_requests
from committer.service.requests.inbox_keys import InboxKey
from committer.service.table import transaction_part
from committer.storage.inbox.replays import Replays
from tests.support.builders.request_builders import (
    LARGE_FILES,
    build_line,
    build_request,
    large,
    ordered,
    seal,
    sealed_manifests,
)
from tests.support.builders.transactions import build_group, build_transaction, in_transaction
from tests.support.faults.faulty_catalog import Fault, FaultyCatalog
from tests.support.memory.requirements_catalog import RequirementsCatalog
from tests.support.service.outside import foreign_commit
from tests.support.service.service_harness import ServiceHarness
from tests.support.service.several_tables import NAMES, counts, create, publish, transactions

VIRTUAL_TIME = True


async def test_requests_of_one_transaction_land_by_one_swap_that_each_snapshot_names() -> None:
    harness = ServiceHarness()
    requests = build_group(await create(harness))
    await publish(harness, requests)
    await harness.run_until_settled()
    assert await counts(harness) == [1, 1, 1]
    assert harness.catalog.calls["swap_together"] == 1
    assert harness.catalog.calls["swap"] == 0
    assert await harness.outstanding() == []
    transaction = requests[0].request.transaction
    assert transaction is not None
    for name in NAMES:
        assert await transactions(harness, name) == [str(transaction.id)]
    receipts = await harness.receipts()
    assert [one.state for one in receipts] == [ReceiptState.COMMITTED] * 3


async def test_a_request_waits_for_the_others_and_its_neighbors_do_not() -> None:
    harness = ServiceHarness()
    tables = await create(harness)
    first, *others = build_group(tables)
    async with harness.running():
        await harness.publish(first)
        for epoch in range(3):
            await harness.publish(build_request(tables[0], producer="lone", epoch=epoch))
            await harness.settle(40.0)
        assert await counts(harness) == [3, 0, 0]
        assert "db.ships, db.trains" in harness.health.conditions["transactions"]
        await publish(harness, others)
        await harness.settle(1.0)
        assert await counts(harness) == [4, 1, 1]
        assert "transactions" not in harness.health.conditions
    assert await harness.outstanding() == []


async def test_a_steady_transaction_reads_nothing_and_swaps_once() -> None:
    harness = ServiceHarness()
    tables = await create(harness)
    async with harness.running():
        await publish(harness, build_group(tables))
        await harness.settle()
        for epoch in (1, 2):
            requests = build_group(tables, epoch=epoch)
            for sealed in requests:
                await harness.inbox.put(sealed)
            harness.storage.calls.clear()
            harness.catalog.calls.clear()
            for sealed in requests:
                await harness.publish(sealed, durable=False)
            await harness.settle(5.0)
            assert dict(harness.storage.calls) == {"create": 3}
            assert dict(harness.catalog.calls) == {"swap_together": 1}
    assert await counts(harness) == [3, 3, 3]


@pytest.mark.parametrize("interval_ms", [0, 3_600_000])
async def test_a_request_is_passed_by_a_bounded_number_of_transactions(interval_ms: int) -> None:
    """However many are complete, and though its table commits once an hour else."""
    harness = ServiceHarness(min_interval_ms=interval_ms)
    tables = await create(harness)
    count = 48
    for epoch in range(count):
        await publish(harness, build_group(tables, epoch=epoch))
    async with harness.running():
        for _ in range(10_000):
            if len(await transactions(harness, NAMES[0])) >= 3:
                break
            await asyncio.sleep(0)
        await harness.publish(build_request(tables[0], producer="lone"))
        await harness.settle(60.0)
    without = [one is None for one in await transactions(harness, NAMES[0])]
    # Those that had landed when it came, the one that had the turn, and one that was next.
    assert without.index(True) <= 5
    assert len(without) == count + 1
    assert await harness.outstanding() == []


async def test_an_incomplete_transaction_is_quarantined_after_its_bound_and_nothing_lands() -> None:
    harness = ServiceHarness()
    tables = await create(harness)
    await publish(harness, build_group(tables)[:2])
    await harness.publish(build_request(tables[0], producer="lone"))
    async with harness.running():
        await harness.settle(590.0)
        assert await harness.quarantined() == []
        assert len(await harness.outstanding()) == 2
        await harness.settle(60.0)
    records = await harness.quarantined()
    assert [one.reason for one in records] == [Reason.TRANSACTION_INCOMPLETE.value] * 2
    assert all("`db.trains`" in one.message for one in records)
    assert await counts(harness) == [1, 0, 0]
    assert await harness.outstanding() == []


async def test_every_incomplete_transaction_is_quarantined_when_its_bound_is_over() -> None:
    """However its times are rounded."""
    harness = ServiceHarness()
    tables = await create(harness)
    await harness.settle(450.123456789)
    async with harness.running():
        for epoch in range(100):
            await harness.settle(0.0137464155705349)
            await harness.publish(build_group(tables, epoch=epoch)[0])
        await harness.settle(601.0)
        assert len(await harness.quarantined()) == 100


@pytest.mark.parametrize("came_late", [False, True])
async def test_an_incomplete_transaction_that_is_replayed_lands(came_late: bool) -> None:
    """The missing request came too late, so that it is replayed as well; or beside the replays."""
    harness = ServiceHarness()
    *early, late = build_group(await create(harness))
    await publish(harness, early)
    async with harness.running():
        await harness.settle(650.0)
        if came_late:
            await harness.publish(late)
            await harness.settle(650.0)
        replays = Replays(harness.storage.inner, harness.root)
        for sealed in (*early, late) if came_late else early:
            replayed = await replays.replay(sealed.key, harness.world.uuid())
            await harness.publish(replayed, durable=False)
        if not came_late:
            await harness.publish(late)
        await harness.settle(60.0)
    assert await counts(harness) == [1, 1, 1]
    assert harness.catalog.calls["swap_together"] == 1
    assert await harness.outstanding() == []
    assert await harness.quarantined() == []


async def test_requests_that_name_other_tables_under_one_id_are_no_transaction() -> None:
    harness = ServiceHarness()
    flights, ships, trains = await create(harness)
    known = UUID(int=7)
    ours = in_transaction(build_request(flights), build_transaction([flights, ships], id=known))
    theirs = in_transaction(build_request(ships), build_transaction([ships, trains], id=known))
    await publish(harness, [ours, theirs])
    await harness.run_until_settled(seconds=700.0)
    assert await counts(harness) == [0, 0, 0]
    records = await harness.quarantined()
    assert [one.reason for one in records] == [Reason.TRANSACTION_INCOMPLETE.value] * 2


async def test_a_refused_member_keeps_the_others_from_landing() -> None:
    harness = ServiceHarness()
    tables = await create(harness)
    transaction = build_transaction(tables)
    requests = [in_transaction(build_request(table), transaction) for table in tables]
    requests[1] = in_transaction(build_request(tables[1], branch="absent"), transaction)
    await publish(harness, requests)
    await harness.run_until_settled(seconds=5.0)
    assert await counts(harness) == [0, 0, 0]
    records = await harness.quarantined()
    incomplete = Reason.TRANSACTION_INCOMPLETE.value
    assert sorted(one.reason for one in records) == [
        Reason.BRANCH_UNKNOWN.value,
        incomplete,
        incomplete,
    ]
    told = [one.message for one in records if one.reason == incomplete]
    assert all("the request for `db.ships` was refused (branch_unknown)" in one for one in told)


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0), (2, 0, 1)])
async def test_the_others_of_a_refused_request_do_not_wait_for_their_time_limit(
    order: tuple[int, ...],
) -> None:
    """Whether they were there before, or come later."""
    harness = ServiceHarness()
    tables = await create(harness)
    transaction = build_transaction(tables)
    requests = [in_transaction(build_request(table), transaction) for table in tables]
    requests[1] = in_transaction(build_request(tables[1], branch="absent"), transaction)
    async with harness.running():
        for number in order:
            await harness.publish(requests[number])
            await harness.settle(3.0)
        assert await harness.outstanding() == []
        assert "transactions" not in harness.health.conditions
    assert await counts(harness) == [0, 0, 0]


async def test_a_request_that_replaces_a_refused_one_completes_its_transaction() -> None:
    harness = ServiceHarness()
    tables = await create(harness)
    transaction = build_transaction(tables)
    flights, ships, trains = (in_transaction(build_request(one), transaction) for one in tables)
    wrong = in_transaction(build_request(tables[1], producer="w", branch="absent"), transaction)
    async with harness.running():
        await publish(harness, [wrong])
        await harness.settle(3.0)
        await publish(harness, [ships])
        await harness.settle(3.0)
        await publish(harness, [flights, trains])
        await harness.settle(3.0)
    assert await counts(harness) == [1, 1, 1]


@pytest.mark.parametrize("comes_later", [False, True])
async def test_a_request_that_was_refused_beside_a_good_one_of_its_table_stops_nothing(
    *, comes_later: bool
) -> None:
    harness = ServiceHarness()
    tables = await create(harness)
    transaction = build_transaction(tables)
    flights, ships, trains = (in_transaction(build_request(one), transaction) for one in tables)
    wrong = in_transaction(build_request(tables[1], producer="w", branch="absent"), transaction)
    async with harness.running():
        await publish(harness, [ships, flights])
        if comes_later:
            await harness.settle(3.0)
        await publish(harness, [wrong])
        await harness.settle(3.0)
        await publish(harness, [trains])
        await harness.settle(3.0)
    assert await counts(harness) == [1, 1, 1]
    assert len(await harness.quarantined()) == 1


@pytest.mark.parametrize("comes_before_the_rest", [True, False])
async def test_a_second_request_of_a_table_is_quarantined_and_the_first_one_lands(
    comes_before_the_rest: bool,
) -> None:
    """At once, and it is not told that nothing of the transaction has landed."""
    harness = ServiceHarness()
    tables = await create(harness)
    transaction = build_transaction(tables)
    flights, ships, trains = (in_transaction(build_request(one), transaction) for one in tables)
    second = in_transaction(build_request(tables[1], producer="w"), transaction)
    async with harness.running():
        await publish(harness, [ships, flights, second])
        if comes_before_the_rest:
            await harness.settle(3.0)
            assert [one.key for one in await harness.quarantined()] == [second.key]
        await publish(harness, [trains])
        await harness.settle(3.0)
        assert await counts(harness) == [1, 1, 1]
    (record,) = await harness.quarantined()
    assert (record.key, record.reason) == (second.key, Reason.TRANSACTION_INCOMPLETE.value)
    assert f"`{ships.key}` is this table's" in record.message


async def test_a_second_request_that_comes_late_is_told_of_itself_alone() -> None:
    harness = ServiceHarness()
    tables = await create(harness)
    transaction = build_transaction(tables)
    second = in_transaction(build_request(tables[1], producer="w"), transaction)
    async with harness.running():
        await publish(harness, [in_transaction(build_request(one), transaction) for one in tables])
        await harness.settle(3.0)
        await publish(harness, [second])
        await harness.settle(700.0)
    assert await counts(harness) == [1, 1, 1]
    (record,) = await harness.quarantined()
    assert "so this request has not landed" in record.message


async def test_another_attempt_of_an_epoch_waits_and_is_its_duplicate() -> None:
    harness = ServiceHarness()
    tables = await create(harness)
    transaction = build_transaction(tables)
    flights, ships, trains = (in_transaction(build_request(one), transaction) for one in tables)
    nonce = harness.world.uuid()
    again = in_transaction(build_request(tables[1], nonce=nonce), transaction)
    async with harness.running():
        await publish(harness, [ships, again, flights])
        await harness.settle(3.0)
        assert await harness.quarantined() == []
        await publish(harness, [trains])
        await harness.settle(60.0)
    assert await counts(harness) == [1, 1, 1]
    assert await harness.quarantined() == []
    assert sum(one.duplicate for one in await harness.receipts()) == 1


@pytest.mark.parametrize(
    "faults",
    [
        (Fault.LOST_REPLY,),
        (Fault.REQUEST_LOST,),
        (Fault.CONFLICT, Fault.LOST_REPLY),
        (Fault.UNAVAILABLE, Fault.REQUEST_LOST, Fault.CONFLICT),
        (Fault.CRASHED,),
        (Fault.RESENT,),
        (Fault.REQUEST_LOST,) * 8,
    ],
)
@pytest.mark.parametrize("has_requirements", [False, True])
async def test_whatever_becomes_of_an_attempt_all_tables_land_once(
    faults: tuple[Fault, ...], has_requirements: bool
) -> None:
    """On a catalog that holds a pointer, and on one that checks requirements, as REST servers."""
    harness = ServiceHarness()
    if has_requirements:
        inner = RequirementsCatalog(storage=harness.storage.inner, world=harness.world)
        harness.catalog = FaultyCatalog(inner)
    await publish(harness, build_group(await create(harness)))
    harness.catalog.plan(*faults)
    await harness.run_until_settled(seconds=400.0)
    assert await counts(harness) == [1, 1, 1]
    assert await harness.outstanding() == []
    assert await harness.quarantined() == []


async def test_an_attempt_that_lands_late_shuts_the_next_one_out() -> None:
    harness = ServiceHarness()
    await publish(harness, build_group(await create(harness)))
    harness.catalog.plan(Fault.LANDS_LATE, Fault.UNAVAILABLE)
    async with harness.running():
        await harness.settle(0.5)
        await harness.catalog.land_late()
        await harness.settle(120.0)
    assert await counts(harness) == [1, 1, 1]
    assert await harness.outstanding() == []


@pytest.mark.parametrize("moved", [0, 1])
async def test_an_attempt_that_has_not_landed_leaves_no_batch_behind(moved: int) -> None:
    """The rounds of a table would send it again at once; they wait for their turn as ever."""
    harness = ServiceHarness()
    tables = await create(harness, "db.flights", "db.ships")
    inner = harness.catalog.swap_together

    async def swap_together(swaps: Sequence[Swap]) -> GroupAnswer:
        await foreign_commit(harness, tables[moved])
        return await inner(swaps)

    harness.catalog.swap_together = swap_together  # type: ignore[method-assign]  # comes first
    async with harness.running():
        await publish(harness, build_group(tables))
        for _ in range(20):
            await harness.settle(0.05)
            assert not any(table.rounds.batches.are_urgent for table in harness.tables.all)
        assert harness.catalog.calls["swap_together"] > 2


async def test_a_rejected_transaction_is_quarantined_on_every_table() -> None:
    harness = ServiceHarness()
    tables = await create(harness)
    await publish(harness, build_group(tables))
    harness.catalog.plan(Fault.REJECTED)
    async with harness.running():
        await harness.settle(700.0)
        await harness.publish(build_request(tables[0], producer="lone"))
        await harness.settle()
    assert await counts(harness) == [1, 0, 0]
    records = await harness.quarantined()
    assert len(records) == 3
    assert Reason.COMMIT_REJECTED.value in {one.reason for one in records}


async def test_a_foreign_commit_to_one_table_makes_all_be_planned_again() -> None:
    harness = ServiceHarness()
    tables = await create(harness)
    async with harness.running():
        await publish(harness, build_group(tables))
        await harness.settle()
        await foreign_commit(harness, tables[1])
        await publish(harness, build_group(tables, epoch=1))
        await harness.settle(120.0)
    assert await counts(harness, "db.flights", "db.trains") == [2, 2]
    assert await harness.outstanding() == []
    assert harness.catalog.calls["swap_together"] == 3


async def test_a_table_that_commits_once_an_hour_is_not_waited_for() -> None:
    harness = ServiceHarness()
    slow = {"frazil.commit.min-interval-ms": "3600000"}
    tables = [
        await harness.create_table("db.flights"),
        await harness.create_table("db.ships", properties=slow),
    ]
    async with harness.running():
        await harness.publish(build_request(tables[1], producer="lone"))
        await harness.settle(2.0)
        await harness.publish(build_request(tables[1], producer="lone", epoch=1))
        await harness.settle(2.0)
        await publish(harness, build_group(tables))
        await harness.settle(2.0)
        assert await counts(harness, "db.flights", "db.ships") == [1, 2]


async def test_transactions_over_the_same_tables_never_wait_for_each_other() -> None:
    harness = ServiceHarness()
    tables = await create(harness)
    pairs = [tables[:2], tables[1:], [tables[2], tables[0]]]
    async with harness.running():
        for epoch in range(5):
            for number, pair in enumerate(pairs):
                await publish(harness, build_group(pair, producer=f"p{number}", epoch=epoch))
            for number, table in enumerate(tables):
                lone = build_request(table, producer=f"lone-{number}", epoch=epoch)
                await harness.publish(lone)
        await harness.settle(60.0)
        assert await counts(harness) == [15, 15, 15]
    assert await harness.outstanding() == []
    assert harness.catalog.calls["swap_together"] == 15


async def test_a_transaction_outlives_the_committer_at_any_point_of_its_way() -> None:
    harness = ServiceHarness()
    requests = build_group(await create(harness))
    await harness.publish(requests[0])
    await harness.run_until_settled(seconds=5.0)
    await publish(harness, requests[1:])
    harness.catalog.plan(Fault.LOST_REPLY)
    await harness.run_until_settled(seconds=0.001)
    async with harness.running(reconcile_interval_s=5.0):
        await harness.settle(60.0)
    assert await counts(harness) == [1, 1, 1]
    assert await harness.outstanding() == []


async def test_a_transaction_that_comes_again_is_told_that_it_has_landed() -> None:
    harness = ServiceHarness()
    tables = await create(harness)
    known = UUID(int=9)
    async with harness.running():
        await publish(harness, build_group(tables, id=known))
        await harness.settle()
        await publish(harness, build_group(tables, id=known))
        await harness.settle()
    assert await counts(harness) == [1, 1, 1]
    assert await harness.outstanding() == []
    assert harness.catalog.calls["swap_together"] == 1
    assert sum(one.duplicate for one in await harness.receipts()) == 3


async def test_each_transaction_that_waits_is_counted_in_one_condition() -> None:
    harness = ServiceHarness()
    tables = await create(harness)
    async with harness.running():
        groups = [build_group(tables, producer=f"p{number}") for number in range(3)]
        for group in groups:
            await harness.publish(group[0])
        await harness.settle(70.0)
        assert "and 2 more" in harness.health.conditions["transactions"]
        for group in groups:
            await publish(harness, group[1:])
        await harness.settle(5.0)
        assert harness.health.conditions == {}
    assert await counts(harness) == [3, 3, 3]


async def test_a_conflict_is_looked_for_again_if_this_committer_has_committed_since() -> None:
    """Another transaction has landed before the round that was to decide: maybe what it needs."""
    harness = ServiceHarness()
    tables = await create(harness)
    requests = build_group(tables)
    ships = InboxKey(requests[1].key)
    async with harness.running():
        await publish(harness, requests[:2])
        await harness.settle(5.0)
        (committer,) = (one for one in harness.tables.all if str(one.identifier) == "db.ships")
        moves = committer.rounds.cached_table.moves
        await harness.publish(build_request(tables[1], producer="lone"))
        await harness.settle(5.0)
        refusal = (Reason.CONFLICT, "a file is missing")
        committer.waiting.suspect(ships, refusal, "missing", moves)
        committer.waiting.leave_transaction([ships])
        await harness.settle(5.0)
        assert await harness.quarantined() == []
        await harness.publish(requests[2])
        await harness.settle(5.0)
    assert await counts(harness) == [1, 2, 1]


async def test_a_member_in_conflict_keeps_the_others_from_landing() -> None:
    harness = ServiceHarness()
    tables = await create(harness)
    transaction = build_transaction(tables)
    absent = f"{tables[1].metadata.location}/data/absent.parquet"
    removal = build_line(tables[1]).model_copy(
        update={
            "operation": "delete",
            "needs": Needs(removed_data_files=(absent,)),
            "transaction": transaction,
            "manifests": (),
            "files": (),
        }
    )
    requests = [in_transaction(build_request(table), transaction) for table in tables]
    requests[1] = seal_request(removal, ())
    await publish(harness, requests)
    await harness.run_until_settled(seconds=5.0)
    assert await counts(harness) == [0, 0, 0]
    reasons = sorted(one.reason for one in await harness.quarantined())
    incomplete = Reason.TRANSACTION_INCOMPLETE.value
    assert reasons == [Reason.CONFLICT.value, incomplete, incomplete]


@pytest.mark.parametrize("asks", ["fail", "quarantine"])
async def test_the_others_of_a_conflict_that_is_only_told_are_told_too_if_they_ask_for_it(
    asks: Literal["fail", "quarantine"],
) -> None:
    harness = ServiceHarness()
    tables = await create(harness)
    transaction = build_transaction(tables)
    flights, ships, trains = (in_transaction(build_request(one), transaction) for one in tables)
    absent = f"{tables[1].metadata.location}/data/absent.parquet"
    gone = Needs(removed_data_files=(absent,), on_conflict="fail")
    line = ships.request.model_copy(
        update={"operation": "delete", "needs": gone, "manifests": (), "files": ()}
    )
    asking = trains.request.model_copy(update={"needs": Needs(on_conflict=asks), "manifests": ()})
    trains = seal(asking, sealed_manifests(trains))
    await publish(harness, [flights, seal_request(line, ()), trains])
    await harness.run_until_settled(seconds=5.0)
    assert await counts(harness) == [0, 0, 0]
    records = {one.table: one for one in await harness.quarantined()}
    incomplete = Reason.TRANSACTION_INCOMPLETE.value
    assert records["db.ships"].is_told_only
    assert (records["db.trains"].reason, records["db.trains"].conflict) == (incomplete, "missing")
    assert records["db.trains"].is_told_only == (asks == "fail")
    assert not records["db.flights"].is_told_only


async def test_operations_of_one_transaction_see_each_other_on_no_table() -> None:
    """An append to one table and a removal from another land as one change."""
    harness = ServiceHarness()
    tables = await create(harness, "db.flights", "db.ships")
    async with harness.running():
        await harness.publish(build_request(tables[0], producer="lone"))
        await harness.settle(5.0)
        (moved,) = await harness.live_files("db.flights")
        transaction = build_transaction(tables)
        removal = build_line(tables[0]).model_copy(
            update={
                "operation": "delete",
                "needs": Needs(removed_data_files=(moved.file_path,)),
                "transaction": transaction,
                "files": (),
            }
        )
        await harness.publish(seal_request(removal, ()))
        await harness.publish(in_transaction(build_request(tables[1]), transaction))
        await harness.settle(5.0)
    assert await counts(harness, "db.flights", "db.ships") == [0, 1]
    assert await harness.outstanding() == []


async def test_a_called_transaction_does_not_pass_the_batch_in_flight() -> None:
    harness = ServiceHarness()
    tables = await create(harness)
    async with harness.running():
        harness.catalog.swap_s["db.flights"] = 5.0
        harness.catalog.plan(Fault.CONFLICT)
        await harness.publish(build_request(tables[0], producer="lone"))
        await harness.settle(1.0)
        await publish(harness, build_group(tables))
        await harness.settle(30.0)
    assert [one is None for one in await transactions(harness, NAMES[0])] == [True, False]
    assert await harness.outstanding() == []


async def test_a_flood_of_incomplete_transactions_waits_in_the_inbox_and_delays_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transaction_part, "JOINED_MAX", 10)
    harness = ServiceHarness()
    tables = await create(harness)
    async with harness.running(reconcile_interval_s=10.0):
        for number in range(40):
            await harness.publish(build_group(tables, producer=f"flood-{number}")[0])
        await harness.settle(5.0)
        held = sum(len(table.waiting) for table in harness.tables.all)
        assert held <= 10
        await harness.publish(build_request(tables[0], producer="lone"))
        await harness.settle(5.0)
        assert await counts(harness) == [1, 0, 0]
        await harness.settle(6_000.0)
    assert len(await harness.quarantined()) == 40
    assert await harness.outstanding() == []


async def test_large_requests_of_incomplete_transactions_leave_room_to_other_tables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harness = ServiceHarness()
    tables = await create(harness)
    other = await harness.create_table("db.other")
    size_bytes = len(large(other, "x").content)
    monkeypatch.setattr(large_requests, "IN_HAND_BYTES_MAX", 9 * size_bytes // 2)
    monkeypatch.setattr(transaction_part, "JOINED_LARGE_BYTES_MAX", 9 * size_bytes // 8)
    transactions = [build_transaction(tables[:2]) for _ in range(4)]
    first, second = (
        [
            in_transaction(large(table, f"t{number}"), transaction)
            for number, transaction in enumerate(transactions)
        ]
        for table in tables[:2]
    )
    async with harness.running(reconcile_interval_s=30.0):
        await publish(harness, first)
        await harness.settle(10.0)
        before = harness.inbox_storage.calls["get"]
        await harness.publish(large(other, "innocent"))
        await harness.settle(50.0)
        # To find its size, and whole. What was returned is not read again so soon.
        assert harness.inbox_storage.calls["get"] == before + 2
        assert len(await harness.live_files("db.other")) == LARGE_FILES
        # A request that was returned to the inbox still completes its transaction.
        await publish(harness, second)
        await harness.settle(300.0)
    assert await counts(harness, "db.flights", "db.ships") == [4 * LARGE_FILES] * 2
    assert await harness.outstanding() == []


async def test_an_epoch_of_an_ordered_producer_waits_for_a_lower_one_in_a_transaction() -> None:
    harness = ServiceHarness()
    tables = await create(harness)
    first, *others = map(ordered, build_group(tables))
    async with harness.running():
        await harness.publish(first)
        await harness.publish(ordered(build_request(tables[0], epoch=1)))
        await harness.settle(5.0)
        assert await counts(harness) == [0, 0, 0]
        await publish(harness, others)
        await harness.settle(60.0)
    assert await counts(harness) == [2, 1, 1]
    assert [one is None for one in await transactions(harness, NAMES[0])] == [False, True]


async def test_a_transaction_of_an_ordered_producer_waits_for_its_lower_epochs() -> None:
    harness = ServiceHarness()
    tables = await create(harness)
    first, *others = map(ordered, build_group(tables, epoch=1))
    async with harness.running():
        await publish(harness, others)
        await harness.settle(5.0)
        await harness.publish(ordered(build_request(tables[0], epoch=0)))
        await harness.publish(first)
        await harness.settle(60.0)
    assert await counts(harness) == [2, 1, 1]
    assert [one is None for one in await transactions(harness, NAMES[0])] == [True, False]


async def test_transactions_of_ordered_producers_land_one_after_the_other_at_once() -> None:
    """Each waits for the one before, and goes on as soon as that has landed."""
    harness = ServiceHarness()
    tables = await create(harness)
    async with harness.running():
        for epoch in reversed(range(12)):
            await publish(harness, [ordered(one) for one in build_group(tables, epoch=epoch)])
        await harness.settle(15.0)
        assert await counts(harness) == [12, 12, 12]
    assert await harness.quarantined() == []


async def test_a_conflict_with_a_stale_state_of_a_table_ends_no_transaction() -> None:
    """The client has read a file of another committer that this one has not seen yet."""
    harness = ServiceHarness()
    tables = await create(harness)
    async with harness.running():
        await publish(harness, [build_request(table, producer="before") for table in tables])
        await harness.settle(5.0)
        known = {file.file_path for file in await harness.live_files("db.ships")}
        rival = ServiceHarness(beside=harness, root="memory://rival")
        rival.catalog = harness.catalog
        await rival.publish(build_request(tables[1], producer="rival"))
        await rival.run_until_settled()
        theirs = {file.file_path for file in await harness.live_files("db.ships")} - known
        transaction = build_transaction(tables)
        flights, ships, trains = (in_transaction(build_request(one), transaction) for one in tables)
        needs = Needs(removed_data_files=tuple(theirs))
        line = ships.request.model_copy(update={"operation": "overwrite", "needs": needs})
        ships = seal(line.model_copy(update={"manifests": ()}), sealed_manifests(ships))
        await publish(harness, [flights, ships, trains])
        await harness.settle(30.0)
    assert await harness.quarantined() == []
    assert await counts(harness) == [2, 2, 2]
    assert theirs.isdisjoint(file.file_path for file in await harness.live_files("db.ships"))


async def test_a_transaction_does_not_land_with_a_request_that_has_left_the_inbox() -> None:
    """Another committer may have ended it, and the ledger know nothing of its producer."""
    harness = ServiceHarness()
    tables = await create(harness)
    flights, ships, trains = build_group(tables)
    async with harness.running():
        await publish(harness, [flights, ships])
        await harness.settle(5.0)
        await harness.storage.inner.delete((harness.inbox.location(flights.key),))
        await foreign_commit(harness, tables[0])
        await harness.publish(build_request(tables[0], producer="lone"))
        await harness.settle(5.0)
        await harness.publish(trains)
        await harness.settle(700.0)
    assert await counts(harness) == [1, 0, 0]
    assert len(await harness.quarantined()) == 2


async def test_a_conflict_is_looked_for_again_if_another_committer_has_committed_since() -> None:
    """The request rests on a file that had not landed when the table was loaded."""
    harness = ServiceHarness()
    tables = await create(harness)
    rival = ServiceHarness(beside=harness, root="memory://rival")
    rival.catalog = harness.catalog
    theirs = build_request(tables[1], producer="rival")
    location = tables[1].metadata.location
    path = f"{location}/data/00000-{theirs.request.attempt}.parquet"
    async with harness.running():
        await publish(harness, [build_request(table, producer="before") for table in tables])
        await harness.settle(5.0)
        transaction = build_transaction(tables)
        flights, ships, trains = (in_transaction(build_request(one), transaction) for one in tables)
        needs = Needs(removed_data_files=(path,))
        line = ships.request.model_copy(update={"operation": "overwrite", "needs": needs})
        ships = seal(line.model_copy(update={"manifests": ()}), sealed_manifests(ships))
        await publish(harness, [flights, ships])
        await harness.settle(5.0)
        await foreign_commit(harness, tables[1])
        await harness.publish(build_request(tables[1], producer="lone"))
        await harness.settle(5.0)
        await rival.publish(theirs)
        await rival.run_until_settled()
        assert path in {file.file_path for file in await harness.live_files("db.ships")}
        await harness.publish(trains)
        await harness.settle(30.0)
    assert await harness.quarantined() == []
    assert await counts(harness) == [2, 3, 2]
