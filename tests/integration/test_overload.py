"""Writers run ahead of a committer that is down: they are slowed, and go on when it is back."""

from __future__ import annotations

import asyncio

import pytest

from committer.request.receipt_model import Receipt
from tests.support.integration.exactness import check_exactly_once
from tests.support.integration.real_harness import real_harness, until
from tests.support.integration.traffic import RealProducer, producers
from workers.requests.backlog import BacklogPolicy
from workers.requests.publisher import PublishPolicy

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.timeout(120)]

TABLE = "db.flights"
REQUESTS_MAX = 20
POLICY = PublishPolicy(backlog=BacklogPolicy(REQUESTS_MAX, wait_s=90.0))
PRODUCERS = 4


async def test_writers_wait_while_too_much_waits_for_a_committer_and_nothing_is_lost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with real_harness(FRAZIL_COMMIT__MIN_INTERVAL_MS="50") as harness:
        table = await harness.create_table(TABLE)
        async with producers(harness, table, PRODUCERS) as published:
            writing = asyncio.gather(*(_publish(producer, 15) for producer in published))
            await until(lambda: _held_up(caplog) == PRODUCERS, "writers that wait")
            assert len(await harness.outstanding()) <= REQUESTS_MAX + PRODUCERS
            await harness.start()
            receipts = [receipt for each in await writing for receipt in each]
            slowed = [one.backlog for one in receipts if one.backlog is not None]
            assert len(slowed) >= PRODUCERS and max(slowed) <= REQUESTS_MAX
            await until(harness.is_settled, "an empty inbox")
            found = await check_exactly_once(harness, TABLE, published)
            assert (found.requests, found.quarantined) == (PRODUCERS * 15, 0)


async def _publish(producer: RealProducer, count: int) -> list[Receipt]:
    return [
        await producer.connections.publisher.publish(producer.write(), POLICY) for _ in range(count)
    ]


def _held_up(caplog: pytest.LogCaptureFixture) -> int:
    """Return how many writers report that they wait; none continues while no committer runs."""
    return sum("the committer is behind" in said for said in caplog.messages)
