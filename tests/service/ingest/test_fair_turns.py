"""Small requests in fair turns: a producer with a long queue delays itself alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import pytest

from committer.plan.batch import batch_policy
from committer.ports.pointer_swap import LoadedTable
from committer.ports.queue import Delivery, Doorbell
from committer.ports.storage import ObjectInfo, Storage
from committer.reason import Reason
from committer.request.request_format import EncodedRequest
from committer.service.ingest import committer_pool, consumer, intake
from committer.service.ingest.intake import TRUSTED_MS
from committer.service.requests import pending
from committer.service.requests.deferred_doorbells import NO_WAITERS
from committer.service.requests.inbox_keys import InboxKey
from committer.service.requests.large_requests import Arrival, TableLoad
from committer.service.requests.listing import Folders
from committer.service.table.table_committer import YIELD_S_MAX
from committer.storage.inbox.inbox import QuarantineRecord
from tests.support.builders.alter_requests import build_alter
from tests.support.builders.request_builders import build_request
from tests.support.faults.counting_storage import CountingStorage
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


def build_harness(
    *, with_queue: bool = True, wrap: Callable[[Storage], Storage] = lambda storage: storage
) -> ServiceHarness:
    harness = ServiceHarness(min_interval_ms=int(ROUND_S * 1_000), with_queue=with_queue, wrap=wrap)
    harness.policy = replace(harness.policy, requests_max=40)
    return harness


async def flood(harness: ServiceHarness, table: LoadedTable, *, age_ms: int = 0) -> None:
    for epoch in range(FLOOD):
        sealed = request(harness, table, "flood", epoch, age_ms)
        await harness.publish(sealed, announce=harness.queue is not None)


def request(
    harness: ServiceHarness, table: LoadedTable, producer: str, epoch: int, age_ms: int = 0
) -> EncodedRequest:
    published_ms = harness.world.now_ms() - age_ms
    return build_request(table, producer=producer, epoch=epoch, published_at_ms=published_ms)


async def assert_lands_in_two_rounds(harness: ServiceHarness, *published: EncodedRequest) -> None:
    await harness.settle(2 * ROUND_S + 0.3)
    assert not {sealed.key for sealed in published} & set(await harness.outstanding())


class SlowLookups(CountingStorage):
    """To look whether an object exists takes two rounds."""

    async def head(self, location: str) -> ObjectInfo:
        await asyncio.sleep(2 * ROUND_S)
        return await super().head(location)


async def test_others_wait_for_no_lookup_of_the_requests_of_a_long_queue() -> None:
    harness = build_harness(wrap=SlowLookups)
    table = await harness.create_table()
    # Its doorbells are old: whether they still hold has to be looked up.
    await flood(harness, table, age_ms=2 * TRUSTED_MS)
    async with harness.running():
        await harness.settle(20 * ROUND_S)
        for epoch in range(5):
            published = [request(harness, table, one, epoch) for one in OTHERS]
            for sealed in published:
                await harness.publish(sealed)
            await assert_lands_in_two_rounds(harness, *published)
        assert await harness.outstanding()
        await harness.settle(3 * FLOOD * ROUND_S)
    assert not await harness.outstanding()


async def test_a_request_that_was_seen_counts_as_present_for_that_load_of_its_table_only() -> None:
    harness = build_harness()
    table = await harness.create_table()
    requests = [request(harness, table, "flood", epoch) for epoch in range(3)]
    async with harness.running():
        await harness.publish(requests[0])
        await harness.settle(2 * ROUND_S)
        assert harness.work is not None
        intake, (committer,) = harness.work.intake, harness.tables.all
        for sealed, generation in zip(requests[1:], (0, committer.generation), strict=True):
            arrival = Arrival(InboxKey(sealed.key), NO_WAITERS, 0)
            arrival.seen_after = TableLoad(committer, generation)
            intake.submit(arrival, sealed)
        found = [committer.waiting.find(sealed.key) for sealed in requests[1:]]
        assert [one and one.present_in for one in found] == [None, committer.generation]


async def test_a_request_waits_while_it_is_in_the_inbox_and_not_in_quarantine() -> None:
    harness = build_harness()
    table = await harness.create_table()
    here, gone, refused = (request(harness, table, "flood", epoch) for epoch in range(3))
    await harness.inbox.put(here)
    await harness.inbox.put(refused)
    record = QuarantineRecord(
        key=refused.key, reason=Reason.SCHEMA_MISMATCH, message="", quarantined_at_ms=0
    )
    await harness.quarantine.put(record, refused.content)
    async with harness.running():
        assert harness.work is not None
        reader = harness.work.intake.reader
        arrivals = [
            Arrival(InboxKey(one.key), NO_WAITERS, 0, announced=one)
            for one in (here, gone, refused)
        ]
        assert [await reader.is_waiting(one) for one in arrivals] == [True, False, False]
        # It is read from the inbox next, which tells whether it is there.
        assert await reader.is_waiting(replace(arrivals[1], announced=None))
        harness.storage.is_away = harness.inbox_storage.is_away = True
        assert not await reader.is_waiting(arrivals[0])


async def test_a_listing_takes_no_request_again_that_waits_for_room() -> None:
    harness = build_harness()
    await flood(harness, await harness.create_table())
    async with harness.running():
        await harness.settle(0.1)
        assert harness.work is not None
        listing = await harness.work.reconciler.scan.run(Folders(), 0.0, takes=True)
    assert listing.requests > FLOOD / 2
    assert (listing.found, [*listing.unread]) == (0, [])


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


async def test_the_newest_doorbells_of_others_wait_for_no_read_of_a_long_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Reading the long queue takes 15 rounds, and no request of it overtakes a lower epoch."""
    harness = build_harness()
    assert harness.queue is not None
    at_once = harness.queue.read
    monkeypatch.setattr(consumer, "READ_COUNT_MIN", 8)
    monkeypatch.setattr(consumer, "READ_COUNT_MAX", 8)
    monkeypatch.setattr(consumer, "READ_MORE_MAX", 8)

    async def slowly(
        *, count_max: int, wait_s: float, shards: Collection[int], more_max: int
    ) -> Sequence[Delivery]:
        await asyncio.sleep(ROUND_S)
        return await at_once(count_max=count_max, wait_s=wait_s, shards=shards, more_max=more_max)

    monkeypatch.setattr(harness.queue, "read", slowly)
    table = await harness.create_table()
    await flood(harness, table)
    async with harness.running():
        await harness.settle(3 * ROUND_S)
        published = [request(harness, table, producer, 0) for producer in OTHERS]
        for sealed in published:
            await harness.publish(sealed)
        # The read that goes on, and the next one.
        await harness.settle(2 * ROUND_S)
        await assert_lands_in_two_rounds(harness, *published)
        parts = [InboxKey(key).parts for key in await harness.outstanding()]
        epochs = sorted(key.epoch for key in parts if key is not None)
        assert epochs == list(range(epochs[0], FLOOD))
        assert len(epochs) > FLOOD / 2
        await harness.settle(FLOOD / 10 * ROUND_S)
        assert await harness.outstanding() == []
    depth = await harness.publisher_queue.depth()
    assert (depth.waiting, depth.pending) == (0, 0)


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


async def test_a_listed_long_queue_does_not_fill_the_memory() -> None:
    harness = build_harness(with_queue=False)
    await flood(harness, await harness.create_table())
    ready: list[int] = []
    async with harness.running():
        while await harness.outstanding():
            await harness.settle(0.05)
            ready += [len(table.waiting) for table in harness.tables.all]
    assert 0 < max(ready) <= committer_pool.PRODUCER_READY_MAX


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
