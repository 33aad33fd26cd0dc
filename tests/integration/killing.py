"""kill -9 of a committer beside publishing producers, and what their receipts must say then."""

from __future__ import annotations

import asyncio
import random
import signal
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing

from committer.request.receipt_model import ReceiptState
from tests.support.integration.readers import LiveFile
from tests.support.integration.real_harness import RealHarness, until
from tests.support.integration.traffic import RealProducer

EPOCHS_A_ROUND = 3
DELAY_S_MAX = 0.4

Moment = Callable[[], Awaitable[None]]


async def kill_once(harness: RealHarness, published: list[RealProducer], moment: Moment) -> int:
    """Publish from all producers; meanwhile kill the committer once, and start it again.

    Returns how many requests were outstanding at the kill.
    """
    async with asyncio.TaskGroup() as tasks:
        for producer in published:
            tasks.create_task(producer.publish(EPOCHS_A_ROUND))
        await moment()
        harness.signal(signal.SIGKILL)
        in_flight = len(await harness.outstanding())
        await harness.start()
    return in_flight


async def some_time(harness: RealHarness, chance: random.Random) -> None:
    await until(lambda: _has_work(harness), "a request in the inbox", poll_s=0.001)
    await asyncio.sleep(chance.uniform(0, DELAY_S_MAX))


async def next_swap(harness: RealHarness) -> None:
    """Wait for a swap, whose requests are still in the inbox, and not acknowledged."""
    with closing(sqlite3.connect(harness.catalog_file)) as catalog:

        def pointer() -> object:
            return catalog.execute("SELECT metadata_location FROM iceberg_tables").fetchall()

        before = pointer()
        await until(lambda: pointer() != before, "a swap", poll_s=0)


async def _has_work(harness: RealHarness) -> bool:
    return bool(await harness.outstanding())


def check_receipts(published: list[RealProducer], live: dict[str, LiveFile]) -> int:
    """Check that a committed receipt names the snapshot and sequence number of its file."""
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
