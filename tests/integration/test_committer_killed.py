"""kill -9 of the committer at random moments: every published file is in the table exactly once."""

from __future__ import annotations

import asyncio
import random
import signal
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from uuid import uuid4

import pytest

from committer.request import ReceiptState
from tests.integration.readers import LiveFile, expected, live_files, seen_by_all
from tests.integration.real_house import RealHouse, real_house, until
from tests.integration.traffic import RealProducer, all_ids, all_paths, producers

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.timeout(240)]

TABLE = "db.flights"
RANDOM_KILLS = 6
KILLS_AFTER_SWAP = 4
ROUNDS = RANDOM_KILLS + KILLS_AFTER_SWAP
PRODUCERS = 5
EPOCHS_A_ROUND = 3
DELAY_S_MAX = 0.4

Moment = Callable[[], Awaitable[None]]


async def test_every_file_is_in_the_table_once_after_the_committer_was_killed_many_times() -> None:
    seed = uuid4().int % 2**32
    chance = random.Random(seed)
    print(f"seed {seed}")
    with real_house(FRAZIL_COMMIT__MIN_INTERVAL_MS="50") as house:
        table = await house.create_table(TABLE)
        async with producers(house, table, PRODUCERS, waiting=2) as published:
            await house.start()
            moments: list[Moment] = [lambda: _some_time(house, chance)] * RANDOM_KILLS
            moments += [lambda: _next_swap(house)] * KILLS_AFTER_SWAP
            chance.shuffle(moments)
            in_flight = [await _round(house, published, moment) for moment in moments]
        await until(house.is_settled, "an empty inbox")
        house.signal(signal.SIGTERM)
        await _check(house, published, in_flight)


async def _round(house: RealHouse, published: list[RealProducer], moment: Moment) -> int:
    """Publish from all producers; meanwhile kill the committer once, and start it again.

    Returns how many requests were outstanding at the kill.
    """
    async with asyncio.TaskGroup() as tasks:
        for producer in published:
            tasks.create_task(producer.publish(EPOCHS_A_ROUND))
        await moment()
        house.signal(signal.SIGKILL)
        in_flight = len(await house.outstanding())
        await house.start()
    return in_flight


async def _some_time(house: RealHouse, chance: random.Random) -> None:
    await until(lambda: _has_work(house), "a request in the inbox", poll_s=0.001)
    await asyncio.sleep(chance.uniform(0, DELAY_S_MAX))


async def _next_swap(house: RealHouse) -> None:
    """The instant after a swap: what it landed is still in the inbox, and not acknowledged."""
    with closing(sqlite3.connect(house.catalog_file)) as catalog:

        def pointer() -> object:
            return catalog.execute("SELECT metadata_location FROM iceberg_tables").fetchall()

        before = pointer()
        await until(lambda: pointer() != before, "a swap", poll_s=0)


async def _has_work(house: RealHouse) -> bool:
    return bool(await house.outstanding())


async def _check(house: RealHouse, published: list[RealProducer], in_flight: list[int]) -> None:
    table = await house.load(TABLE)
    live = live_files(table)
    assert sorted(file.path for file in live) == all_paths(published)
    requests = ROUNDS * PRODUCERS * EPOCHS_A_ROUND
    contents = expected(2 * requests, all_ids(published))
    seen = await seen_by_all(house, TABLE)
    assert seen == dict.fromkeys(seen, contents)
    assert await house.quarantined() == []
    receipts = _check_receipts(published, {file.path: file for file in live})
    assert any(in_flight), "all kills came too late"
    duplicates = len(house.events("request.duplicate"))
    assert duplicates, "no kill came between a swap and what follows it"
    print(
        f"{requests} requests of {PRODUCERS} producers; {ROUNDS} kills with {in_flight} requests"
        f" outstanding; {len(table.metadata.snapshots)} snapshots, {duplicates} redelivered after"
        f" they had landed; {contents.rows} rows in {contents.files} files, each once, by"
        f" {', '.join(seen)}; {receipts} receipts name the snapshot of their files; inbox and"
        " quarantine empty"
    )


def _check_receipts(published: list[RealProducer], live: dict[str, LiveFile]) -> int:
    """A committed receipt names the snapshot and sequence number that its file really has."""
    checked = 0
    for producer in published:
        for epoch, receipt in producer.receipts.items():
            if producer.wait == "durable":
                assert receipt.state == ReceiptState.DURABLE
                continue
            file = live[producer.path_of_epoch[epoch]]
            assert receipt.state == ReceiptState.COMMITTED
            assert receipt.snapshot_id == file.snapshot_id
            assert receipt.sequence_number == file.sequence_number
            assert not receipt.duplicate
            checked += 1
    return checked
