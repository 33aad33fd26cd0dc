from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from committer.errors import PublishError
from committer.ports.queue import Doorbell
from committer.request.receipt_model import ReceiptState
from tests.support.clock.worlds import ManualWorld
from tests.support.memory.memory_queue import MemoryQueue, MemoryServer
from tests.support.workers.publishing import Bench, build_bench
from workers.requests.backlog import BacklogPolicy, BacklogWaiter
from workers.requests.publisher import PublishPolicy

FEW = PublishPolicy(backlog=BacklogPolicy(requests_max=3, wait_s=60.0))


class DrainingWorld(ManualWorld):
    """A world in which another consumer acknowledges one doorbell during each sleep."""

    def __init__(self) -> None:
        super().__init__()
        self.sleeps_s: list[float] = []
        self.server = MemoryServer(world=self)
        self._consumer = MemoryQueue(self.server, consumer="committer")
        self.is_committing = True

    async def sleep(self, delay_s: float) -> None:
        self.sleeps_s.append(delay_s)
        await super().sleep(delay_s)
        if self.is_committing:
            taken = await self._consumer.read(count_max=1, wait_s=0)
            await self._consumer.acknowledge([delivery.token for delivery in taken])


async def build_behind(requests: int, *, is_committing: bool = True) -> tuple[Bench, DrainingWorld]:
    """Build a bench whose queue holds so many requests of its table already."""
    world = DrainingWorld()
    world.is_committing = is_committing
    bench = await build_bench(world=world, server=world.server)
    bell = Doorbell(bench.metadata.require_uuid(), "k", "d", None, None)
    await MemoryQueue(world.server, consumer="other").announce([bell] * requests)
    return bench, world


async def test_a_publisher_is_not_slowed_where_the_committer_keeps_up() -> None:
    bench, world = await build_behind(2)
    receipt = await bench.publisher.publish(bench.written(), FEW)
    assert (receipt.backlog, world.sleeps_s) == (None, [])


async def test_a_publisher_waits_until_less_is_left_than_its_limit_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench, world = await build_behind(8)
    with caplog.at_level(logging.INFO, "frazil.workers"):
        receipt = await bench.publisher.publish(bench.written(), FEW)
    assert (receipt.state, receipt.backlog) == (ReceiptState.DURABLE, 3)
    assert world.sleeps_s == [0.25, 0.5, 1.0, 2.0, 4.0, 5.0], "asked less and less often"
    behind, on = (record.getMessage() for record in caplog.records)
    assert "9 requests wait in the queue for it, more than 3 (option `backlog_max`)" in behind
    assert on == "went on after 12.8 s: 3 requests wait for the committer"


async def test_what_is_published_is_durable_and_announced_before_its_publisher_waits() -> None:
    bench, world = await build_behind(8, is_committing=False)
    seen: list[tuple[int, int]] = []

    async def sleep(delay_s: float) -> None:
        keys = await bench.inbox_keys()
        seen.append((len(keys), world.server.waiting(bench.metadata.require_uuid())))
        await ManualWorld.sleep(world, delay_s)

    world.sleep = sleep  # type: ignore[method-assign]
    await bench.publisher.publish(bench.written(), FEW)
    assert set(seen) == {(1, 9)}


async def test_a_publisher_goes_on_when_its_time_is_up_and_nothing_is_dropped() -> None:
    bench, world = await build_behind(8, is_committing=False)
    for epoch in range(3):
        receipt = await bench.publisher.publish(bench.written(epoch=epoch, attempt=epoch), FEW)
        assert (receipt.state, receipt.backlog) == (ReceiptState.DURABLE, 9 + epoch)
    assert world.monotonic_s() == pytest.approx(180.0)
    assert len(await bench.inbox_keys()) == 3


async def test_no_time_to_wait_is_no_wait() -> None:
    bench, world = await build_behind(8)
    policy = replace(FEW, backlog=BacklogPolicy(requests_max=3, wait_s=0.0))
    assert (await bench.publisher.publish(bench.written(), policy)).backlog is None
    assert world.sleeps_s == []


async def test_a_publisher_that_waits_for_its_commit_is_slowed_by_that_alone() -> None:
    bench, world = await build_behind(8)
    policy = replace(FEW, wait="committed", wait_timeout_s=0.0)
    with pytest.raises(PublishError, match="is durable, but"):
        await bench.publisher.publish(bench.written(), policy)
    assert world.sleeps_s == []


async def test_a_queue_that_goes_away_ends_the_wait() -> None:
    world = DrainingWorld()
    world.server.available = world.is_committing = False
    waiter = BacklogWaiter(MemoryQueue(world.server, consumer="writer"), world)
    assert await waiter.wait(world.uuid(), 10, FEW.backlog) == 10
    assert world.sleeps_s == [0.25]
