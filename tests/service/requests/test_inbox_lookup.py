"""The lookup reads the requests that wait in the inbox alone, and no others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest

from committer.errors import AccessError, TransientError
from committer.ports.skips import Skips
from committer.ports.storage import NewObject, ObjectInfo
from committer.request.request_format import EncodedRequest
from committer.service.requests.inbox_keys import InboxKey
from committer.service.requests.inbox_lookup import (
    LISTED_APART_MIN,
    LISTED_PER_REQUEST,
    InboxLookup,
    Place,
)
from committer.service.requests.large_requests import NamedManifests
from committer.service.requests.pending import Pending, Waiting
from committer.storage.inbox.inbox import Inbox, Quarantine
from tests.support.builders.request_builders import build_request
from tests.support.builders.table_builders import build_table
from tests.support.clock.virtual_time import LoopWorld
from tests.support.faults.counting_storage import CountingStorage
from tests.support.memory.memory_storage import MemoryStorage

VIRTUAL_TIME = True

ROOT = "memory://requests"
TABLE = build_table(warehouse="memory://warehouse")
TABLE_UUID = TABLE.metadata.require_uuid()


class ListedStorage(MemoryStorage):
    """Counts the objects that listings have shown."""

    listed = 0

    async def list(self, prefix: str, *, skips: Skips | None = None) -> AsyncIterator[ObjectInfo]:
        async for info in super().list(prefix, skips=skips):
            self.listed += 1
            yield info


class Bench:
    """An inbox, and those of its requests that are in memory."""

    def __init__(self) -> None:
        world = LoopWorld()
        self.objects = ListedStorage(world=world)
        self.storage = CountingStorage(self.objects)
        self.inbox = Inbox(self.storage, ROOT)
        self.waiting = Waiting(world, NamedManifests(world))
        self.ended: set[str] = set()
        quarantine = Quarantine(self.storage, ROOT)
        self.lookup = InboxLookup(self.inbox, quarantine, self.waiting, self.ended)

    async def publish(
        self, *, epochs: Sequence[int], producer: str = "query-1", in_memory: bool = False
    ) -> list[str]:
        every = [build_request(TABLE, producer=producer, epoch=epoch) for epoch in epochs]
        for sealed in every:
            await self.inbox.put(sealed)
            if in_memory:
                self.take(sealed)
        return [sealed.key for sealed in every]

    def take(self, sealed: EncodedRequest) -> None:
        self.waiting.add(Pending(InboxKey(sealed.key), sealed, 0))

    async def read(self) -> list[str]:
        listed, _ = await self.lookup.durable(TABLE_UUID)
        assert len(listed) == 2 * len({one.key for one in listed})
        return [one.inbox_key async for one in self.lookup.requests(listed)]


async def test_a_request_that_waits_here_is_not_read_and_any_other_is_read_once() -> None:
    bench = Bench()
    known = await bench.publish(epochs=range(3), in_memory=True)
    assert sorted(await bench.read()) == sorted(known)
    assert bench.storage.calls["get"] == 0
    unread = await bench.publish(epochs=range(3, 20))
    assert sorted(await bench.read()) == sorted(known + unread)
    assert bench.storage.calls["get"] == len(unread)


async def test_what_has_left_the_inbox_or_can_never_land_is_left_out() -> None:
    bench = Bench()
    left, kept = await bench.publish(epochs=range(2))
    garbage = build_request(TABLE, epoch=2).key
    await bench.storage.create((NewObject(bench.inbox.location(garbage), b"no request"),))
    listed, _ = await bench.lookup.durable(TABLE_UUID)
    await bench.inbox.delete((left,))
    assert [one.inbox_key async for one in bench.lookup.requests(listed)] == [kept]


async def test_one_that_has_ended_here_is_not_read_although_it_is_in_the_inbox() -> None:
    bench = Bench()
    ended, unread = await bench.publish(epochs=range(2))
    bench.ended.add(ended)
    assert [one.inbox_key async for one in bench.lookup.not_ended(TABLE_UUID)] == [unread]
    assert bench.storage.calls["get"] == 1
    # Before files are deleted: an operator may void what it has ended by.
    assert len(await bench.read()) == 2


@pytest.mark.parametrize("at", [0, 2_000], ids=["first", "last"])
async def test_many_requests_of_a_far_longer_inbox_are_looked_up_without_listing_it_all(
    at: int,
) -> None:
    bench = Bench()
    for epoch in range(2_100):
        sealed = build_request(TABLE, epoch=epoch)
        await bench.inbox.put(sealed)
        if at <= epoch < at + 100:
            bench.take(sealed)
    gone = build_request(TABLE, epoch=at + 100)
    bench.take(gone)
    waiting = [*bench.waiting.all()]
    places = await bench.lookup.find_all(waiting, TABLE_UUID, 1)
    assert places == [Place.INBOX] * 100 + [Place.NOWHERE]
    assert bench.objects.listed <= LISTED_PER_REQUEST * 101 + 1
    assert bench.storage.calls["head"] == (1 if at == 0 else 101)


async def test_a_listing_ends_with_the_last_request_that_waits() -> None:
    bench = Bench()
    await bench.publish(epochs=range(100), in_memory=True)
    await bench.publish(epochs=range(100, 300))
    waiting = [*bench.waiting.all()]
    assert set(await bench.lookup.find_all(waiting[:80], TABLE_UUID, 1)) == {Place.INBOX}
    assert bench.objects.listed == 101
    assert all(pending.present_in == 1 for pending in waiting)
    assert bench.storage.calls["head"] == 0


async def test_many_requests_of_a_producer_are_listed_in_its_folder() -> None:
    bench = Bench()
    await bench.publish(epochs=range(600), producer="a")
    await bench.publish(epochs=range(LISTED_APART_MIN), producer="b", in_memory=True)
    await bench.publish(epochs=range(10), producer="c", in_memory=True)
    waiting = [*bench.waiting.all()]
    assert set(await bench.lookup.find_all(waiting, TABLE_UUID, 1)) == {Place.INBOX}
    assert bench.objects.listed == LISTED_APART_MIN
    # The few others are looked up one by one.
    assert bench.storage.calls["head"] == 10


async def test_one_that_cannot_be_read_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    await bench.publish(epochs=range(2))

    async def deny(key: str) -> bytes:
        raise AccessError("not yours")

    monkeypatch.setattr(bench.inbox, "line", deny)
    with pytest.raises(AccessError):
        await bench.read()


async def test_of_a_long_backlog_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("committer.service.requests.inbox_lookup.LINES_MAX", 3)
    bench = Bench()
    await bench.publish(epochs=range(5), in_memory=True)
    await bench.publish(epochs=range(5, 8))
    assert len(await bench.read()) == 8
    await bench.publish(epochs=[8])
    gets = bench.storage.calls["get"]
    with pytest.raises(TransientError, match="4 requests wait in the inbox alone"):
        await bench.read()
    assert bench.storage.calls["get"] == gets
