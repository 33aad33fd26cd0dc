"""kill -9 of the committer while other engines expire all that they can: every published file is in
the table exactly once, and nothing in quarantine.

PyIceberg's expiry runs, Spark's procedure, and what Trino does. Trino itself shares no catalog with
Frazil today (its JDBC catalog has no driver for SQLite), but its `expire_snapshots` is a call of
Iceberg's Java library: that call is made here.
"""

from __future__ import annotations

import asyncio
import random
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from uuid import uuid4

import pytest
from pyiceberg.exceptions import CommitFailedException
from sqlalchemy.exc import OperationalError

from tests.integration.killing import (
    EPOCHS_A_ROUND,
    Moment,
    check_receipts,
    kill_once,
    next_swap,
    some_time,
)
from tests.support.integration.java_engine import JavaEngine, java_engine
from tests.support.integration.readers import expected, live_files, seen_by_all
from tests.support.integration.real_harness import RealHarness, real_harness, until
from tests.support.integration.traffic import RealProducer, all_ids, all_paths, producers
from tests.support.pyiceberg_expiry import expire_all_old, pyiceberg_table

pytestmark = [
    pytest.mark.server,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.heavy,
    pytest.mark.timeout(400),
]

TABLE = "db.flights"
RANDOM_KILLS = 4
KILLS_AFTER_SWAP = 8
PRODUCERS = 5
# Of a commit that another one came before, or that found the file of the catalog locked.
LOST = ("CommitFailed", "locked", "BUSY", "Cannot commit")

ENGINES = ("PyIceberg", "Spark", "Trino's call")

Expiry = Callable[[], object]


def by_pyiceberg(harness: RealHarness) -> None:
    with pyiceberg_table(harness, TABLE) as table:
        expire_all_old(table)


def expiries(harness: RealHarness, java: JavaEngine) -> dict[str, Expiry]:
    """Return how each engine expires all but the head."""
    procedure = (
        f"CALL frazil.system.expire_snapshots(table => '{TABLE}',"
        " older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1)"
    )
    calls = (
        partial(by_pyiceberg, harness),
        partial(java.sql, procedure),
        partial(java.expire_as_trino, TABLE),
    )
    return dict(zip(ENGINES, calls, strict=True))


@asynccontextmanager
async def expiring(each: Mapping[str, Expiry]) -> AsyncIterator[Counter[str]]:
    """Run the expiries in turn, again and again; yield how often each has succeeded."""
    done: Counter[str] = Counter()
    is_over = asyncio.Event()

    async def expire_on() -> None:
        while not is_over.is_set():
            for name, expire in each.items():
                try:
                    await asyncio.to_thread(expire)
                except (CommitFailedException, OperationalError, RuntimeError) as error:
                    if not any(text in str(error) or text in repr(error) for text in LOST):
                        raise
                    done[f"{name}, in vain"] += 1
                else:
                    done[name] += 1

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(expire_on())
        try:
            yield done
        finally:
            is_over.set()


async def test_every_file_is_there_once_after_kills_beside_the_expiries_of_others() -> None:
    seed = uuid4().int % 2**32
    chance = random.Random(seed)
    print(f"seed {seed}")
    with real_harness(FRAZIL_COMMIT__MIN_INTERVAL_MS="50") as harness, java_engine(harness) as java:
        table = await harness.create_table(TABLE)
        async with producers(harness, table, PRODUCERS, waiting=2) as published:
            await harness.start()
            await asyncio.gather(*(producer.publish() for producer in published))
            await until(harness.is_settled, "an empty inbox")
            moments: list[Moment] = [lambda: some_time(harness, chance)] * RANDOM_KILLS
            moments += [lambda: next_swap(harness)] * KILLS_AFTER_SWAP
            chance.shuffle(moments)
            async with expiring(expiries(harness, java)) as done:
                in_flight = []
                for number, moment in enumerate(moments):
                    await _land_alone(harness, published[number % PRODUCERS], done)
                    in_flight.append(await kill_once(harness, published, moment))
                await until(harness.is_settled, "an empty inbox")
        harness.signal(signal.SIGTERM)
        await _check(harness, published, in_flight, done)


async def _land_alone(harness: RealHarness, producer: RealProducer, done: Counter[str]) -> None:
    """Land a snapshot of one producer, and expire all behind it: no history tells of the others."""
    await until(harness.is_settled, "an empty inbox")
    await producer.publish()
    await until(harness.is_settled, "an empty inbox")
    before = done.copy()
    await until(lambda: all(done[name] > before[name] for name in ENGINES), "an expiry by each")


async def _check(
    harness: RealHarness, published: list[RealProducer], in_flight: list[int], done: Counter[str]
) -> None:
    table = await harness.load(TABLE)
    live = live_files(table)
    assert await harness.quarantined() == []
    assert sorted(file.path for file in live) == all_paths(published)
    seen = await seen_by_all(harness, TABLE)
    contents = expected(len(all_paths(published)), all_ids(published))
    assert seen == dict.fromkeys(seen, contents)
    receipts = check_receipts(published, {file.path: file for file in live})
    requests = PRODUCERS * (EPOCHS_A_ROUND * len(in_flight) + 1) + len(in_flight)
    print(
        f"{requests} requests of {PRODUCERS} producers; {len(in_flight)} kills with {in_flight}"
        f" requests outstanding; expiries: {dict(done)}; {len(table.metadata.snapshots)} snapshots"
        f" left; {len(harness.events('request.duplicate'))} redelivered after they had landed;"
        f" {contents.rows} rows, each once, by {', '.join(seen)}; {receipts} receipts are true"
    )
