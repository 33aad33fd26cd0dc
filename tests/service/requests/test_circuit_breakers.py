"""Producers that fail again and again wait in the inbox; the others do not notice."""

from __future__ import annotations

import pytest

from committer.iceberg.metadata.snapshot import SnapshotRef
from committer.iceberg.updates.metadata_update import SetSnapshotRef
from committer.ports.pointer_swap import LoadedTable
from committer.ports.storage import NewObject
from committer.reason import Reason
from committer.request.receipt_model import ReceiptState
from committer.request.request_format import EncodedRequest
from committer.service.requests.circuit_breakers import TRIAL_S_MAX, BreakerPolicy, CircuitBreakers
from committer.storage.inbox.inbox import Quarantine
from tests.support.builders.request_builders import build_request
from tests.support.builders.table_builders import build_table
from tests.support.clock.virtual_time import LoopWorld
from tests.support.faults.counting_storage import CountingStorage
from tests.support.faults.faulty_catalog import Fault
from tests.support.service.outside import foreign_commit
from tests.support.service.scraping import Page
from tests.support.service.service_harness import INBOX, ServiceHarness

VIRTUAL_TIME = True
AFTER = 3
TABLE = build_table(warehouse="memory://warehouse")


def bad(table: LoadedTable, epoch: int, producer: str = "bad") -> EncodedRequest:
    """Build a request for a branch that does not exist."""
    return build_request(table, epoch=epoch, producer=producer, branch="audit")


async def make_branch(harness: ServiceHarness, table: LoadedTable) -> None:
    """Make the missing branch, as an operator would."""
    head = (await harness.load()).current_snapshot_id or 0
    await foreign_commit(harness, table, SetSnapshotRef("audit", SnapshotRef(head, "branch")))


# --- In the service ------------------------------------------------------------------------------


async def test_after_some_in_a_row_the_further_requests_wait_and_others_land() -> None:
    harness = ServiceHarness(breaker_threshold=AFTER)
    table = await harness.create_table()
    async with harness.running(reconcile_interval_s=10.0):
        for epoch in range(8):
            await harness.publish(bad(table, epoch))
            await harness.publish(build_request(table, epoch=epoch))
            await harness.settle(1.0)
        assert len(await harness.quarantined()) == AFTER
        assert len(await harness.outstanding()) == 8 - AFTER
        assert len(await harness.live_files()) == 8
        (opened,) = harness.wiring.breakers.open_breakers()
        assert (opened.producer, opened.failures) == ("bad", AFTER)
        assert (opened.table, opened.reason) == ("db.flights", Reason.BRANCH_UNKNOWN)
        # Durable and not acknowledged: the next owner finds them.
        assert (await harness.publisher_queue.depth()).pending == 8 - AFTER
        assert len(harness.tables.all[0].waiting) == 0
        await harness.settle(30.0)
        page = Page(harness.status_collector.page().decode())
        assert page("frazil_lag_seconds", cause="held") == pytest.approx(35.0, abs=0.1)
        assert page("frazil_lag_seconds", cause="waiting") == 0
        assert page("frazil_missed_doorbells_total") == 0


async def test_of_one_batch_no_more_go_to_quarantine_than_it_takes_to_hold_the_others() -> None:
    harness = ServiceHarness(breaker_threshold=AFTER)
    table = await harness.create_table()
    for epoch in range(20):
        await harness.publish(bad(table, epoch))
    await harness.run_until_settled()
    assert len(await harness.quarantined()) == AFTER
    assert len(await harness.outstanding()) == 20 - AFTER


async def test_what_waited_lands_by_itself_once_the_table_is_repaired() -> None:
    harness = ServiceHarness(breaker_threshold=AFTER)
    table = await harness.create_table()
    async with harness.running(reconcile_interval_s=10.0):
        await harness.publish(build_request(table))
        for epoch in range(8):
            await harness.publish(bad(table, epoch))
            await harness.settle(1.0)
        await make_branch(harness, table)
        await harness.settle(120.0)
        assert await harness.outstanding() == []
        assert list(harness.wiring.breakers.open_breakers()) == []
    entry = (await harness.load()).properties["frazil.producer@audit.bad"]
    assert '"epochs":"3-7"' in entry
    # Every producer has its answer, and none of their doorbells is left in the queue.
    states = [receipt.state for receipt in await harness.receipts("bad")]
    assert states.count(ReceiptState.QUARANTINED) == AFTER
    assert states.count(ReceiptState.COMMITTED) == 8 - AFTER
    assert (await harness.publisher_queue.depth()).waiting == 0


