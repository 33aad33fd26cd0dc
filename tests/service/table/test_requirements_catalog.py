"""A catalog that checks requirements and writes metadata files itself, as REST servers do."""

from __future__ import annotations

import pytest

from committer.iceberg.metadata.snapshot import MAIN
from committer.iceberg.updates.metadata_update import RemoveProperties, SetProperties
from committer.ledger_entry import property_key
from committer.plan.commit.attempt_log import LOST_MAX
from committer.plan.ledger.ledger import read_ledger
from committer.plan.ledger.producer_decisions import ProducerName, ProducerState, standing
from committer.ports.pointer_swap import Rejected, Swap, SwapAnswer, Unknown
from committer.reason import Reason
from committer.request.receipt_model import ReceiptState
from committer.service.table.batch_committer import EQUAL_UNKNOWNS_MAX
from tests.support.builders.request_builders import build_request
from tests.support.faults.faulty_catalog import Fault, FaultyCatalog
from tests.support.memory.requirements_catalog import RequirementsCatalog
from tests.support.service.decisions import producer_admin
from tests.support.service.outside import foreign_commit
from tests.support.service.scripted import carries, paths, scripted
from tests.support.service.service_harness import WAREHOUSE, ServiceHarness

VIRTUAL_TIME = True
NAME = ProducerName("query-1")


@pytest.fixture
def harness() -> ServiceHarness:
    harness = ServiceHarness()
    inner = RequirementsCatalog(storage=harness.storage.inner, world=harness.world)
    harness.catalog = FaultyCatalog(inner)
    return harness


async def test_a_steady_commit_reads_nothing_and_writes_no_metadata_file(
    harness: ServiceHarness,
) -> None:
    table = await harness.create_table()
    async with harness.running():
        await harness.publish(build_request(table, epoch=0))
        await harness.settle(1.0)
        harness.storage.calls.clear()
        for epoch in range(1, 5):
            await harness.publish(build_request(table, epoch=epoch))
            await harness.settle(1.0)
        assert harness.storage.calls["get"] == 0
    assert harness.catalog.calls["load"] == 1
    assert harness.catalog.calls["swap"] == 5
    assert len(await paths(harness)) == 5
    assert isinstance(harness.catalog.inner, RequirementsCatalog)
    found = [info.location async for info in harness.storage.inner.list(WAREHOUSE)]
    metadata_files = {one for one in found if one.endswith(".metadata.json")}
    assert metadata_files == {table.metadata_location, *harness.catalog.inner.written}


async def test_another_process_goes_on_behind_the_high_water_mark(harness: ServiceHarness) -> None:
    table = await harness.create_table()
    for epoch in range(3):
        await harness.publish(build_request(table, epoch=epoch))
        await harness.publish(build_request(table, epoch=0))
        await harness.run_until_settled()
    assert len(await paths(harness)) == 3
    assert await harness.quarantined() == []
    assert harness.health.conditions == {}


async def test_a_late_attempt_is_in_doubt_while_its_requirements_hold_though_the_table_moved(
    harness: ServiceHarness,
) -> None:
    """A property of another engine's moves the table, and not the head that the attempt needs."""
    table = await harness.create_table()
    catalog = scripted(harness)
    catalog.plan(Fault.LANDS_LATE)

    def refuse_retries(swap: Swap) -> SwapAnswer | None:
        return Rejected("refused by the test") if catalog.calls["swap"] else None

    catalog.decide = refuse_retries
    async with harness.running():
        await harness.publish(build_request(table))
        await harness.settle(0.01)
        await foreign_commit(harness, table, SetProperties({"color": "blue"}))
        await harness.settle(60.0)
        assert await harness.quarantined() == []
        await catalog.land_late()
        await harness.settle(60.0)
    assert len(await paths(harness)) == 1
    assert await harness.quarantined() == []
    (receipt,) = await harness.receipts()
    assert receipt.state is ReceiptState.COMMITTED


async def test_entries_that_another_engine_removes_between_two_commits_stop_the_table(
    harness: ServiceHarness,
) -> None:
    """Their removal moves no head, so the next commit lands on what is left of the ledger."""
    table = await harness.create_table()
    async with harness.running():
        for producer in ("query-1", "query-2"):
            await harness.publish(build_request(table, producer=producer))
            await harness.settle(5.0)
        await foreign_commit(harness, table, RemoveProperties((property_key("query-2"),)))
        await harness.publish(build_request(table, epoch=1))
        await harness.settle(5.0)
        assert len(await paths(harness)) == 3
        # The same rows once more: the entry would have said so.
        await harness.publish(build_request(table, producer="query-2"))
        await harness.settle(60.0)
        assert len(await paths(harness)) == 3
        assert len(await harness.outstanding()) == 1
        (condition,) = harness.health.conditions.values()
        assert "table accept" in condition


