"""kill -9 of the committer at random moments: every published file is in the table exactly once."""

from __future__ import annotations

import random
import signal
from uuid import uuid4

import pytest

from tests.integration.killing import (
    EPOCHS_A_ROUND,
    Moment,
    check_receipts,
    kill_once,
    next_swap,
    some_time,
)
from tests.support.integration.readers import expected, live_files, seen_by_all
from tests.support.integration.real_harness import RealHarness, real_harness, until
from tests.support.integration.traffic import RealProducer, all_ids, all_paths, producers

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.timeout(240)]

TABLE = "db.flights"
RANDOM_KILLS = 6
KILLS_AFTER_SWAP = 4
ROUNDS = RANDOM_KILLS + KILLS_AFTER_SWAP
PRODUCERS = 5


@pytest.mark.heavy
async def test_every_file_is_in_the_table_once_after_the_committer_was_killed_many_times() -> None:
    seed = uuid4().int % 2**32
    chance = random.Random(seed)
    print(f"seed {seed}")
    with real_harness(FRAZIL_COMMIT__MIN_INTERVAL_MS="50") as harness:
        table = await harness.create_table(TABLE)
        async with producers(harness, table, PRODUCERS, waiting=2) as published:
            await harness.start()
            moments: list[Moment] = [lambda: some_time(harness, chance)] * RANDOM_KILLS
            moments += [lambda: next_swap(harness)] * KILLS_AFTER_SWAP
            chance.shuffle(moments)
            in_flight = [await kill_once(harness, published, moment) for moment in moments]
        await until(harness.is_settled, "an empty inbox")
        harness.signal(signal.SIGTERM)
        await _check(harness, published, in_flight)


async def _check(harness: RealHarness, published: list[RealProducer], in_flight: list[int]) -> None:
    table = await harness.load(TABLE)
    live = live_files(table)
    assert sorted(file.path for file in live) == all_paths(published)
    requests = ROUNDS * PRODUCERS * EPOCHS_A_ROUND
    contents = expected(2 * requests, all_ids(published))
    seen = await seen_by_all(harness, TABLE)
    assert seen == dict.fromkeys(seen, contents)
    assert await harness.quarantined() == []
    receipts = check_receipts(published, {file.path: file for file in live})
    assert any(in_flight), "all kills came too late"
    duplicates = len(harness.events("request.duplicate"))
    assert duplicates, "no kill came between a swap and what follows it"
    print(
        f"{requests} requests of {PRODUCERS} producers; {ROUNDS} kills with {in_flight} requests"
        f" outstanding; {len(table.metadata.snapshots)} snapshots, {duplicates} redelivered after"
        f" they had landed; {contents.rows} rows in {contents.files} files, each once, by"
        f" {', '.join(seen)}; {receipts} receipts name the snapshot of their files; inbox and"
        " quarantine empty"
    )