async def test_what_is_discarded_while_it_waits_leaves_no_doorbell_behind() -> None:
    harness = ServiceHarness(breaker_threshold=AFTER)
    table = await harness.create_table()
    async with harness.running(reconcile_interval_s=10.0):
        for epoch in range(6):
            await harness.publish(bad(table, epoch))
        await harness.settle(5.0)
        await harness.inbox.delete(await harness.outstanding())
        await harness.publish(build_request(table, producer="bad", epoch=100), announce=False)
        await harness.settle(400.0)
    assert not harness.wiring.breakers.are_open
    assert (await harness.publisher_queue.depth()).waiting == 0


async def test_while_it_goes_on_to_fail_one_request_is_tried_after_ever_longer_pauses() -> None:
    harness = ServiceHarness(breaker_threshold=AFTER)
    table = await harness.create_table()
    for epoch in range(20):
        await harness.publish(bad(table, epoch))
    found = []
    async with harness.running(reconcile_interval_s=10.0):
        for _ in range(20):
            await harness.settle(60.0)
            found.append(len(await harness.quarantined()) - AFTER)
    # Pauses of 1, 2, 4 and 8 minutes.
    assert found[1:3] + found[4:6] + found[8:10] + found[17:] == [1, 1, 2, 2, 3, 3, 4, 4, 4]
    keys = [one.key async for one in harness.quarantine.list()]
    assert [int(key.split("/")[2]) for key in keys] == list(range(AFTER + 4))


async def test_requests_that_cannot_be_read_count_too() -> None:
    harness = ServiceHarness(breaker_threshold=AFTER, with_queue=False)
    table = await harness.create_table()
    async with harness.running():
        for epoch in range(6):
            sealed = build_request(table, producer="bad", epoch=epoch)
            location = harness.inbox.location(sealed.request.inbox_key)
            await harness.storage.inner.create((NewObject(location, sealed.content[:-1]),))
            await harness.settle(2.0)
    assert [one.reason for one in await harness.quarantined()] == [Reason.REQUEST_TRUNCATED] * AFTER
    assert len(await harness.outstanding()) == 6 - AFTER


async def test_a_success_in_between_ends_the_row() -> None:
    harness = ServiceHarness(breaker_threshold=AFTER)
    table = await harness.create_table()
    async with harness.running():
        for epoch in range(10):
            good = epoch % AFTER == AFTER - 1
            await harness.publish(
                build_request(table, epoch=epoch, producer="bad") if good else bad(table, epoch)
            )
            await harness.settle(1.0)
    assert await harness.outstanding() == []
    assert len(await harness.live_files()) == 3


async def test_one_shot_producers_are_never_held() -> None:
    harness = ServiceHarness(breaker_threshold=1)
    table = await harness.create_table()
    for number in range(5):
        request = build_request(table, producer=f"shot-{number}", one_shot=True, branch="audit")
        await harness.publish(request)
    await harness.run_until_settled()
    assert len(await harness.quarantined()) == 5


async def test_a_request_that_landed_unnoticed_is_told_so_though_its_producer_waits() -> None:
    """The answer of its swap is lost, and the breaker opens before the ledger is asked."""
    harness = ServiceHarness(breaker_threshold=AFTER)
    table = await harness.create_table()
    good = build_request(table, producer="bad", epoch=100)
    harness.catalog.plan(Fault.LOST_REPLY)
    async with harness.running(reconcile_interval_s=10.0):
        await harness.publish(good)
        for epoch in range(6):
            await harness.publish(bad(table, epoch))
        await harness.settle(20.0)
        assert harness.wiring.breakers.are_open
        told = [one.state for one in await harness.receipts("bad") if one.epoch == 100]
        assert told == [ReceiptState.COMMITTED]
    assert good.request.inbox_key not in await harness.outstanding()


