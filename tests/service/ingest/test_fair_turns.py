"""Small requests in fair turns: a producer with a long queue delays itself alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from committer.plan.batch import batch_policy
from committer.ports.pointer_swap import LoadedTable
from committer.ports.queue import Doorbell
from committer.request.request_format import EncodedRequest
from committer.service.ingest import committer_pool, intake
from committer.service.requests import pending
from committer.service.table.table_committer import YIELD_S_MAX
from tests.support.builders.alter_requests import build_alter
from tests.support.builders.request_builders import build_request
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True
ROUND_S = 1.0
FLOOD = 240
OTHERS = ("query-1", "query-2", "query-3")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a batch have 10 requests of one producer, and a look 40, of which 240 wait."""
    monkeypatch.setattr(batch_policy, "PRODUCER_REQUESTS_MAX", 10)
    monkeypatch.setattr(pending, "PRODUCER_REQUESTS_MAX", 10)
    monkeypatch.setattr(committer_pool, "PRODUCER_READY_MAX", 20)


def build_harness(*, with_queue: bool = True) -> ServiceHarness:
    harness = ServiceHarness(min_interval_ms=int(ROUND_S * 1_000), with_queue=with_queue)
    harness.policy = replace(harness.policy, requests_max=40)
    return harness


async def flood(harness: ServiceHarness, table: LoadedTable) -> None:
    for epoch in range(FLOOD):
        sealed = request(harness, table, "flood", epoch)
        await harness.publish(sealed, announce=harness.queue is not None)


def request(
    harness: ServiceHarness, table: LoadedTable, producer: str, epoch: int
) -> EncodedRequest:
    now_ms = harness.world.now_ms()
    return build_request(table, producer=producer, epoch=epoch, published_at_ms=now_ms)


async def assert_lands_in_two_rounds(harness: ServiceHarness, *published: EncodedRequest) -> None:
    await harness.settle(2 * ROUND_S + 0.3)
    assert not {sealed.key for sealed in published} & set(await harness.outstanding())


@pytest.mark.thorough
@pytest.mark.parametrize("with_queue", [True, False], ids=["doorbells", "listing"])
async def test_others_wait_for_two_rounds_at_most_while_one_has_a_long_queue(
    *, with_queue: bool
) -> None:
    harness = build_harness(with_queue=with_queue)
    table, other = await harness.create_table(), await harness.create_table("db.other")
    await flood(harness, table)
    async with harness.running(reconcile_interval_s=0.1):
        await harness.settle(3 * ROUND_S)
        for epoch in range(5):
            published = [request(harness, table, one, epoch) for one in OTHERS]
            published.append(request(harness, other, "query-1", epoch))
            for sealed in published:
                await harness.publish(sealed, announce=with_queue)
            await assert_lands_in_two_rounds(harness, *published)
        assert len(await harness.outstanding()) > FLOOD / 3
        # Nor does its queue take longer: ten with each commit.
        await harness.settle(FLOOD / 10 * ROUND_S)
        assert await harness.outstanding() == []
    assert len(await harness.live_files()) == FLOOD + 15
    assert await harness.quarantined() == []


async def test_a_turn_is_given_for_a_request_of_a_producer_with_a_long_queue() -> None:
    harness = build_harness()
    table = await harness.create_table()
    await flood(harness, table)
    async with harness.running():
        await harness.settle(ROUND_S)
        assert harness.queue is not None
        key = (await harness.outstanding())[-1]
        uuid = table.metadata.require_uuid()
        await harness.queue.announce([Doorbell(uuid, key, "", None, None, asks_for_turn=True)])
        await harness.settle(0.2)
        landed = len(await harness.live_files())
        await harness.settle(YIELD_S_MAX - 0.5)
        assert len(await harness.live_files()) == landed
        await harness.settle(3 * ROUND_S)
        assert len(await harness.live_files()) > landed


@pytest.mark.thorough
async def test_a_long_queue_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = build_harness()
    table, other = await harness.create_table(), await harness.create_table("db.other")
    await flood(harness, table)
    monkeypatch.setattr(committer_pool, "PENDING_REQUESTS_MAX", 40)
    async with harness.running():
        for epoch in range(6):
            await harness.settle(ROUND_S)
            assert not harness.tables.are_full
            sealed = request(harness, other, "query-1", epoch)
            await harness.publish(sealed)
            await assert_lands_in_two_rounds(harness, sealed)
        # What waits without being read counts for the lag.
        assert (harness.status_collector.status().lag_s or 0) > 5 * ROUND_S
        await harness.settle(FLOOD / 10 * ROUND_S)
        assert await harness.outstanding() == []


@pytest.mark.thorough
async def test_a_producer_of_heavy_requests_has_as_much_memory_as_it_leaves_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(committer_pool, "PRODUCER_READY_MAX", 10_000)
    monkeypatch.setattr(committer_pool, "PRODUCER_WEIGHT_BYTES_MIN", 64 * 1024)
    monkeypatch.setattr(committer_pool, "PENDING_WEIGHT_BYTES_MAX", 1024 * 1024)
    monkeypatch.setattr(intake, "SURPLUS_AT_ONCE", 8)
    harness = build_harness()
    table = await harness.create_table()
    await flood(harness, table)
    async with harness.running():
        for _ in range(6):
            await harness.settle(0.5)
            (committer,) = harness.tables.all
            assert 256 * 1024 < committer.waiting.weight_bytes < 600 * 1024
        sealed = request(harness, table, "query-1", 0)
        await harness.publish(sealed)
        await assert_lands_in_two_rounds(harness, sealed)
        await harness.settle(FLOOD / 10 * ROUND_S)
        assert await harness.outstanding() == []


@pytest.mark.thorough
async def test_the_doorbells_of_a_long_queue_are_acknowledged_and_answered() -> None:
    harness = build_harness()
    table = await harness.create_table()
    await flood(harness, table)
    async with harness.running():
        await harness.settle((FLOOD / 10 + 5) * ROUND_S)
        depth = await harness.publisher_queue.depth()
        assert (depth.waiting, depth.pending) == (0, 0)
        # Their copies are used: none is read from the inbox.
        assert harness.inbox_storage.calls["get"] < 10


async def test_what_waits_for_a_change_of_the_table_still_waits_for_it() -> None:
    harness = build_harness()
    table = await harness.create_table()
    for epoch in range(30):
        await harness.publish(request(harness, table, "flood", epoch))
    change = {"action": "set-properties", "updates": {"owner": "x"}}
    alter = build_alter(table, change, producer="operator")
    await harness.publish(alter)
    later = request(harness, table, "query-1", 0)
    await harness.publish(later)
    await harness.run_until_settled(seconds=20.0)
    altered = (await harness.receipts("operator"))[-1].sequence_number
    landed = (await harness.receipts("query-1"))[-1].sequence_number
    assert altered is not None and landed is not None
    assert altered < landed
    assert await harness.outstanding() == []