async def test_a_decision_shuts_out_a_commit_that_was_planned_before_it(
    harness: ServiceHarness,
) -> None:
    table = await harness.create_table()
    await harness.publish(build_request(table, epoch=0))
    await harness.run_until_settled()
    harness.catalog.swap_s["db.flights"] = 5.0
    admin = producer_admin(harness)
    async with harness.running():
        await harness.publish(build_request(table, epoch=1))
        await harness.settle(2.0)
        harness.catalog.swap_s.clear()
        before = (await harness.load()).branch_head(MAIN)
        await admin.freeze(table.identifier, NAME, "the test says so")
        await harness.settle(30.0)
    metadata = await harness.load()
    head = metadata.branch_head(MAIN)
    assert before is not None
    assert head is not None
    assert head.parent_snapshot_id == before.snapshot_id
    assert standing(read_ledger(metadata), NAME).state is ProducerState.FROZEN
    assert [one.reason for one in await harness.quarantined()] == [Reason.PRODUCER_FROZEN]
    assert len(await paths(harness)) == 1


async def test_a_decision_on_a_table_without_snapshots_makes_the_head_that_it_moves(
    harness: ServiceHarness,
) -> None:
    table = await harness.create_table()
    await producer_admin(harness).freeze(table.identifier, NAME, "the test says so")
    await harness.publish(build_request(table, epoch=0))
    await harness.publish(build_request(table, producer="query-2"))
    await harness.run_until_settled()
    assert [one.reason for one in await harness.quarantined()] == [Reason.PRODUCER_FROZEN]
    assert len((await harness.load()).snapshots) == 2
    assert len(await paths(harness)) == 1


async def test_metadata_files_of_the_catalog_are_never_deleted(harness: ServiceHarness) -> None:
    table = await harness.create_table(
        properties={
            "write.metadata.delete-after-commit.enabled": "true",
            "write.metadata.previous-versions-max": "1",
        }
    )
    async with harness.running():
        for epoch in range(5):
            await harness.publish(build_request(table, epoch=epoch))
            await harness.settle(5.0)
    assert isinstance(harness.catalog.inner, RequirementsCatalog)
    for location in harness.catalog.inner.written:
        await harness.storage.inner.head(location)


async def test_a_request_to_which_the_catalog_always_fails_delays_no_other(
    harness: ServiceHarness,
) -> None:
    """Some servers answer 500 where they should refuse: nothing says that the request is bad."""
    table = await harness.create_table()
    catalog = scripted(harness)
    catalog.decide = lambda swap: Unknown("HTTP 500") if carries(swap, "poison") else None
    for producer in ("poison", "query-1", "query-2", "query-3"):
        await harness.publish(build_request(table, producer=producer))
    async with harness.running():
        await harness.settle(60.0)
        assert len(await paths(harness)) == 3
        [why] = harness.health.conditions.values()
        assert f"{EQUAL_UNKNOWNS_MAX} swaps got the same answer" in why
        assert "HTTP 500" in why
        assert await harness.quarantined() == []
        assert len(await harness.outstanding()) == 1
        catalog.decide = lambda swap: None
        await harness.settle(60.0)
        assert harness.health.conditions == {}
    assert len(await paths(harness)) == 4


async def test_a_catalog_that_fails_for_all_is_asked_ever_less_often(
    harness: ServiceHarness,
) -> None:
    table = await harness.create_table()
    catalog = scripted(harness)
    swaps = [0]

    def fail(swap: Swap) -> SwapAnswer:
        swaps[0] += 1
        return Unknown("HTTP 500")

    catalog.decide = fail
    for number in range(8):
        await harness.publish(build_request(table, producer=f"query-{number}"))
    async with harness.running():
        await harness.settle(300.0)
        assert swaps[0] < 150
        assert await harness.quarantined() == []
        catalog.decide = lambda swap: None
        await harness.settle(60.0)
    assert len(await paths(harness)) == 8


@pytest.mark.thorough
async def test_requests_land_once_after_more_lost_answers_than_are_remembered(
    harness: ServiceHarness,
) -> None:
    """Each answer is another one, so no batch is set apart, and each attempt may land yet."""
    table = await harness.create_table()
    catalog = scripted(harness)
    swaps = [0]

    def lose(swap: Swap) -> SwapAnswer:
        swaps[0] += 1
        return Unknown(f"HTTP 503, request {swaps[0]}")

    catalog.decide = lose
    for number in range(4):
        await harness.publish(build_request(table, producer=f"query-{number}"))
    async with harness.running():
        await harness.settle(1_800.0)
        assert swaps[0] > LOST_MAX
        [why] = harness.health.conditions.values()
        assert "no answer to a swap: HTTP 503" in why
        catalog.decide = lambda swap: None
        await harness.settle(120.0)
        assert harness.health.conditions == {}
    assert len(await paths(harness)) == 4
    assert await harness.quarantined() == []
