"""Ways to lose, double or wrongly quarantine a request that were thought of: a test for each."""

from __future__ import annotations

import pytest

from committer.errors import CatalogUnavailableError
from committer.iceberg.updates.metadata_update import RemoveSnapshotRef, SetProperties
from committer.ledger_entry import EpochRanges
from committer.plan.ledger.producer_decisions import ProducerName
from committer.ports.pointer_swap import Committed, LoadedTable, Rejected, Swap, SwapAnswer
from committer.reason import Reason
from committer.request.receipt_model import ReceiptState
from committer.request.table_identifier import TableIdentifier
from committer.service.table.table_committer import TableCommitter
from tests.support.builders.bad_requests import CHECKED
from tests.support.builders.flights import build_flights, foreign_swap
from tests.support.builders.request_builders import build_request
from tests.support.faults.counting_storage import CountingStorage
from tests.support.faults.faulty_catalog import Fault, FaultyCatalog
from tests.support.service.decisions import land, producer_admin, roll_back
from tests.support.service.outside import add_table, foreign_commit
from tests.support.service.scripted import carries, paths, scripted
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True


# --- Rejected ------------------------------------------------------------------------------------


async def test_a_request_that_landed_late_is_not_quarantined_because_its_retry_is_rejected() -> (
    None
):
    harness = ServiceHarness()
    table = await harness.create_table()
    catalog = scripted(harness)
    catalog.plan(Fault.LANDS_LATE)
    refused: list[Swap] = []

    def refuse_retry(swap: Swap) -> SwapAnswer | None:
        if not catalog.calls["swap"] or refused:
            return None
        refused.append(swap)
        # While the retry is refused, the first attempt arrives.
        catalog.arrives = True
        return Rejected("refused by the test")

    catalog.decide = refuse_retry
    await harness.publish(build_request(table))
    await harness.run_until_settled(seconds=120.0)
    assert len(refused) == 1
    assert await harness.quarantined() == []
    assert len(await paths(harness)) == 1
    (receipt,) = await harness.receipts()
    assert receipt.state is ReceiptState.COMMITTED


async def test_a_request_at_fault_does_not_stop_others_while_an_earlier_attempt_is_in_doubt() -> (
    None
):
    harness = ServiceHarness()
    table = await harness.create_table()
    catalog = scripted(harness)
    # The first attempt with everything in it is lost; from then on one producer is refused.
    catalog.plan(Fault.REQUEST_LOST)
    catalog.decide = lambda swap: (
        Rejected("refused by the test")
        if carries(swap, "poison") and catalog.calls["swap"] > 0
        else None
    )
    for producer in ("poison", "query-1", "query-2"):
        await harness.publish(build_request(table, producer=producer))
    await harness.run_until_settled(seconds=300.0)
    (record,) = await harness.quarantined()
    assert record.reason == Reason.COMMIT_REJECTED
    assert len(await paths(harness)) == 2
    assert await harness.outstanding() == []


async def test_a_lone_request_in_doubt_is_tried_again_at_a_calm_pace_until_it_lands() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    catalog = scripted(harness)
    catalog.plan(Fault.LANDS_LATE)
    tried = [0]

    def refuse_retries(swap: Swap) -> SwapAnswer | None:
        if not catalog.calls["swap"]:
            return None
        tried[0] += 1
        return Rejected("refused by the test")

    catalog.decide = refuse_retries
    await harness.publish(build_request(table))
    await harness.run_until_settled(seconds=60.0)
    # No verdict while the first attempt may still land, and no storm of attempts either.
    assert await harness.quarantined() == []
    assert 3 < tried[0] < 20
    await catalog.land_late()
    assert len(await paths(harness)) == 1
    await harness.run_until_settled(seconds=60.0)
    assert await harness.quarantined() == []
    assert len(await paths(harness)) == 1


async def test_a_poison_request_among_many_is_found_without_waiting_an_interval_for_each_half() -> (
    None
):
    harness = ServiceHarness(min_interval_ms=1_000)
    table = await harness.create_table()
    catalog = scripted(harness)
    catalog.decide = lambda swap: (
        Rejected("refused by the test") if carries(swap, "poison") else None
    )
    await harness.publish(build_request(table, producer="poison"))
    for number in range(20):
        await harness.publish(build_request(table, producer=f"query-{number}"))
    async with harness.running():
        await harness.settle(3.0)
        assert len(await paths(harness)) == 20
    (record,) = await harness.quarantined()
    assert record.reason == Reason.COMMIT_REJECTED


