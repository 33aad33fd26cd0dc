"""Receipts, acknowledgments and deletions behind the verdicts, whatever fails in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from committer.errors import AccessError, QueueUnavailableError, StorageUnavailableError
from committer.ports.queue import ALL_SHARDS
from committer.ports.storage import NewObject
from committer.service.requests.deferred_doorbells import Waiters
from committer.service.settle.high_water_mark_store import HighWaterMarkStore
from committer.service.settle.outcome import Outcome
from committer.service.settle.settler import RETRY_S_MAX, UNREADABLE_RETRY_S, Settler
from committer.storage.inbox.audit_log import AuditLog
from committer.storage.inbox.ended_requests import EndedRequests
from committer.storage.inbox.high_water_mark_objects import HighWaterMarks
from tests.support.builders.request_builders import build_request
from tests.support.faults.counting_storage import CountingStorage
from tests.support.memory.memory_queue import MemoryQueue
from tests.support.memory.memory_storage import MemoryStorage
from tests.support.service.service_harness import INBOX, ServiceHarness

VIRTUAL_TIME = True


class SlowOutage(MemoryQueue):
    """A queue that takes a while to fail, as long as it is away."""

    is_away = True

    async def acknowledge(self, tokens: Sequence[str]) -> None:
        if self.is_away:
            await asyncio.sleep(5.0)
            raise QueueUnavailableError("away")
        await super().acknowledge(tokens)


@asynccontextmanager
async def settling(harness: ServiceHarness, queue: MemoryQueue) -> AsyncIterator[Settler]:
    settler = Settler(
        requests=EndedRequests(harness.inbox, harness.quarantine),
        audit=AuditLog(harness.inbox_storage, INBOX),
        queue=queue,
        world=harness.world,
        health=harness.health,
        high_water_marks=HighWaterMarkStore(harness.high_water_marks),
        settled=harness.wiring.settled,
    )
    running = asyncio.create_task(settler.run())
    try:
        yield settler
    finally:
        running.cancel()


async def test_what_a_flush_could_not_answer_is_answered_by_the_loop() -> None:
    harness = ServiceHarness()
    queue = SlowOutage(harness.server, consumer="committer")
    await harness.publish(build_request(await harness.create_table()))
    (delivery,) = await queue.read(count_max=1, wait_s=0.0, shards=ALL_SHARDS)
    async with settling(harness, queue) as settler:
        settler.settle([Outcome(None, Waiters((delivery.token,)))])
        # A hand-over flushes before the loop has its turn, which finds nothing to answer.
        assert not await settler.flush()
        queue.is_away = False
        await harness.settle(60.0)
    assert (await queue.depth()).waiting == 0


async def test_a_mark_that_cannot_be_read_is_its_tables_own_and_delays_no_other() -> None:
    harness = ServiceHarness()
    table, other = await harness.create_table(), await harness.create_table("db.other")
    table_uuid = table.metadata.require_uuid()
    location = harness.high_water_marks.location(table_uuid)
    async with harness.running():
        await harness.publish(build_request(table, epoch=0))
        await harness.settle(5.0)
        content = await harness.storage.inner.get(location)
        await harness.storage.inner.delete((location,))
        await harness.storage.inner.create((NewObject(location, b"garbage"),))
        stuck = build_request(table, epoch=1)
        await harness.publish(stuck)
        for epoch in range(60):
            await harness.publish(build_request(other, epoch=epoch))
            await harness.settle(1.0)
            assert await harness.outstanding() == [stuck.key]
            assert not harness.health.unreachable
        assert (
            "cannot be read" in harness.health.conditions[f"high-water mark of table {table_uuid}"]
        )
        await harness.storage.inner.delete((location,))
        await harness.storage.inner.create((NewObject(location, content),))
        await harness.settle(UNREADABLE_RETRY_S + 1.0)
        assert await harness.outstanding() == []
        assert harness.health.conditions == {}


async def test_an_object_that_cannot_be_deleted_keeps_no_other_and_is_named_until_it_is_gone() -> (
    None
):
    harness = ServiceHarness()
    memory = harness.storage.inner
    assert isinstance(memory, MemoryStorage)
    tables = [await harness.create_table(), await harness.create_table("db.other")]
    stuck = build_request(tables[0], producer="stuck")
    location = harness.inbox.location(stuck.key)
    memory.undeletable[location] = AccessError(f"`{location}`: Operation not permitted")
    async with harness.running(reconcile_interval_s=10.0):
        await harness.publish(stuck)
        for epoch in range(30):
            for table in tables:
                await harness.publish(build_request(table, epoch=epoch))
            await harness.settle(1.0)
            assert await harness.outstanding() == [stuck.key]
            assert not harness.health.unreachable
            (component,) = harness.health.conditions
            assert component == f"undeleted inbox object {stuck.key}"
            assert "not permitted" in harness.health.conditions[component]
        assert (await harness.publisher_queue.depth()).pending == 0
        assert len(await harness.receipts("stuck")) <= 1
        memory.undeletable.clear()
        await harness.settle(RETRY_S_MAX + 5.0)
        assert harness.health.conditions == {}
        assert await harness.outstanding() == []
    assert len(await harness.live_files()) == 31


async def test_a_mark_that_cannot_be_written_delays_its_own_table_alone() -> None:
    harness = ServiceHarness()
    table, other = await harness.create_table(), await harness.create_table("db.other")
    mark = harness.high_water_marks.location(table.metadata.require_uuid())

    class StuckMark(CountingStorage):
        async def replace(self, location: str, content: bytes, *, etag: str | None) -> str:
            if location == mark and is_stuck:
                raise StorageUnavailableError("no space left on device")
            return await super().replace(location, content, etag=etag)

    is_stuck = True
    harness.high_water_marks = HighWaterMarks(StuckMark(harness.storage.inner), INBOX)
    async with harness.running():
        stuck = build_request(table)
        await harness.publish(stuck)
        for epoch in range(30):
            await harness.publish(build_request(other, epoch=epoch))
            await harness.settle(1.0)
            assert await harness.outstanding() == [stuck.key]
            assert not harness.health.unreachable
        assert [*harness.health.conditions] == [
            f"high-water mark of table {table.metadata.require_uuid()}"
        ]
        is_stuck = False
        await harness.settle(20.0)
        assert harness.health.conditions == {}
        assert await harness.outstanding() == []


class Unanswering(MemoryQueue):
    """A queue that is read, and takes no acknowledgment."""

    is_stuck = True

    async def acknowledge(self, tokens: Sequence[str]) -> None:
        if self.is_stuck:
            raise QueueUnavailableError("out of memory")
        await super().acknowledge(tokens)


async def test_what_the_queue_does_not_take_is_shown_while_the_queue_is_read() -> None:
    harness = ServiceHarness()
    queue = Unanswering(harness.server, consumer="committer")
    harness.queue = queue
    table = await harness.create_table()
    async with harness.running():
        await harness.publish(build_request(table))
        await harness.settle(1.0)
        for _ in range(60):
            await harness.settle(1.0)
            assert harness.health.conditions == {"queue answers": "out of memory"}
        queue.is_stuck = False
        await harness.settle(15.0)
        assert harness.health.conditions == {}
    assert (await harness.publisher_queue.depth()).pending == 0
