"""Storage, catalog or queue away or unusable: `/status` says so, and nothing is lost."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, closing

import pytest

from committer.service.telemetry.health import REQUIRED
from tests.integration.mounts import full, read_only, read_only_file, tmpfs
from tests.integration.readers import live_files
from tests.integration.real_house import RealHouse, real_house, until
from tests.integration.traffic import RealProducer, all_ids, all_paths, producers

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.timeout(120)]

TABLE = "db.flights"


@asynccontextmanager
async def publishing(house: RealHouse) -> AsyncIterator[RealProducer]:
    """A table and a producer; at the end everything published is in the table, once."""
    table = await house.create_table(TABLE)
    async with producers(house, table, 1) as [producer]:
        yield producer
    await until(house.is_settled, "an empty inbox")
    await until(house.is_healthy, "a healthy committer again")
    live = live_files(await house.load(TABLE))
    paths = [file.path for file in live]
    assert sorted(paths) == all_paths([producer])
    assert sum(file.record_count for file in live) == len(all_ids([producer]))
    assert await house.quarantined() == []
    print(f"  {producer.epochs} requests landed, {len(paths)} files, each once, none quarantined")


async def until_degraded(house: RealHouse, component: str, said: str) -> None:
    """The status says so. Readiness is refused for what every table needs, and never for one
    table or for the queue.
    """

    def is_degraded() -> bool:
        assert house.committer is not None and house.committer.poll() is None
        return said in house.conditions().get(component, "")

    await until(is_degraded, f"condition of {component}: {said}")
    status, body = house.readiness()
    print(f"/readyz: {status} {body}; /status: {house.conditions()}")
    assert (component in body["conditions"]) == (component in REQUIRED)
    assert status == (503 if body["conditions"] or body["phase"] != "running" else 200)


async def test_catalog_file_that_is_moved_away_is_waited_for() -> None:
    with real_house() as house:
        async with publishing(house) as producer:
            await house.start()
            await producer.publish(2)
            await until(house.is_settled, "the first requests in the table")
            away = house.folder / "away.db"
            # The writer has no catalog either, so its request is written before.
            house.signal(signal.SIGSTOP)
            await producer.publish(3)
            house.catalog_file.rename(away)
            house.signal(signal.SIGCONT)
            await until_degraded(house, f"table {TABLE}", "unable to open database file")
            assert not house.catalog_file.exists()
            away.rename(house.catalog_file)


async def test_catalog_file_that_is_away_at_the_start_is_waited_for() -> None:
    with real_house() as house:
        async with publishing(house) as producer:
            await producer.publish(3)
            away = house.folder / "away.db"
            house.catalog_file.rename(away)
            house.launch()
            await until_degraded(house, "catalog", "does not exist, but requests wait")
            assert not house.catalog_file.exists()
            away.rename(house.catalog_file)


async def test_catalog_that_another_process_has_locked_is_waited_for() -> None:
    with real_house() as house:
        async with publishing(house) as producer:
            await house.start()
            with closing(sqlite3.connect(house.catalog_file, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                await producer.publish(3)
                await until_degraded(house, f"table {TABLE}", "database is locked")
                other.rollback()


async def test_catalog_file_that_is_read_only_ends_the_start_and_keeps_all_requests() -> None:
    with real_house() as house:
        async with publishing(house) as producer:
            await producer.publish(3)
            with read_only_file(house.catalog_file):
                house.launch()
                assert house.committer is not None
                assert await asyncio.to_thread(house.committer.wait, 60) == 2
                said = house.log_file.read_text().splitlines()[-1]
                assert "read-only" in said or "readonly" in said
                print(f"the committer ends with: {said}")
                assert len(await house.outstanding()) == 3
            await house.start()


async def wait_for_the_warehouse(
    house: RealHouse, spoiled: AbstractContextManager[None], said: str
) -> None:
    """Publish into a warehouse that is spoiled for a while, and says this of it."""
    async with publishing(house) as producer:
        await house.start()
        await producer.publish(1)
        await until(house.is_settled, "the first request in the table")
        house.signal(signal.SIGSTOP)
        await producer.publish(2)
        with spoiled:
            house.signal(signal.SIGCONT)
            await until_degraded(house, f"table {TABLE}", said)


async def test_warehouse_that_is_read_only_is_waited_for() -> None:
    with real_house() as house, tmpfs(house.warehouse) as mount:
        await wait_for_the_warehouse(house, read_only(mount), "Read-only file system")


async def test_warehouse_that_is_full_is_waited_for() -> None:
    with real_house() as house, tmpfs(house.warehouse, size="2m") as mount:
        await wait_for_the_warehouse(house, full(mount), "No space left on device")


async def test_queue_server_that_comes_later_than_the_committer_is_waited_for() -> None:
    with real_house() as house:
        async with publishing(house) as producer:
            house.kill_queue()
            house.launch()
            await until_degraded(house, "queue", "redis.sock")
            await producer.publish(3)
            await until(house.is_settled, "the inbox alone to do")
            print("  landed without a queue")
            house.start_queue()
            await until(house.is_healthy, "a healthy committer again")
            await producer.publish(3)
