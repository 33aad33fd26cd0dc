"""Three real committers on one Valkey: they share, hand over, die and stand still. Nothing is lost
or doubled, and every shard has an owner again in time.
"""

from __future__ import annotations

import asyncio
import signal
import time
import urllib.request
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from committer.ports.queue import SHARDS
from tests.support.integration.exactness import check_exactly_once
from tests.support.integration.real_harness import RealHarness, real_harness, replicas, until
from tests.support.integration.traffic import producers

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.timeout(180)]

TABLES = ("db.one", "db.two", "db.three", "db.four")
LEASE_S = 4
EPOCHS_A_ROUND = 4

Fault = Callable[[], Awaitable[None]]


def owned(replica: RealHarness) -> int:
    """Return how many shards a committer says it owns; 0 where none answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{replica.port}/metrics", timeout=5) as page:
            lines = page.read().decode().splitlines()
    except OSError:
        return 0
    return next(
        (int(float(one.split()[1])) for one in lines if one.startswith("frazil_shards ")), 0
    )


def have_shared(*replicas: RealHarness) -> bool:
    shares = [owned(replica) for replica in replicas]
    return sum(shares) == SHARDS and all(shares)


async def test_committers_come_end_die_and_stand_still_while_work_goes_on() -> None:
    took_s: dict[str, float] = {}
    with (
        real_harness(
            FRAZIL_COMMIT__MIN_INTERVAL_MS="50",
            FRAZIL_SERVICE__LEASE_S=str(LEASE_S),
            FRAZIL_QUEUE__RECLAIM_IDLE_S="300",
        ) as harness,
        replicas(harness, 3) as (first, second, third),
    ):
        tables = [await harness.create_table(name) for name in TABLES]
        async with AsyncExitStack() as stack:
            groups = [
                await stack.enter_async_context(producers(harness, table, 2, waiting=1))
                for table in tables
            ]
            published = [producer for group in groups for producer in group]

            async def round_(fault: Fault, what: str, *owners: RealHarness) -> None:
                async with asyncio.TaskGroup() as tasks:
                    for producer in published:
                        tasks.create_task(producer.publish(EPOCHS_A_ROUND))
                    started_s = time.monotonic()
                    await fault()
                    await until(lambda: have_shared(*owners), f"{what}: all shards owned")
                    took_s[what] = time.monotonic() - started_s

            async def sends(replica: RealHarness, number: signal.Signals) -> None:
                assert replica.committer is not None
                replica.committer.send_signal(number)

            async def is_gone(replica: RealHarness) -> None:
                assert replica.committer is not None
                await asyncio.to_thread(replica.committer.wait, 60)

            async def both_start() -> None:
                await asyncio.gather(second.start(), third.start())

            await first.start()
            await round_(both_start, "two came", first, second, third)
            await round_(lambda: sends(first, signal.SIGTERM), "SIGTERM", second, third)
            await is_gone(first)
            await round_(first.start, "one came back", first, second, third)
            await round_(lambda: sends(second, signal.SIGKILL), "kill -9", first, third)
            await round_(lambda: sends(third, signal.SIGSTOP), "SIGSTOP", first)
            await round_(lambda: sends(third, signal.SIGCONT), "SIGCONT", first, third)
            await until(harness.is_settled, "an empty inbox")
            for name, group in zip(TABLES, groups, strict=True):
                found = await check_exactly_once(harness, name, group)
                assert (found.quarantined, found.superseded) == (0, 0)
        moves = harness.events("shards.moved")
        assert sum(event["lost"] for event in moves) > 0, "no committer was stopped for long enough"
        assert not [one for replica in (first, third) for one in replica.conditions()]
    told = ", ".join(f"{what} {s:.2f} s" for what, s in took_s.items())
    print(f"all shards owned again after: {told} (lease {LEASE_S} s)")