async def test_a_replay_of_what_has_landed_shows_that_a_producer_is_well() -> None:
    harness = ServiceHarness(breaker_threshold=AFTER)
    table = await harness.create_table()
    await harness.publish(build_request(table, producer="bad", epoch=100))
    async with harness.running(reconcile_interval_s=10.0):
        await harness.settle(1.0)
        for epoch in range(10, 10 + AFTER):
            await harness.publish(bad(table, epoch))
            await harness.settle(1.0)
        assert harness.wiring.breakers.are_open
        await harness.settle(60.0)
        await harness.publish(build_request(table, producer="bad", epoch=100))
        await harness.settle(1.0)
        assert not harness.wiring.breakers.are_open


async def test_a_request_that_comes_while_a_commit_has_to_wait_is_held_too() -> None:
    harness = ServiceHarness(breaker_threshold=AFTER, min_interval_ms=1_000)
    table = await harness.create_table()
    async with harness.running():
        for epoch in range(10):
            for number in (0, 1):
                await harness.publish(build_request(table, epoch=2 * epoch + number))
                await harness.settle(0.2)
            await harness.publish(bad(table, epoch))
            await harness.settle(1.6)
    assert len(await harness.quarantined()) == AFTER


# --- A table that changes hands ------------------------------------------------------------------


async def test_the_next_owner_of_a_table_quarantines_one_request_of_a_failing_producer() -> None:
    harness = ServiceHarness(breaker_threshold=AFTER)
    table = await harness.create_table()
    async with harness.running(reconcile_interval_s=10.0):
        for epoch in range(30):
            await harness.publish(bad(table, epoch))
        await harness.settle(20.0)
        assert len(await harness.quarantined()) == AFTER
    async with harness.running(reconcile_interval_s=10.0):
        await harness.settle(20.0)
        assert len(await harness.quarantined()) == AFTER + 1
        (opened,) = harness.wiring.breakers.open_breakers()
        assert (opened.failures, opened.reason) == (AFTER, Reason.BRANCH_UNKNOWN)


async def test_requests_that_cannot_be_read_open_the_breaker_of_the_next_owner_at_once() -> None:
    harness = ServiceHarness(breaker_threshold=AFTER, with_queue=False)
    table = await harness.create_table()

    async def publish(epoch: int) -> None:
        sealed = build_request(table, producer="bad", epoch=epoch)
        location = harness.inbox.location(sealed.request.inbox_key)
        await harness.storage.inner.create((NewObject(location, sealed.content[:-1]),))
        await harness.settle(2.0)

    async with harness.running():
        for epoch in range(AFTER):
            await publish(epoch)
    async with harness.running():
        for epoch in range(AFTER, 3 * AFTER):
            await publish(epoch)
    assert len(await harness.quarantined()) == AFTER + 1


async def test_failures_of_long_ago_do_not_open_a_breaker_at_once() -> None:
    harness = ServiceHarness(breaker_threshold=AFTER)
    table = await harness.create_table()
    async with harness.running():
        for epoch in range(AFTER):
            await harness.publish(bad(table, epoch))
        await harness.settle(3_600.0)
    async with harness.running():
        await harness.publish(bad(table, 10))
        await harness.settle(5.0)
        assert not harness.wiring.breakers.are_open


async def test_a_producer_that_has_landed_since_has_its_whole_row_again() -> None:
    harness = ServiceHarness(breaker_threshold=AFTER)
    table = await harness.create_table()
    async with harness.running():
        for epoch in range(AFTER - 1):
            await harness.publish(bad(table, epoch))
            await harness.settle(1.0)
        await harness.publish(build_request(table, producer="bad", epoch=5))
        await harness.settle(1.0)
        for epoch in range(10, 10 + AFTER - 1):
            await harness.publish(bad(table, epoch))
            await harness.settle(1.0)
        assert len(await harness.quarantined()) == 2 * (AFTER - 1)
        assert not harness.wiring.breakers.are_open


