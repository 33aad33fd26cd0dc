"""FLUSHALL and kill -9 of the queue's server in mid-flight: the inbox alone brings all requests."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Awaitable, Callable
from uuid import uuid4

import pytest
from redis.asyncio import Redis

from committer.queue.redis_stream import RedisQueue
from committer.request.receipt_model import ReceiptState
from tests.integration.readers import expected, live_files, seen_by_all
from tests.integration.real_house import RealHouse, real_house, until
from tests.integration.traffic import RealProducer, all_ids, all_paths, producers

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.timeout(180)]

TABLE = "db.flights"
PRODUCERS = 4
EPOCHS_A_ROUND = 5
RANDOM_FLUSHES = 3

Fault = Callable[[RealHouse], Awaitable[None]]


async def test_every_file_is_in_the_table_once_after_the_queue_lost_everything() -> None:
    seed = uuid4().int % 2**32
    chance = random.Random(seed)
    print(f"seed {seed}")
    faults: list[Fault] = [_flush_before_reading, _flush_before_reading, _kill_server]
    faults += [lambda house: _flush_somewhere(house, chance)] * RANDOM_FLUSHES
    with real_house(FRAZIL_COMMIT__MIN_INTERVAL_MS="200") as house:
        table = await house.create_table(TABLE)
        async with producers(house, table, PRODUCERS, waiting=1) as published:
            await house.start()
            for fault in faults:
                await _round(house, published, fault)
            await until(house.is_settled, "an empty inbox")
            await until(house.is_healthy, "a healthy committer again")
        house.signal(signal.SIGTERM)
        await _check(house, published, rounds=len(faults))


async def _round(house: RealHouse, published: list[RealProducer], fault: Fault) -> None:
    async with asyncio.TaskGroup() as tasks:
        for producer in published:
            tasks.create_task(producer.publish(EPOCHS_A_ROUND))
        await fault(house)


async def _flush_before_reading(house: RealHouse) -> None:
    """Doorbells are lost for sure: the committer stands still, and was not even sent some."""
    house.signal(signal.SIGSTOP)
    await until(lambda: _is_unread(house), "doorbells that no committer has read")
    assert await _flush(house) > 0
    house.signal(signal.SIGCONT)


async def _flush_somewhere(house: RealHouse, chance: random.Random) -> None:
    await asyncio.sleep(chance.uniform(0, 0.4))
    await _flush(house)


async def _kill_server(house: RealHouse) -> None:
    """The server is gone for a while: writers cannot announce, the committer cannot read."""
    await until(lambda: _waits(house), "a request in the inbox")
    house.kill_queue()
    await until(lambda: "queue" in house.conditions(), "an outage that shows")
    house.start_queue()


async def _waits(house: RealHouse) -> bool:
    return len(await house.outstanding()) > 0


async def _is_unread(house: RealHouse) -> bool:
    queue = RedisQueue(house.settings.queue_url, consumer="onlooker")
    try:
        depth = await queue.depth()
    finally:
        await queue.close()
    return depth.waiting - depth.pending >= EPOCHS_A_ROUND


async def _flush(house: RealHouse) -> int:
    """Empty the server; returns how many keys it had."""
    async with Redis.from_url(house.settings.queue_url) as client:
        keys: int = await client.dbsize()
        await client.flushall()
    return keys


async def _check(house: RealHouse, published: list[RealProducer], *, rounds: int) -> None:
    table = await house.load(TABLE)
    assert sorted(file.path for file in live_files(table)) == all_paths(published)
    requests = rounds * PRODUCERS * EPOCHS_A_ROUND
    contents = expected(2 * requests, all_ids(published))
    seen = await seen_by_all(house, TABLE)
    assert seen == dict.fromkeys(seen, contents)
    assert await house.quarantined() == []
    waited = [r for r in published[0].receipts.values() if r.state == ReceiptState.COMMITTED]
    assert len(waited) == rounds * EPOCHS_A_ROUND
    found = sum(event["requests"] for event in house.events("inbox.recovered"))
    assert found > 0, "nothing had to be found in the inbox"
    outages = len(house.events("queue.unavailable"))
    assert outages >= 1
    print(
        f"{requests} requests of {PRODUCERS} producers; {rounds - 1} FLUSHALL and 1 kill -9 of the"
        f" server; {outages} outages seen by the committer; {found} requests found again in the"
        f" inbox; {contents.rows} rows in {contents.files} files, each once, by {', '.join(seen)};"
        f" {len(waited)} writers that waited got their receipts; inbox and quarantine empty"
    )
