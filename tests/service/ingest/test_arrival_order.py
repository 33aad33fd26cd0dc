"""Requests reach their table in the order of arrival, in whatever order they are listed, and their
reads end.
"""

from __future__ import annotations

import asyncio

import pytest

from committer.ports.queue import Doorbell
from committer.request.request_format import EncodedRequest
from committer.service.ingest import inbox_scan
from committer.storage.inbox.inbox import Inbox
from tests.support.builders.alter_requests import build_alter
from tests.support.builders.operation_requests import build_operation
from tests.support.builders.request_builders import build_request
from tests.support.faults.counting_storage import CountingStorage
from tests.support.memory.memory_storage import MemoryStorage
from tests.support.service.service_harness import INBOX, ServiceHarness

VIRTUAL_TIME = True
AUDIT = {"action": "create-branch", "name": "audit"}


class SlowReads(CountingStorage):
    """Each read takes as long as is said of its location, by a part of it; any other none."""

    def __init__(self, inner: MemoryStorage, **slow_s: float) -> None:
        super().__init__(inner)
        self.slow_s = slow_s

    async def get(
        self,
        location: str,
        *,
        offset: int = 0,
        length: int | None = None,
        size_bytes_max: int | None = None,
    ) -> bytes:
        for part, slow_s in self.slow_s.items():
            if f"/{part}/" in location:
                await asyncio.sleep(slow_s)
        return await super().get(
            location, offset=offset, length=length, size_bytes_max=size_bytes_max
        )


def slow_reads(harness: ServiceHarness, **slow_s: float) -> None:
    """Have the requests of each named producer read so slowly."""
    assert isinstance(harness.storage.inner, MemoryStorage)
    harness.inbox = Inbox(SlowReads(harness.storage.inner, **slow_s), INBOX)


async def publish_apart(harness: ServiceHarness, *requests: EncodedRequest) -> None:
    """Publish each without a doorbell, a moment after the one before."""
    for sealed in requests:
        await harness.publish(sealed, announce=False)
        await harness.settle(0.3)


# --- From listings -------------------------------------------------------------------------------


async def test_a_listing_is_taken_in_the_order_of_arrival_and_not_of_names() -> None:
    harness = ServiceHarness(with_queue=False)
    table = await harness.create_table()
    await publish_apart(
        harness,
        build_operation(table, "replace-partitions", producer="z", files_count=1),
        build_request(table, producer="a"),
    )
    await harness.run_until_settled()
    assert len(await harness.live_files()) == 2


async def test_a_backlog_of_one_table_is_taken_in_the_order_of_arrival_as_a_whole() -> None:
    harness = ServiceHarness(with_queue=False)
    table, other = await harness.create_table(), await harness.create_table("db.other")
    count = 2 * inbox_scan.TAKEN_AT_ONCE + 1
    for one in (table, other):
        first = build_operation(one, "replace-partitions", producer="z", files_count=1)
        appends = [build_request(one, producer="a", epoch=epoch) for epoch in range(count)]
        await publish_apart(harness, first, *appends)
    await harness.run_until_settled()
    assert len(await harness.live_files()) == count + 1
    assert len(await harness.live_files("db.other")) == count + 1


async def test_a_backlog_that_is_too_large_to_be_sorted_is_taken_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inbox_scan, "TAKEN_AT_ONCE", 2)
    monkeypatch.setattr(inbox_scan, "IN_ORDER_MAX", 4)
    harness = ServiceHarness(with_queue=False)
    table = await harness.create_table()
    await publish_apart(harness, *(build_request(table, epoch=epoch) for epoch in range(11)))
    await harness.run_until_settled()
    assert len(await harness.live_files()) == 11


async def test_reads_of_a_listing_that_end_in_another_order_change_nothing() -> None:
    harness = ServiceHarness(with_queue=False)
    table = await harness.create_table()
    slow_reads(harness, a=3.0, b=2.0)
    await publish_apart(
        harness,
        build_operation(table, "replace-partitions", producer="a", files_count=1),
        build_request(table, producer="b"),
        build_request(table, producer="c"),
    )
    await harness.run_until_settled()
    assert len(await harness.live_files()) == 3


async def test_epochs_of_one_moment_are_taken_in_their_order() -> None:
    """As a storage shows them whose times have whole seconds."""
    harness = ServiceHarness(with_queue=False)
    table = await harness.create_table()
    await harness.publish(build_request(table, producer="loader"), announce=False)
    await harness.run_until_settled()
    slow_reads(harness, **{f"{0:020d}": 1.0})
    append = build_request(table, producer="a", epoch=1, branch="audit")
    for sealed in (append, build_alter(table, AUDIT, producer="a", epoch=0)):
        await harness.publish(sealed, announce=False)
    await harness.run_until_settled()
    assert await harness.quarantined() == []
    assert await harness.outstanding() == []


async def test_a_slow_read_delays_no_other_table() -> None:
    harness = ServiceHarness(with_queue=False)
    table, other = await harness.create_table(), await harness.create_table("db.other")
    slow_reads(harness, a=30.0)
    await publish_apart(
        harness, build_request(table, producer="a"), build_request(other, producer="b")
    )
    async with harness.running():
        await harness.settle(5.0)
        assert len(await harness.live_files("db.other")) == 1
        assert await harness.live_files() == []
        await harness.settle(60.0)
    assert len(await harness.live_files()) == 1


# --- From doorbells ------------------------------------------------------------------------------


def bell(sealed: EncodedRequest) -> Doorbell:
    """Make a doorbell that does not carry its request."""
    return Doorbell(sealed.request.table_uuid, sealed.key, "", None, None)


async def test_a_doorbell_that_carries_its_request_overtakes_none_that_is_to_be_read() -> None:
    harness = ServiceHarness()
    table, other = await harness.create_table(), await harness.create_table("db.other")
    slow_reads(harness, a=3.0)
    async with harness.running():
        now_ms = harness.world.now_ms()
        replacement = build_operation(table, "replace-partitions", producer="a", files_count=1)
        append = build_request(table, producer="b", published_at_ms=now_ms)
        neighbor = build_request(other, producer="b", published_at_ms=now_ms)
        for sealed in (replacement, append, neighbor):
            await harness.inbox.put(sealed)
        await harness.publisher_queue.announce(
            [bell(replacement), harness.doorbell(append), harness.doorbell(neighbor)]
        )
        await harness.settle(1.0)
        assert await harness.live_files() == []
        assert len(await harness.live_files("db.other")) == 1
        await harness.settle()
    assert len(await harness.live_files()) == 2


async def test_doorbells_of_one_delivery_are_read_together_and_taken_in_their_order() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    slow_reads(harness, a=3.0, b=2.0, c=1.0)
    requests = [
        build_operation(table, "replace-partitions", producer="a", files_count=1),
        build_request(table, producer="b"),
        build_request(table, producer="c"),
    ]
    for sealed in requests:
        await harness.inbox.put(sealed)
    async with harness.running():
        await harness.publisher_queue.announce([bell(sealed) for sealed in requests])
        await harness.settle(4.0)
        assert len(await harness.live_files()) == 3