# --- Answers of other catalogs, canceled swaps, drain -------------------------------------------


class RestLikeCatalog(FaultyCatalog):
    """Answers `Committed` with metadata that it made itself, another commit already in it."""

    async def swap(self, swap: Swap) -> SwapAnswer:
        answer = await super().swap(swap)
        if not isinstance(answer, Committed):
            return answer
        current = await self.inner.load(swap.base.identifier)
        extra = foreign_swap(current, SetProperties({"server": "was here"}))
        storage = self.storage
        await storage.create(self.inner.objects_before(extra))
        await self.inner.swap(extra)
        return Committed(await self.inner.load(swap.base.identifier))

    storage: CountingStorage


async def test_metadata_that_is_not_what_was_planned_becomes_the_base() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    catalog = RestLikeCatalog(harness.catalog.inner)
    catalog.storage = CountingStorage(harness.storage.inner)
    harness.catalog = catalog
    async with harness.running():
        for epoch in range(4):
            await harness.publish(build_request(table, epoch=epoch))
            await harness.settle(1.0)
    assert catalog.calls["load"] == 1
    assert catalog.calls["swap"] == 4
    assert len(await paths(harness)) == 4
    assert (await harness.load()).properties["server"] == "was here"


async def test_stopping_finishes_what_is_in_hand_and_leaves_the_rest_unacknowledged() -> None:
    harness = ServiceHarness(min_interval_ms=30_000)
    table = await harness.create_table()
    async with harness.running():
        await harness.publish(build_request(table, epoch=0))
        await harness.settle(1.0)
        for epoch in range(1, 4):
            await harness.publish(build_request(table, epoch=epoch))
        await harness.settle(1.0)
        await harness.tables.stop()
        late = build_request(table, epoch=4)
        await harness.publish(late)
        await harness.settle(60.0)
        assert late.request.inbox_key in await harness.outstanding()
    await harness.run_until_settled(seconds=700.0)
    assert len(await paths(harness)) == 5
    assert await harness.outstanding() == []


# --- Cached state, idle tables, garbage settings -------------------------------------------------


async def test_a_duplicate_on_a_cached_table_that_was_rolled_back_is_not_acknowledged() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running():
        await harness.publish(build_request(table, epoch=0))
        await harness.settle(1.0)
        await foreign_commit(harness, table, RemoveSnapshotRef("main"))
        await harness.publish(build_request(table, epoch=0))
        await harness.settle(5.0)
    (record,) = await harness.quarantined()
    assert record.reason == Reason.PRODUCER_FROZEN


async def test_after_a_table_is_gone_no_commit_is_tried_on_what_was_remembered_of_it() -> None:
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    async with harness.running():
        await harness.publish(build_request(table, partition=("AA",)))
        await harness.settle(1.0)
        await harness.catalog.inner.drop_table(table.identifier)
        await harness.publish(CHECKED[2].make(table, "bad"))
        await harness.settle(1.0)
        await harness.publish(build_request(table, epoch=1, partition=("AA",)))
        await harness.settle(1.0)
    reasons = [record.reason for record in await harness.quarantined()]
    assert reasons == [Reason.TABLE_UNKNOWN] * 2
    assert harness.catalog.calls["swap"] == 1


@pytest.mark.thorough
async def test_a_table_that_was_idle_for_long_wakes_up_again() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running():
        for epoch in range(3):
            await harness.publish(build_request(table, epoch=epoch))
            await harness.settle(5_000.0)
            assert harness.tables.all == ()
    assert len(await paths(harness)) == 3


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("text", "wait_s"),
    [(text, 2.0) for text in ("", "soon", "-5", "1e3", "NaN", "٣", "0.5", " 100 ")]
    + [("9" * 5_000, 3_600.0), ("9" * 12, 3_600.0)],
)
async def test_a_garbage_interval_property_stops_nothing(text: str, wait_s: float) -> None:
    harness = ServiceHarness()
    table = await harness.create_table(properties={"frazil.commit.min-interval-ms": text})
    async with harness.running():
        for epoch in range(3):
            await harness.publish(build_request(table, epoch=epoch))
            await harness.settle(wait_s)
    assert len(await paths(harness)) == 3
    assert harness.health.conditions == {}


