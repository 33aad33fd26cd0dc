"""A durable request is found and lands, after any fault of the queue, a process or storage."""

from __future__ import annotations

import asyncio

from tests.support.builders.request_builders import build_request
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True


async def test_what_was_never_announced_is_found_by_the_reconciler() -> None:
    house = ServiceHarness()
    table = await house.create_table()
    async with house.running(reconcile_interval_s=10.0):
        await house.settle(1.0)
        await house.publish(build_request(table), announce=False)
        await house.settle()
    assert len(await house.live_files()) == 1
    assert await house.outstanding() == []


async def test_without_a_queue_the_inbox_alone_is_enough() -> None:
    house = ServiceHarness(with_queue=False)
    table = await house.create_table()
    async with house.running():
        for epoch in range(3):
            await house.publish(build_request(table, epoch=epoch), announce=False)
            await house.settle(2.0)
    assert len(await house.live_files()) == 3


async def test_while_the_queue_is_away_requests_land_all_the_same() -> None:
    house = ServiceHarness()
    table = await house.create_table()
    async with house.running():
        await house.settle(1.0)
        house.server.available = False
        await house.publish(build_request(table), announce=False)
        await house.settle(30.0)
        assert len(await house.live_files()) == 1
        assert "queue" in house.health.conditions
        house.server.available = True
        await house.settle(60.0)
        assert house.health.conditions == {}


async def test_a_flushed_queue_loses_nothing() -> None:
    house = ServiceHarness(min_interval_ms=1_000)
    table = await house.create_table()
    async with house.running(reconcile_interval_s=5.0):
        for epoch in range(10):
            await house.publish(build_request(table, epoch=epoch))
            if epoch in (3, 6):
                house.server.flush()
            await house.settle(0.2)
        await house.settle()
    assert len(await house.live_files()) == 10
    assert await house.outstanding() == []


async def test_a_crash_at_any_moment_loses_and_doubles_nothing() -> None:
    house = ServiceHarness()
    table = await house.create_table()
    for epoch in range(8):
        await house.publish(build_request(table, epoch=epoch, producer=f"query-{epoch % 3}"))
    for _ in range(12):
        async with house.running():
            for _ in range(7):
                await asyncio.sleep(0)
    await house.run_until_settled(seconds=700.0)
    paths = [file.file_path for file in await house.live_files()]
    assert len(paths) == len(set(paths)) == 8
    assert await house.outstanding() == []


async def test_storage_that_is_away_delays_and_loses_nothing() -> None:
    house = ServiceHarness()
    table = await house.create_table()
    async with house.running():
        house.storage.is_away = True
        await house.publish(build_request(table))
        await house.settle(30.0)
        assert not house.health.is_ready
        assert await house.quarantined() == []
        house.storage.is_away = False
        await house.settle(60.0)
    assert len(await house.live_files()) == 1
    assert house.health.conditions == {}
