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
from tests.support.integration.readers import live_files
from tests.support.integration.real_harness import RealHarness, real_harness, until
from tests.support.integration.traffic import RealProducer, all_ids, all_paths, producers

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.timeout(120)]

TABLE = "db.flights"


@asynccontextmanager
async def publishing(harness: RealHarness) -> AsyncIterator[RealProducer]:
    """Yield a producer of a new table; check at the end that everything published landed once."""
    table = await harness.create_table(TABLE)
    async with producers(harness, table, 1) as [producer]:
        yield producer
    await until(harness.is_settled, "an empty inbox")
    await until(harness.is_healthy, "a healthy committer again")
    live = live_files(await harness.load(TABLE))
    paths = [file.path for file in live]
    assert sorted(paths) == all_paths([producer])
    assert sum(file.record_count for file in live) == len(all_ids([producer]))
    assert await harness.quarantined() == []
    print(f"  {producer.epochs} requests landed, {len(paths)} files, each once, none quarantined")


async def until_degraded(harness: RealHarness, component: str, said: str) -> None:
    """Wait until `/status` shows the condition. `/readyz` fails for a component that every table
    needs, never for one table or for the queue.
    """

    def is_degraded() -> bool:
        assert harness.committer is not None and harness.committer.poll() is None
        return said in harness.conditions().get(component, "")

    await until(is_degraded, f"condition of {component}: {said}")
    status, body = harness.readiness()
    print(f"/readyz: {status} {body}; /status: {harness.conditions()}")
    assert (component in body["conditions"]) == (component in REQUIRED)
    assert status == (503 if body["conditions"] or body["phase"] != "running" else 200)


@pytest.mark.heavy
async def test_catalog_file_that_is_moved_away_is_waited_for() -> None:
    with real_harness() as harness:
        async with publishing(harness) as producer:
            await harness.start()
            await producer.publish(2)
            await until(harness.is_settled, "the first requests in the table")
            away = harness.folder / "away.db"
            # The writer has no catalog either, so its request is written before.
            harness.signal(signal.SIGSTOP)
            await producer.publish(3)
            harness.catalog_file.rename(away)
            harness.signal(signal.SIGCONT)
            await until_degraded(harness, f"table {TABLE}", "unable to open database file")
            assert not harness.catalog_file.exists()
            away.rename(harness.catalog_file)


@pytest.mark.heavy
async def test_catalog_file_that_is_away_at_the_start_is_waited_for() -> None:
    with real_harness() as harness:
        async with publishing(harness) as producer:
            await producer.publish(3)
            away = harness.folder / "away.db"
            harness.catalog_file.rename(away)
            harness.launch()
            await until_degraded(harness, "catalog", "does not exist, but requests wait")
            assert not harness.catalog_file.exists()
            away.rename(harness.catalog_file)


async def test_catalog_that_another_process_has_locked_is_waited_for() -> None:
    with real_harness() as harness:
        async with publishing(harness) as producer:
            await harness.start()
            with closing(sqlite3.connect(harness.catalog_file, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                await producer.publish(3)
                await until_degraded(harness, f"table {TABLE}", "database is locked")
                other.rollback()


async def test_catalog_file_that_is_read_only_ends_the_start_and_keeps_all_requests() -> None:
    with real_harness() as harness:
        async with publishing(harness) as producer:
            await producer.publish(3)
            with read_only_file(harness.catalog_file):
                harness.launch()
                assert harness.committer is not None
                assert await asyncio.to_thread(harness.committer.wait, 60) == 2
                said = harness.log_file.read_text().splitlines()[-1]
                assert "read-only" in said or "readonly" in said
                print(f"the committer ends with: {said}")
                assert len(await harness.outstanding()) == 3
            await harness.start()


async def wait_for_the_warehouse(
    harness: RealHarness, spoiled: AbstractContextManager[None], said: str
) -> None:
    """Publish into a warehouse that is spoiled for a while, and says this of it."""
    async with publishing(harness) as producer:
        await harness.start()
        await producer.publish(1)
        await until(harness.is_settled, "the first request in the table")
        harness.signal(signal.SIGSTOP)
        await producer.publish(2)
        with spoiled:
            harness.signal(signal.SIGCONT)
            await until_degraded(harness, f"table {TABLE}", said)


async def test_warehouse_that_is_read_only_is_waited_for() -> None:
    with real_harness() as harness, tmpfs(harness.warehouse) as mount:
        await wait_for_the_warehouse(harness, read_only(mount), "Read-only file system")


@pytest.mark.heavy
async def test_warehouse_that_is_full_is_waited_for() -> None:
    with real_harness() as harness, tmpfs(harness.warehouse, size="2m") as mount:
        await wait_for_the_warehouse(harness, full(mount), "No space left on device")


@pytest.mark.heavy
async def test_queue_server_that_comes_later_than_the_committer_is_waited_for() -> None:
    with real_harness() as harness:
        async with publishing(harness) as producer:
            harness.kill_queue()
            harness.launch()
            await until_degraded(harness, "queue", "redis.sock")
            await producer.publish(3)
            await until(harness.is_settled, "the inbox alone to do")
            print("  landed without a queue")
            harness.start_queue()
            await until(harness.is_healthy, "a healthy committer again")
            await producer.publish(3)
