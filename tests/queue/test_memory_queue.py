"""Time in the memory queue is the world's and the loop's, so it may be virtual."""

from __future__ import annotations

import asyncio

from committer.queue.entry_fields import RECEIPTS_S_MAX
from committer.request.receipt_model import Receipt, ReceiptState
from tests.support.clock.worlds import ManualWorld
from tests.support.memory.memory_queue import MemoryQueue, MemoryServer
from tests.support.servers.queue_servers import doorbell

RECEIPT = Receipt("p", 1, "a", ReceiptState.DURABLE)


async def test_idle_time_is_the_worlds_and_reclaiming_confirms_what_is_held() -> None:
    world = ManualWorld()
    server = MemoryServer(world=world)
    holder, other = (MemoryQueue(server, consumer=name) for name in ("one", "two"))
    await holder.announce([doorbell(1)])
    await holder.read(count_max=1, wait_s=0)
    world.advance(59)
    assert await other.reclaim(idle_s=60) == []
    assert await holder.reclaim(idle_s=50) == []
    world.advance(59)
    assert await other.reclaim(idle_s=60) == [], "it was confirmed"
    world.advance(1)
    assert len(await other.reclaim(idle_s=60)) == 1


async def test_receipts_expire_by_the_worlds_clock() -> None:
    world = ManualWorld()
    queue = MemoryQueue(MemoryServer(world=world), consumer="one")
    await queue.reply([("driver", RECEIPT)])
    world.advance(RECEIPTS_S_MAX)
    assert await queue.wait_for_receipts("driver", wait_s=0) == []


async def test_waiting_passes_on_the_loops_clock() -> None:
    loop = asyncio.get_running_loop()
    queue = MemoryQueue(MemoryServer(world=ManualWorld()), consumer="one")
    reading = asyncio.create_task(queue.read(count_max=1, wait_s=3_600))
    await asyncio.sleep(0)
    timers = [handle.when() - loop.time() for handle in loop._scheduled]  # type: ignore[attr-defined]
    assert any(3_599 < left_s <= 3_600 for left_s in timers)
    await queue.announce([doorbell(1)])
    assert len(await reading) == 1
