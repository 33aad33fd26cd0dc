"""The reconciler: what it takes, what it leaves alone, what it costs; doorbells that ring late."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

import pytest
from structlog.testing import capture_logs

from committer.iceberg.updates.metadata_update import RemoveProperties
from committer.ledger_entry import property_key
from committer.ports.pointer_swap import LoadedTable
from committer.ports.queue import ALL_SHARDS, Delivery
from committer.reason import Reason
from committer.request.request_format import EncodedRequest
from committer.service.ingest import committer_pool
from committer.service.ingest.intake import TRUSTED_MS
from committer.storage.inbox.inbox import Inbox, Quarantine, QuarantineRecord
from committer.storage.inbox.replays import Replays
from tests.support.builders.request_builders import build_request
from tests.support.faults.counting_storage import CountingStorage
from tests.support.memory.memory_queue import MemoryQueue
from tests.support.service.outside import foreign_commit
from tests.support.service.service_harness import INBOX, ServiceHarness

VIRTUAL_TIME = True


def request(
    harness: ServiceHarness, table: LoadedTable, producer: str = "query-1", epoch: int = 0
) -> EncodedRequest:
    """Build a request published now."""
    now_ms = harness.world.now_ms()
    return build_request(table, producer=producer, epoch=epoch, published_at_ms=now_ms)


def hits(harness: ServiceHarness) -> float:
    samples = harness.metrics.instruments.samples()
    return sum(one.value for one in samples if one.name == "frazil_missed_doorbells_total")


async def quarantine(harness: ServiceHarness, sealed: EncodedRequest) -> None:
    """Write a record, as another committer does before the request leaves the inbox."""
    key = sealed.request.inbox_key
    record = QuarantineRecord(
        key=key, reason=Reason.SCHEMA_MISMATCH, message="", quarantined_at_ms=0
    )
    await harness.quarantine.put(record, sealed.content)


# --- What it takes and leaves --------------------------------------------------------------------


async def test_a_clock_that_is_hours_behind_keeps_nothing_in_the_inbox() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running(reconcile_interval_s=10.0, reconcile_age_s=15.0):
        await harness.settle(20.0)
        await harness.publish(request(harness, table), announce=False)
        harness.world.skew_ms = -7_200_000
        await harness.settle(60.0)
        assert await harness.outstanding() == []
        assert len(await harness.live_files()) == 1


async def test_in_steady_state_it_finds_nothing() -> None:
    harness = ServiceHarness(min_interval_ms=1_000)
    table = await harness.create_table()
    async with harness.running(reconcile_interval_s=10.0, reconcile_age_s=2.0):
        for epoch in range(15):
            for producer in ("query-1", "query-2", "query-3"):
                await harness.publish(request(harness, table, producer, epoch))
                await harness.settle(1.3)
        await harness.settle()
        assert hits(harness) == 0
        # And it does find a request without a doorbell.
        await harness.publish(request(harness, table, epoch=15), announce=False)
        await harness.settle()
        assert hits(harness) == 1
    assert len(await harness.live_files()) == 46
    assert await harness.outstanding() == []


async def test_a_quarantining_that_was_cut_off_is_finished_and_not_judged_again() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    sealed = request(harness, table)
    await harness.publish(sealed, announce=False)
    # The cause may be gone by now: it could land.
    await quarantine(harness, sealed)
    async with harness.running(reconcile_interval_s=10.0):
        await harness.settle()
        assert await harness.outstanding() == []
        assert hits(harness) == 1
    assert [record.reason for record in await harness.quarantined()] == [Reason.SCHEMA_MISMATCH]
    assert await harness.live_files() == []


async def test_a_request_that_was_replayed_is_taken_however_old_its_record_was() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    sealed = request(harness, table)
    await quarantine(harness, sealed)
    await harness.settle(600.0)
    async with harness.running(reconcile_interval_s=10.0):
        await Replays(harness.storage.inner, INBOX).replay(
            sealed.request.inbox_key, harness.world.uuid()
        )
        await harness.settle(60.0)
    assert await harness.quarantined() == []
    assert len(await harness.live_files()) == 1


async def test_while_the_quarantine_cannot_be_asked_nothing_lands_and_nothing_is_lost() -> None:
    harness = ServiceHarness(with_queue=False)
    table = await harness.create_table()
    for epoch in range(3):
        await harness.publish(request(harness, table, epoch=epoch), announce=False)
    away = CountingStorage(harness.storage.inner)
    away.is_away = True
    harness.quarantine = Quarantine(away, INBOX)
    async with harness.running():
        await harness.settle()
        assert await harness.live_files() == []
        away.is_away = False
        await harness.settle()
    assert len(await harness.live_files()) == 3


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
    """Every read takes eight seconds, and brings no more than it must."""

    async def read(
        self,
        *,
        count_max: int,
        wait_s: float,
        shards: Collection[int] = ALL_SHARDS,
        more_max: int = 0,
    ) -> Sequence[Delivery]:
        await asyncio.sleep(8.0)
        return await super().read(count_max=count_max, wait_s=wait_s, shards=shards, more_max=0)


async def test_a_backlog_is_read_many_at_a_time() -> None:
    harness = ServiceHarness(with_queue=False)
    table = await harness.create_table()
    harness.inbox = Inbox(SlowStorage(harness.storage.inner), INBOX)
    for epoch in range(200):
        await harness.inbox.put(request(harness, table, epoch=epoch))
    async with harness.running():
        await harness.settle(15.0)
        assert len(await harness.live_files()) == 200


@pytest.mark.thorough
async def test_a_large_backlog_in_the_queue_is_not_read_from_the_inbox() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    for epoch in range(1_000):
        await harness.publish(request(harness, table, epoch=epoch))
    harness.queue = SlowQueue(harness.server, consumer="committer")
    async with harness.running(reconcile_interval_s=10.0, reconcile_age_s=1.0):
        await harness.settle(60.0)
        assert len(await harness.live_files()) < 1_000
        assert hits(harness) == 0
        await harness.settle(60.0)
        assert len(await harness.live_files()) == 1_000
        assert await harness.outstanding() == []


# --- Doorbells -----------------------------------------------------------------------------------


async def test_an_old_doorbell_of_a_request_that_was_discarded_does_not_land() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running():
        await harness.publish(request(harness, table, epoch=0))
        await harness.settle()
        discarded = request(harness, table, epoch=1)
        await harness.settle(TRUSTED_MS / 1000 + 1)
        # The queue was put back: it hands out for the first time what it had handed out before.
        await harness.publish(discarded, durable=False)
        await harness.settle()
        depth = await harness.publisher_queue.depth()
        assert (depth.waiting, depth.pending) == (0, 0)
    assert len(await harness.live_files()) == 1
    assert await harness.quarantined() == []


async def test_an_old_doorbell_of_a_request_that_waits_lands_it() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    sealed = request(harness, table)
    await harness.publish(sealed)
    await harness.settle(86_400.0)
    await harness.run_until_settled()
    assert len(await harness.live_files()) == 1
    assert await harness.outstanding() == []


# --- Tables that get nowhere ---------------------------------------------------------------------


async def test_a_table_that_gets_nowhere_leaves_the_memory_to_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(committer_pool, "STUCK_REQUESTS_MAX", 5)
    monkeypatch.setattr(committer_pool, "PENDING_REQUESTS_MAX", 20)
    harness = ServiceHarness()
    frozen = await harness.create_table()
    other = await harness.create_table("db.other")
    async with harness.running(reconcile_interval_s=60.0, reconcile_age_s=120.0):
        await harness.publish(request(harness, frozen, epoch=0))
        await harness.settle()
        await foreign_commit(harness, frozen, RemoveProperties((property_key("query-1"),)))
        await harness.publish(request(harness, frozen, epoch=1))
        await harness.settle()
        for epoch in range(2, 40):
            await harness.publish(request(harness, frozen, epoch=epoch))
            await harness.settle(1.0)
        await harness.settle(300.0)
        assert not harness.tables.are_full
        (stuck,) = (one for one in harness.tables.all if one.identifier == frozen.identifier)
        assert len(stuck.waiting) == 5
        await harness.publish(request(harness, other))
        await harness.settle()
        assert len(await harness.live_files("db.other")) == 1
        # The oldest of what was left where it is durable counts for the lag.
        status = harness.status_collector.status()
        assert (status.lag_s, (status.held_s or 0) > 300) == (0, True)
        await harness.accept()
        await harness.settle(300.0)
        assert await harness.outstanding() == []
        depth = await harness.publisher_queue.depth()
        assert (depth.waiting, depth.pending) == (0, 0)
    assert len(await harness.live_files()) == 40


async def test_a_request_that_a_scan_finds_for_a_stuck_table_lands_soon_after_its_repair(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(committer_pool, "STUCK_REQUESTS_MAX", 1)
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running(reconcile_interval_s=1_000.0):
        await harness.publish(request(harness, table, epoch=0))
        await harness.settle()
        await foreign_commit(harness, table, RemoveProperties((property_key("query-1"),)))
        await harness.publish(request(harness, table, epoch=1))
        await harness.settle(100.0)
        await harness.publish(request(harness, table, epoch=2), announce=False)
        await harness.settle(900.0)
        assert len(await harness.outstanding()) == 2
        await harness.accept()
        await harness.settle(200.0)
        assert await harness.outstanding() == []
    assert len(await harness.live_files()) == 3


# --- What it says --------------------------------------------------------------------------------


async def test_each_outage_of_the_inbox_is_logged_once_and_so_is_its_end() -> None:
    harness = ServiceHarness()
    with capture_logs() as logs:
        async with harness.running(reconcile_interval_s=10.0):
            for _ in range(3):
                harness.inbox_storage.is_away = True
                await harness.settle(65.0)
                harness.inbox_storage.is_away = False
                await harness.settle(65.0)
    said = [(one["event"], one["log_level"]) for one in logs if one["event"][:6] == "inbox."]
    assert said == [("inbox.unavailable", "warning"), ("inbox.recovered", "warning")] * 3
