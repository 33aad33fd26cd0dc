"""The reconciler: what it takes, what it leaves alone, what it costs; doorbells that ring late."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

import pytest

from committer.iceberg.updates.metadata_update import RemoveProperties
from committer.ledger_entry import property_key
from committer.ports.pointer_swap import LoadedTable
from committer.ports.queue import ALL_SHARDS, Delivery
from committer.reason import Reason
from committer.request.request_format import EncodedRequest
from committer.service.ingest import committer_pool
from committer.service.ingest.doorbells import TRUSTED_MS
from committer.storage.inbox import Inbox, Quarantine, QuarantineRecord
from committer.storage.replays import Replays
from tests.support.builders.request_builders import build_request
from tests.support.faults.counting_storage import CountingStorage
from tests.support.memory.memory_queue import MemoryQueue
from tests.support.service.outside import foreign_commit
from tests.support.service.service_harness import INBOX, ServiceHarness

VIRTUAL_TIME = True


def request(
    house: ServiceHarness, table: LoadedTable, producer: str = "query-1", epoch: int = 0
) -> EncodedRequest:
    """Published now."""
    now_ms = house.world.now_ms()
    return build_request(table, producer=producer, epoch=epoch, published_at_ms=now_ms)


def hits(house: ServiceHarness) -> float:
    samples = house.metrics.instruments.samples()
    return sum(one.value for one in samples if one.name == "frazil_missed_doorbells_total")


async def quarantine(house: ServiceHarness, sealed: EncodedRequest) -> None:
    """Write a record, as another committer does before the request leaves the inbox."""
    key = sealed.request.inbox_key
    record = QuarantineRecord(
        key=key, reason=Reason.SCHEMA_MISMATCH, message="", quarantined_at_ms=0
    )
    await house.quarantine.put(record, sealed.content)


# --- What it takes and leaves --------------------------------------------------------------------


async def test_a_clock_that_is_hours_behind_keeps_nothing_in_the_inbox() -> None:
    house = ServiceHarness()
    table = await house.create_table()
    async with house.running(reconcile_interval_s=10.0, reconcile_age_s=15.0):
        await house.settle(20.0)
        await house.publish(request(house, table), announce=False)
        house.world.skew_ms = -7_200_000
        await house.settle(60.0)
        assert await house.outstanding() == []
        assert len(await house.live_files()) == 1


async def test_in_steady_state_it_finds_nothing() -> None:
    house = ServiceHarness(min_interval_ms=1_000)
    table = await house.create_table()
    async with house.running(reconcile_interval_s=10.0, reconcile_age_s=2.0):
        for epoch in range(15):
            for producer in ("query-1", "query-2", "query-3"):
                await house.publish(request(house, table, producer, epoch))
                await house.settle(1.3)
        await house.settle()
        assert hits(house) == 0
        # And it does find a request without a doorbell.
        await house.publish(request(house, table, epoch=15), announce=False)
        await house.settle()
        assert hits(house) == 1
    assert len(await house.live_files()) == 46
    assert await house.outstanding() == []


async def test_a_quarantining_that_was_cut_off_is_finished_and_not_judged_again() -> None:
    house = ServiceHarness()
    table = await house.create_table()
    sealed = request(house, table)
    await house.publish(sealed, announce=False)
    # The cause may be gone by now: it could land.
    await quarantine(house, sealed)
    async with house.running(reconcile_interval_s=10.0):
        await house.settle()
        assert await house.outstanding() == []
        assert hits(house) == 1
    assert [record.reason for record in await house.quarantined()] == [Reason.SCHEMA_MISMATCH]
    assert await house.live_files() == []


async def test_a_request_that_was_replayed_is_taken_however_old_its_record_was() -> None:
    house = ServiceHarness()
    table = await house.create_table()
    sealed = request(house, table)
    await quarantine(house, sealed)
    await house.settle(600.0)
    async with house.running(reconcile_interval_s=10.0):
        await Replays(house.storage.inner, INBOX).replay(
            sealed.request.inbox_key, house.world.uuid()
        )
        await house.settle(60.0)
    assert await house.quarantined() == []
    assert len(await house.live_files()) == 1


async def test_while_the_quarantine_cannot_be_asked_nothing_lands_and_nothing_is_lost() -> None:
    house = ServiceHarness(with_queue=False)
    table = await house.create_table()
    for epoch in range(3):
        await house.publish(request(house, table, epoch=epoch), announce=False)
    away = CountingStorage(house.storage.inner)
    away.is_away = True
    house.quarantine = Quarantine(away, INBOX)
    async with house.running():
        await house.settle()
        assert await house.live_files() == []
        away.is_away = False
        await house.settle()
    assert len(await house.live_files()) == 3


class SlowStorage(CountingStorage):
    """Every read takes a second."""

    async def get(
        self,
        location: str,
        *,
        offset: int = 0,
        length: int | None = None,
        size_bytes_max: int | None = None,
    ) -> bytes:
        await asyncio.sleep(1.0)
        return await super().get(
            location, offset=offset, length=length, size_bytes_max=size_bytes_max
        )


class SlowQueue(MemoryQueue):
    """Every read takes eight seconds."""

    async def read(
        self, *, count_max: int, wait_s: float, shards: Collection[int] = ALL_SHARDS
    ) -> Sequence[Delivery]:
        await asyncio.sleep(8.0)
        return await super().read(count_max=count_max, wait_s=wait_s, shards=shards)


async def test_a_backlog_is_read_many_at_a_time() -> None:
    house = ServiceHarness(with_queue=False)
    table = await house.create_table()
    house.inbox = Inbox(SlowStorage(house.storage.inner), INBOX)
    for epoch in range(200):
        await house.inbox.put(request(house, table, epoch=epoch))
    async with house.running():
        await house.settle(15.0)
        assert len(await house.live_files()) == 200


async def test_a_large_backlog_in_the_queue_is_not_read_from_the_inbox() -> None:
    house = ServiceHarness()
    table = await house.create_table()
    for epoch in range(1_000):
        await house.publish(request(house, table, epoch=epoch))
    house.queue = SlowQueue(house.server, consumer="committer")
    async with house.running(reconcile_interval_s=10.0, reconcile_age_s=1.0):
        await house.settle(60.0)
        assert len(await house.live_files()) < 1_000
        assert hits(house) == 0
        await house.settle(60.0)
        assert len(await house.live_files()) == 1_000
        assert await house.outstanding() == []


# --- Doorbells -----------------------------------------------------------------------------------


async def test_an_old_doorbell_of_a_request_that_was_discarded_does_not_land() -> None:
    house = ServiceHarness()
    table = await house.create_table()
    async with house.running():
        await house.publish(request(house, table, epoch=0))
        await house.settle()
        discarded = request(house, table, epoch=1)
        await house.settle(TRUSTED_MS / 1000 + 1)
        # The queue was put back: it hands out for the first time what it had handed out before.
        await house.publish(discarded, durable=False)
        await house.settle()
        depth = await house.publisher_queue.depth()
        assert (depth.waiting, depth.pending) == (0, 0)
    assert len(await house.live_files()) == 1
    assert await house.quarantined() == []


async def test_an_old_doorbell_of_a_request_that_waits_lands_it() -> None:
    house = ServiceHarness()
    table = await house.create_table()
    sealed = request(house, table)
    await house.publish(sealed)
    await house.settle(86_400.0)
    await house.run_until_settled()
    assert len(await house.live_files()) == 1
    assert await house.outstanding() == []


# --- Tables that get nowhere ---------------------------------------------------------------------


async def test_a_table_that_gets_nowhere_leaves_the_memory_to_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(committer_pool, "STUCK_REQUESTS_MAX", 5)
    monkeypatch.setattr(committer_pool, "PENDING_REQUESTS_MAX", 20)
    house = ServiceHarness()
    frozen = await house.create_table()
    other = await house.create_table("db.other")
    async with house.running(reconcile_interval_s=60.0, reconcile_age_s=120.0):
        await house.publish(request(house, frozen, epoch=0))
        await house.settle()
        await foreign_commit(house, frozen, RemoveProperties((property_key("query-1"),)))
        await house.publish(request(house, frozen, epoch=1))
        await house.settle()
        for epoch in range(2, 40):
            await house.publish(request(house, frozen, epoch=epoch))
            await house.settle(1.0)
        await house.settle(300.0)
        assert not house.tables.are_full
        (stuck,) = (one for one in house.tables.all if one.identifier == frozen.identifier)
        assert len(stuck.waiting) == 5
        await house.publish(request(house, other))
        await house.settle()
        assert len(await house.live_files("db.other")) == 1
        # The oldest of what was left where it is durable counts for the lag.
        assert (house.status_collector.status().lag_s or 0) > 300
        await house.accept()
        await house.settle(300.0)
        assert await house.outstanding() == []
        depth = await house.publisher_queue.depth()
        assert (depth.waiting, depth.pending) == (0, 0)
    assert len(await house.live_files()) == 40


async def test_a_request_that_a_scan_finds_for_a_stuck_table_lands_soon_after_its_repair(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(committer_pool, "STUCK_REQUESTS_MAX", 1)
    house = ServiceHarness()
    table = await house.create_table()
    async with house.running(reconcile_interval_s=1_000.0):
        await house.publish(request(house, table, epoch=0))
        await house.settle()
        await foreign_commit(house, table, RemoveProperties((property_key("query-1"),)))
        await house.publish(request(house, table, epoch=1))
        await house.settle(100.0)
        await house.publish(request(house, table, epoch=2), announce=False)
        await house.settle(900.0)
        assert len(await house.outstanding()) == 2
        await house.accept()
        await house.settle(200.0)
        assert await house.outstanding() == []
    assert len(await house.live_files()) == 3
