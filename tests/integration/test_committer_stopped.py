"""A committer is stopped for longer than its leases last, another one takes over its work, and then
the first continues where it was. Two owners at once: each request is in its table once.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.dying_harness import PROPERTIES, SETTINGS, DyingHarness, dying_harness
from tests.support.integration.exactness import check_exactly_once
from tests.support.integration.real_harness import until
from tests.support.integration.traffic import RealProducer, producers

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.heavy, pytest.mark.timeout(300)]

TABLE = "db.flights"
STOPS = (
    "storage.create manifest and manifest list and metadata file/before",
    "catalog.swap/before",
    "catalog.swap/after",
    "queue.acknowledge/before",
    "storage.delete inbox/before",
    "storage.create quarantine/before",
    "storage.create quarantine/after",
    "storage.create manifest/after",
    "storage.create journal/after",
    "storage.delete manifest list/before",
    "storage.delete metadata file/before",
    "leases.renew/before",
)
AT_ONCE = 3
ROUNDS_MAX = 20


async def test_requests_land_once_wherever_the_committer_stood_still() -> None:
    """Some harnesses at once: most of the time everybody waits."""
    limit = asyncio.Semaphore(AT_ONCE)

    async def stop(at: str) -> None:
        async with limit:
            await _stand_still(at)

    async with asyncio.TaskGroup() as tasks:
        for at in STOPS:
            tasks.create_task(stop(at))


async def _stand_still(at: str) -> None:
    with dying_harness(**SETTINGS) as first, _second_of(first) as second:
        table = await first.create_table(TABLE, properties=PROPERTIES)
        async with producers(first, table, 3, waiting=1) as published:
            first.dies = {"DIES_AT": at, "DIES_BY": "stop"}
            await first.start()
            await published[1].publish()
            await until(first.is_settled, "an empty inbox")
            first.tell_when(due=True)
            waits = asyncio.create_task(published[0].publish())
            await _publish_until_stopped(first, published)
            await second.start()
            # Not an empty inbox: the first may stand still with the lock of a folder in its hand.
            await waits
            await published[1].publish(2)
            await published[0].publish(2)
            first.signal(signal.SIGCONT)
            await until(first.is_ready, "the first committer again")
            waits = asyncio.create_task(published[0].publish(2))
            await published[1].publish(2)
            await waits
            await until(first.is_settled, "an empty inbox")
            found = await check_exactly_once(first, TABLE, published)
            print(f"stood still at {at}: {found}")


@contextmanager
def _second_of(first: DyingHarness) -> Iterator[DyingHarness]:
    """Return another committer of the same harness, which never stops."""
    variables = {**first.variables, "FRAZIL_QUEUE__CONSUMER": "second"}
    second = DyingHarness(first.folder, variables)
    try:
        yield second
    finally:
        second.close()


async def _publish_until_stopped(harness: DyingHarness, published: list[RealProducer]) -> None:
    """Publish new epochs, a replay and a clash; then more, until the committer is stopped."""
    durable, clashing = published[1:]
    await asyncio.gather(durable.publish(2), clashing.publish())
    await until(lambda: _is_over(harness), "an empty inbox")
    await clashing.publish_again(0)
    await clashing.publish_again(0, fingerprint="another")
    for _ in range(ROUNDS_MAX):
        await until(lambda: _is_over(harness), "an empty inbox")
        if _stands_still(harness):
            return
        await durable.publish()
    await until(lambda: _stands_still(harness), "a committer that stands still")


async def _is_over(harness: DyingHarness) -> bool:
    return _stands_still(harness) or await harness.is_settled()


def _stands_still(harness: DyingHarness) -> bool:
    assert harness.committer is not None
    status = Path(f"/proc/{harness.committer.pid}/stat").read_text()
    return status.rpartition(")")[2].split()[0] == "T"
