"""A durable request is found and lands, after any fault of the queue, a process or storage."""

from __future__ import annotations

import asyncio

from tests.support.builders.request_builders import build_request
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True


async def test_what_was_never_announced_is_found_by_the_reconciler() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running(reconcile_interval_s=10.0):
        await harness.settle(1.0)
        await harness.publish(build_request(table), announce=False)
        await harness.settle()
    assert len(await harness.live_files()) == 1
    assert await harness.outstanding() == []


async def test_without_a_queue_the_inbox_alone_is_enough() -> None:
    harness = ServiceHarness(with_queue=False)
    table = await harness.create_table()
    async with harness.running():
        for epoch in range(3):
            await harness.publish(build_request(table, epoch=epoch), announce=False)
            await harness.settle(2.0)
    assert len(await harness.live_files()) == 3


async def test_while_the_queue_is_away_requests_land_all_the_same() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running():
        await harness.settle(1.0)
        harness.server.available = False
        await harness.publish(build_request(table), announce=False)
        await harness.settle(30.0)
        assert len(await harness.live_files()) == 1
        assert "queue" in harness.health.conditions
        harness.server.available = True
        await harness.settle(60.0)
        assert harness.health.conditions == {}


async def test_a_flushed_queue_loses_nothing() -> None:
    harness = ServiceHarness(min_interval_ms=1_000)
    table = await harness.create_table()
    async with harness.running(reconcile_interval_s=5.0):
        for epoch in range(10):
            await harness.publish(build_request(table, epoch=epoch))
            if epoch in (3, 6):
                harness.server.flush()
            await harness.settle(0.2)
        await harness.settle()
    assert len(await harness.live_files()) == 10
    assert await harness.outstanding() == []


async def test_a_crash_at_any_moment_loses_and_doubles_nothing() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    for epoch in range(8):
        await harness.publish(build_request(table, epoch=epoch, producer=f"query-{epoch % 3}"))
    for _ in range(12):
        async with harness.running():
            for _ in range(7):
                await asyncio.sleep(0)
    await harness.run_until_settled(seconds=700.0)
    paths = [file.file_path for file in await harness.live_files()]
    assert len(paths) == len(set(paths)) == 8
    assert await harness.outstanding() == []


async def test_storage_that_is_away_delays_and_loses_nothing() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running():
        harness.storage.is_away = True
        await harness.publish(build_request(table))
        await harness.settle(30.0)
        assert not harness.health.is_ready
        assert await harness.quarantined() == []
        harness.storage.is_away = False
        await harness.settle(60.0)
    assert len(await harness.live_files()) == 1
    assert harness.health.conditions == {}
