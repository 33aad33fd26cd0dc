"""The queue's reader: what it asks the server, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import cast
from uuid import UUID

from committer.errors import StorageUnavailableError
from committer.ports.queue import Delivery, QueueDepth, shard_of
from committer.reason import Reason
from committer.request.receipt_model import ReceiptState
from committer.service.ingest.consumer import READ_COUNT_MIN, Consumer
from committer.service.ingest.inbox_scan import PAGE_KEYS
from committer.service.ingest.intake import Doorbells
from committer.service.ingest.ownership import EMPTY_WAIT_S, QueueProgress
from committer.service.requests.listing import Folders
from committer.service.sharding.shard_leases import ShardLeases
from committer.service.telemetry.place_watch import PlaceWatch
from committer.storage.inbox.inbox import QuarantineRecord
from tests.support.builders.request_builders import build_request
from tests.support.memory.memory_queue import INSTALLATION, MemoryLeases, MemoryQueue
from tests.support.memory.memory_storage import MemoryStorage
from tests.support.service.outside import ring
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True


class ProbedQueue(MemoryQueue):
    """Counts how often its server was probed."""

    probes = 0

    async def probe(self) -> None:
        self.probes += 1
        await super().probe()


async def test_a_server_is_probed_once_and_not_before_every_read() -> None:
    harness = ServiceHarness()
    harness.queue = queue = ProbedQueue(harness.server, consumer="committer")
    await harness.run_until_settled(seconds=60)
    assert queue.probes == 1


class FailsOnce(MemoryStorage):
    """The first look at a request gets no answer."""

    has_failed = False

    async def get(
        self,
        location: str,
        *,
        offset: int = 0,
        length: int | None = None,
        size_bytes_max: int | None = None,
    ) -> bytes:
        if "/inbox/" in location and not self.has_failed:
            self.has_failed = True
            raise StorageUnavailableError("no answer")
        return await super().get(
            location, offset=offset, length=length, size_bytes_max=size_bytes_max
        )


async def test_a_doorbell_whose_object_could_not_be_read_is_looked_up_again_and_acknowledged() -> (
    None
):
    harness = ServiceHarness(wrap=lambda storage: FailsOnce())
    table = await harness.create_table()
    # Too large to be in its doorbell, and ended before: no listing of the inbox shows it.
    old = replace(harness.doorbell(build_request(table)), content=None)
    await harness.publisher_queue.announce([old])
    await harness.run_until_settled(seconds=200)
    assert await harness.publisher_queue.depth() == QueueDepth(waiting=0, pending=0)


class Shares(ShardLeases):
    """Shards that come and go as the test says."""

    def __init__(self, harness: ServiceHarness) -> None:
        super().__init__(
            leases=MemoryLeases(harness.server, member="ours", process=UUID(int=1)),
            member="ours",
            installation=INSTALLATION,
            world=harness.world,
            health=harness.health,
            metrics=harness.metrics,
            lease_s=30.0,
            places=PlaceWatch(harness.world, harness.health),
        )

    def become(self, *owned: int) -> None:
        self._show(frozenset(owned), released=0, lost=0)


class Takes:
    """Keeps what it is handed; `then` happens behind the first of it."""

    is_full = False

    def __init__(self, then: Callable[[], Awaitable[object]]) -> None:
        self.taken: list[str] = []
        self._then = then

    def trust_from_now(self) -> None: ...

    async def take_deferred(self) -> None: ...

    def without_early(self, deliveries: Sequence[Delivery]) -> Sequence[Delivery]:
        return deliveries

    async def take(self, deliveries: Sequence[Delivery]) -> None:
        self.taken += [one.doorbell.inbox_key for one in deliveries]
        if deliveries and len(self.taken) == 1:
            await self._then()


def build_consumer(
    harness: ServiceHarness,
    queue: MemoryQueue,
    doorbells: Takes,
    shards: Shares,
    progress: QueueProgress,
) -> Consumer:
    return Consumer(
        queue=queue,
        doorbells=cast("Doorbells", doorbells),
        shards=shards,
        progress=progress,
        world=harness.world,
        health=harness.health,
        reclaim_idle_s=60.0,
    )


async def test_what_was_taken_over_with_a_shard_that_went_and_came_back_is_taken_over_again() -> (
    None
):
    harness = ServiceHarness()
    bell = harness.doorbell(build_request(await harness.create_table()))
    shard = shard_of(bell.table_uuid)
    ours, other = (MemoryQueue(harness.server, consumer=name) for name in ("ours", "other"))
    await harness.publisher_queue.announce([bell])
    assert len(await other.read(count_max=1, wait_s=0.0)) == 1
    shares = Shares(harness)

    async def goes_and_comes_back() -> None:
        shares.become()
        assert len(await MemoryQueue(harness.server, consumer="third").reclaim(idle_s=0.0)) == 1
        shares.become(shard)

    doorbells = Takes(goes_and_comes_back)
    consumer = build_consumer(harness, ours, doorbells, shares, QueueProgress())
    shares.become(shard)
    running = asyncio.create_task(consumer.run())
    await asyncio.sleep(5.0)
    running.cancel()
    assert doorbells.taken == [bell.inbox_key] * 2


class Reads(QueueProgress):
    """Keeps what each read has noted."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[bool] = []

    def has_read(self, *, all_there_was: bool) -> None:
        super().has_read(all_there_was=all_there_was)
        self.noted.append(all_there_was)


async def test_a_listing_gives_way_to_the_doorbells_that_wait() -> None:
    harness = ServiceHarness()
    bell = harness.doorbell(build_request(await harness.create_table()))
    await harness.publisher_queue.announce([bell] * READ_COUNT_MIN)
    shares, progress = Shares(harness), Reads()
    assert harness.queue is not None

    async def nothing() -> None: ...

    consumer = build_consumer(harness, harness.queue, Takes(nothing), shares, progress)
    shares.become(shard_of(bell.table_uuid))
    running = asyncio.create_task(consumer.run())
    await asyncio.sleep(5.0)
    running.cancel()
    assert progress.noted[:2] == [False, True]


async def test_a_listing_waits_for_its_turn_a_page_at_a_time() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    for epoch in range(PAGE_KEYS + 1):
        await harness.inbox.put(build_request(table, epoch=epoch))
    async with harness.running():
        assert harness.work is not None
    scan, progress = harness.work.reconciler.scan, harness.wiring.queue_progress

    async def listing_s() -> float:
        began_s = harness.world.monotonic_s()
        await scan.run(Folders(), 0.0, takes=False)
        return harness.world.monotonic_s() - began_s

    progress.has_read(all_there_was=False)
    assert await listing_s() == 2 * EMPTY_WAIT_S
    progress.has_read(all_there_was=True)
    assert await listing_s() == 0.0
    progress.has_read(all_there_was=False)
    progress.went_away()
    assert await listing_s() == 0.0


async def test_a_doorbell_behind_a_conflict_is_answered_with_the_code_of_the_conflict() -> None:
    harness = ServiceHarness()
    sealed = build_request(await harness.create_table(), epoch=0)
    record = QuarantineRecord(
        key=sealed.key,
        reason=Reason.CONFLICT.value,
        message="a file is gone",
        quarantined_at_ms=0,
        conflict="code",
        is_told_only=True,
    )
    await harness.quarantine.put(record, b"")
    await ring(harness, sealed.key, None)
    await harness.run_until_settled(seconds=60)
    (receipt,) = await harness.receipts("bad")
    assert (receipt.state, receipt.conflict) == (ReceiptState.QUARANTINED, "code")