async def test_a_retry_does_not_read_the_manifest_list_again() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running():
        await harness.publish(build_request(table, epoch=0))
        await harness.settle(1.0)
        harness.catalog.plan(Fault.REQUEST_LOST, Fault.REQUEST_LOST)
        harness.storage.calls.clear()
        await harness.publish(build_request(table, epoch=1))
        await harness.settle(5.0)
        assert harness.storage.calls["get"] == 0
    assert len(await paths(harness)) == 2


async def test_swaps_without_an_answer_are_a_condition_that_shows_until_one_has_landed() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running():
        harness.catalog.plan(*[Fault.REQUEST_LOST] * 60)
        await harness.publish(build_request(table, epoch=0))
        await harness.settle(60.0)
        [why] = harness.health.conditions.values()
        assert "the test lost the answer" in why
        harness.catalog.recover()
        await harness.settle(60.0)
        assert harness.health.conditions == {}
    assert len(await paths(harness)) == 1


async def test_a_conflict_without_an_end_keeps_the_batch_and_ends_when_it_ends() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    harness.catalog.plan(*[Fault.CONFLICT] * 12)
    for number in range(3):
        await harness.publish(build_request(table, producer=f"query-{number}"))
    await harness.run_until_settled(seconds=200.0)
    assert len(await paths(harness)) == 3
    assert len((await harness.load()).snapshots) == 1


async def test_what_waits_is_counted_and_leaves_nothing_behind() -> None:
    harness = ServiceHarness(min_interval_ms=10_000)
    table = await harness.create_table()
    async with harness.running():
        await harness.publish(build_request(table, epoch=0))
        await harness.settle(1.0)
        sealed = [build_request(table, epoch=epoch) for epoch in range(1, 6)]
        for one in sealed:
            await harness.publish(one)
            await harness.publish(one)
        await harness.settle(1.0)
        (committer,) = harness.tables.all
        assert isinstance(committer, TableCommitter)
        assert len(committer.waiting) == 5
        assert committer.waiting.size_bytes == sum(len(one.content) for one in sealed)
        await harness.settle(30.0)
        assert (len(committer.waiting), committer.waiting.size_bytes) == (0, 0)
    assert (await harness.publisher_queue.depth()).waiting == 0


async def test_a_request_that_another_committer_has_ended_meanwhile_does_not_land_from_memory() -> (
    None
):
    harness = ServiceHarness(with_queue=False)
    table = await harness.create_table()
    await harness.publish(build_request(table, epoch=0), announce=False)
    await harness.run_until_settled()
    harness.catalog.plan(*[Fault.UNAVAILABLE] * 20)
    ended = build_request(table, epoch=1)
    async with harness.running():
        await harness.publish(ended, announce=False)
        await harness.settle(5.0)
        # Another committer has quarantined it, and an operator discarded it.
        await harness.inbox.delete([ended.request.inbox_key])
        harness.catalog.recover()
        await harness.settle(60.0)
    assert len(await paths(harness)) == 1


class AwayCatalog(FaultyCatalog):
    """A dropped table cannot be read by any committer."""

    is_away = False

    async def load(self, identifier: TableIdentifier) -> LoadedTable:
        if self.is_away:
            raise CatalogUnavailableError("the test keeps it away")
        return await super().load(identifier)


async def test_what_a_rollback_took_lands_once_more_only_from_the_inbox() -> None:
    """This committer had it in hand when another landed it; an operator let its epoch land again,
    and who is to publish it is its producer: an expiry may have taken its data files.
    """
    harness, other = ServiceHarness(), ServiceHarness(with_queue=False)
    table = await harness.create_table()
    await land(harness, table, 0)
    other.catalog, away = harness.catalog, AwayCatalog(harness.catalog.inner)
    harness.catalog = away
    other.storage = other.inbox_storage = harness.storage
    other.inbox, other.high_water_marks = harness.inbox, harness.high_water_marks
    async with harness.running():
        await harness.settle(1.0)
        away.is_away = True
        await harness.publish(build_request(table, epoch=1, published_at_ms=harness.world.now_ms()))
        await harness.settle(5.0)
        await other.run_until_settled(seconds=5.0)
        assert len(await paths(harness)) == 2
        assert await harness.outstanding() == []
        await roll_back(harness, table, 0)
        again = EpochRanges(((1, 1),))
        await producer_admin(other).thaw(table.identifier, ProducerName("query-1"), again)
        away.is_away = False
        await harness.settle(60.0)
    assert len(await paths(harness)) == 1
