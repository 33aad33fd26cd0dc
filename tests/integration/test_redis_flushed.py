"""FLUSHALL and kill -9 of the queue's server in mid-flight: the inbox alone brings all requests."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Awaitable, Callable
from uuid import uuid4

import pytest
from redis.asyncio import Redis

from committer.request.receipt_model import ReceiptState
from tests.support.integration.readers import expected, live_files, seen_by_all
from tests.support.integration.real_harness import RealHarness, real_harness, until
from tests.support.integration.traffic import RealProducer, all_ids, all_paths, producers

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.timeout(180)]

TABLE = "db.flights"
PRODUCERS = 4
EPOCHS_A_ROUND = 5
RANDOM_FLUSHES = 3

Fault = Callable[[RealHarness], Awaitable[None]]


async def test_every_file_is_in_the_table_once_after_the_queue_lost_everything() -> None:
    seed = uuid4().int % 2**32
    chance = random.Random(seed)
    print(f"seed {seed}")
    faults: list[Fault] = [_flush_before_reading, _flush_before_reading, _kill_server]
    faults += [lambda harness: _flush_somewhere(harness, chance)] * RANDOM_FLUSHES
    with real_harness(FRAZIL_COMMIT__MIN_INTERVAL_MS="200") as harness:
        table = await harness.create_table(TABLE)
        async with producers(harness, table, PRODUCERS, waiting=1) as published:
            await harness.start()
            for fault in faults:
                await _round(harness, published, fault)
            await until(harness.is_settled, "an empty inbox")
            await until(harness.is_healthy, "a healthy committer again")
        harness.signal(signal.SIGTERM)
        await _check(harness, published, rounds=len(faults))


async def _round(harness: RealHarness, published: list[RealProducer], fault: Fault) -> None:
    async with asyncio.TaskGroup() as tasks:
        for producer in published:
            tasks.create_task(producer.publish(EPOCHS_A_ROUND))
        await fault(harness)


async def _flush_before_reading(harness: RealHarness) -> None:
    """Lose doorbells for sure: the committer is stopped, and some were not even delivered to it."""
    harness.signal(signal.SIGSTOP)
    await until(lambda: _is_unread(harness), "doorbells that no committer has read")
    assert await _flush(harness) > 0
    harness.signal(signal.SIGCONT)


async def _flush_somewhere(harness: RealHarness, chance: random.Random) -> None:
    await asyncio.sleep(chance.uniform(0, 0.4))
    await _flush(harness)


async def _kill_server(harness: RealHarness) -> None:
    """Kill the server for a while: writers cannot announce, the committer cannot read."""
    await until(lambda: _waits(harness), "a request in the inbox")
    harness.kill_queue()
    await until(lambda: "queue" in harness.conditions(), "an outage that shows")
    harness.start_queue()


async def _waits(harness: RealHarness) -> bool:
    return len(await harness.outstanding()) > 0


async def _is_unread(harness: RealHarness) -> bool:
    queue = harness.queue("onlooker")
    try:
        depth = await queue.depth()
    finally:
        await queue.close()
    return depth.waiting - depth.pending >= EPOCHS_A_ROUND


async def _flush(harness: RealHarness) -> int:
    """Empty the server; return how many keys it had."""
    async with Redis.from_url(harness.settings.queue_url) as client:
        keys: int = await client.dbsize()
        await client.flushall()
    return keys


async def _check(harness: RealHarness, published: list[RealProducer], *, rounds: int) -> None:
    table = await harness.load(TABLE)
    assert sorted(file.path for file in live_files(table)) == all_paths(published)
    requests = rounds * PRODUCERS * EPOCHS_A_ROUND
    contents = expected(2 * requests, all_ids(published))
    seen = await seen_by_all(harness, TABLE)
    assert seen == dict.fromkeys(seen, contents)
    assert await harness.quarantined() == []
    waited = [r for r in published[0].receipts.values() if r.state == ReceiptState.COMMITTED]
    assert len(waited) == rounds * EPOCHS_A_ROUND
    found = sum(event["requests"] for event in harness.events("doorbells.missed"))
    assert found > 0, "nothing had to be found in the inbox"
    outages = len(harness.events("queue.unavailable"))
    assert outages >= 1
    print(
        f"{requests} requests of {PRODUCERS} producers; {rounds - 1} FLUSHALL and 1 kill -9 of the"
        f" server; {outages} outages seen by the committer; {found} requests found again in the"
        f" inbox; {contents.rows} rows in {contents.files} files, each once, by {', '.join(seen)};"
        f" {len(waited)} writers that waited got their receipts; inbox and quarantine empty"
    )