async def test_a_quarantine_that_cannot_be_listed_defers_the_first_failure_of_a_producer() -> None:
    harness = ServiceHarness(breaker_threshold=AFTER)
    table = await harness.create_table()
    away = CountingStorage(harness.storage.inner)
    harness.quarantine = Quarantine(away, INBOX)
    async with harness.running():
        away.is_away = True
        await harness.publish(bad(table, 0))
        await harness.publish(build_request(table))
        await harness.settle(10.0)
        assert len(await harness.live_files()) == 1
        away.is_away = False
        await harness.settle(60.0)
        assert len(await harness.quarantined()) == 1


async def test_a_breaker_ends_with_the_shard_of_its_table() -> None:
    harness = ServiceHarness(breaker_threshold=AFTER)
    table = await harness.create_table()
    async with harness.running(reconcile_interval_s=10.0):
        for epoch in range(8):
            await harness.publish(bad(table, epoch))
        await harness.settle(5.0)
        assert len(list(harness.wiring.breakers.open_breakers())) == 1
        await harness.release_shards()
        assert list(harness.wiring.breakers.open_breakers()) == []
        page = Page(harness.status_collector.page().decode())
        assert page("frazil_open_breakers") == 0


async def test_a_breaker_without_a_request_to_hold_is_not_shown_until_one_comes() -> None:
    harness = ServiceHarness(breaker_threshold=AFTER)
    table = await harness.create_table()
    async with harness.running(reconcile_interval_s=10.0):
        for epoch in range(AFTER):
            await harness.publish(bad(table, epoch))
        await harness.settle(25.0)
        assert harness.wiring.breakers.are_open
        assert list(harness.wiring.breakers.open_breakers()) == []
        await harness.publish(bad(table, AFTER))
        await harness.settle(1.0)
        assert len(list(harness.wiring.breakers.open_breakers())) == 1
        await harness.settle(25.0)
        assert len(list(harness.wiring.breakers.open_breakers())) == 1
        assert len(await harness.quarantined()) == AFTER


# --- The breakers as such ------------------------------------------------------------------------


def request(epoch: int = 0, producer: str = "bad") -> EncodedRequest:
    return build_request(TABLE, epoch=epoch, producer=producer)


def holds(breakers: CircuitBreakers, sealed: EncodedRequest) -> bool:
    return breakers.holds_request(sealed)


async def test_a_trial_that_never_ends_is_followed_by_another() -> None:
    world = LoopWorld()
    breakers = CircuitBreakers(BreakerPolicy(threshold=1, pause_s=10.0), world)
    first, second = request(1), request(2)
    breakers.quarantined(request(0).request, "any")
    assert holds(breakers, first)
    await world.sleep(10.0)
    assert not holds(breakers, first)
    assert not holds(breakers, first)
    assert holds(breakers, second)
    await world.sleep(TRIAL_S_MAX)
    assert not holds(breakers, second)
    assert holds(breakers, first)


@pytest.mark.parametrize("after", [0, 2])
async def test_room_is_what_is_left_until_the_others_have_to_wait(after: int) -> None:
    breakers = CircuitBreakers(BreakerPolicy(threshold=after), LoopWorld())
    found = []
    for epoch in range(4):
        found.append(breakers.room(request(epoch).request))
        breakers.quarantined(request(epoch).request, "any")
    assert found == ([None] * 4 if after == 0 else [2, 1, 1, 1])
    assert breakers.are_open == (after == 2)


async def test_a_pause_is_never_longer_than_ten_first_ones() -> None:
    world = LoopWorld()
    breakers = CircuitBreakers(BreakerPolicy(threshold=1, pause_s=2.0), world)
    for epoch in range(6):
        breakers.quarantined(request(epoch).request, "any")
    assert [one.again_s for one in breakers.open_breakers()] == [20.0]
    await world.sleep(19.9)
    assert holds(breakers, request(9))
    await world.sleep(0.1)
    assert not holds(breakers, request(9))


async def test_only_so_many_producers_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("committer.service.requests.circuit_breakers.KNOWN_MAX", 10)
    breakers = CircuitBreakers(BreakerPolicy(threshold=1), LoopWorld())
    line = request().request
    for number in range(15):
        producer = line.producer.model_copy(update={"id": f"bad-{number}"})
        breakers.quarantined(line.model_copy(update={"producer": producer}), "any")
    assert len(list(breakers.open_breakers())) == 10
    assert not breakers.holds(line.table_uuid, "bad-0", "key")
