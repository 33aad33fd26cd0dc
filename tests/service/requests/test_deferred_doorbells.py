"""Doorbells that wait for their requests, across a hand-over of shards."""

from __future__ import annotations

from uuid import UUID

import pytest

from committer.ports.queue import Delivery, Doorbell, shard_of
from committer.service.requests import deferred_doorbells
from committer.service.requests.deferred_doorbells import DeferredDoorbells, Waiters
from committer.service.requests.inbox_keys import InboxKey, table_folder_of
from committer.service.telemetry.lag import Delay, LagCause
from committer.storage.inbox.inbox import Inbox, skips_of
from tests.support.builders.request_builders import build_request
from tests.support.builders.table_builders import build_table
from tests.support.clock.worlds import ManualWorld
from tests.support.memory.memory_storage import MemoryStorage

KEY = InboxKey(build_request(build_table(warehouse="memory://warehouse")).key)
DELAY = Delay(0, LagCause.UNAVAILABLE)
OTHER = next(
    one for one in map(UUID, (f"{n:032x}" for n in range(99))) if shard_of(one) != KEY.shard
)


def waiters(token: str, table_uuid: UUID) -> Waiters:
    return Waiters.of(Delivery(token, Doorbell(table_uuid, KEY, "", None, None), 1))


def own(token: str) -> Waiters:
    assert KEY.parts is not None
    return waiters(token, KEY.parts.table_uuid)


def test_the_doorbells_of_a_shard_that_is_released_are_forgotten() -> None:
    deferred = DeferredDoorbells(ManualWorld(now_ms=0))
    deferred.add(KEY, own("1"), DELAY)
    deferred.release_shards({KEY.shard})
    assert KEY not in deferred


def test_a_doorbell_by_the_shard_of_another_table_stays_until_that_is_released() -> None:
    deferred = DeferredDoorbells(ManualWorld(now_ms=0))
    deferred.add(KEY, own("1"), DELAY)
    deferred.add(KEY, waiters("2", OTHER), DELAY)
    deferred.release_shards({KEY.shard})
    assert KEY in deferred
    deferred.release_shards({KEY.shard, shard_of(OTHER)})
    assert KEY not in deferred


def test_a_request_is_paused_until_its_time_its_resumption_or_its_release() -> None:
    world = ManualWorld(now_ms=0)
    deferred = DeferredDoorbells(world)
    deferred.pause(KEY, 10.0)
    world.advance(9.0)
    assert deferred.is_paused(KEY)
    world.advance(2.0)
    assert not deferred.is_paused(KEY)
    deferred.pause(KEY, 10.0)
    deferred.resume({KEY.folder})
    assert not deferred.is_paused(KEY)
    deferred.pause(KEY, 10.0)
    deferred.release_shards({KEY.shard})
    assert not deferred.is_paused(KEY)


def test_pauses_are_bounded_and_make_room_when_they_are_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deferred_doorbells, "DEFERRED_MAX", 1)
    world = ManualWorld(now_ms=0)
    deferred = DeferredDoorbells(world)
    another = InboxKey(build_request(build_table(warehouse="memory://warehouse")).key)
    deferred.pause(KEY, 10.0)
    deferred.pause(another, 10.0)
    assert not deferred.is_paused(another)
    world.advance(11.0)
    deferred.pause(another, 10.0)
    assert deferred.is_paused(another)


def test_the_oldest_of_each_table_and_cause_is_known_until_it_is_taken() -> None:
    deferred = DeferredDoorbells(ManualWorld(now_ms=0))
    table = build_table(warehouse="memory://warehouse")
    keys = [InboxKey(build_request(table, epoch=epoch).key) for epoch in range(3)]
    folder = table_folder_of(keys[0])
    for key, durable_ms in zip(keys, (30, 10, 20), strict=True):
        deferred.add(key, Waiters(), Delay(durable_ms, LagCause.HELD))
    assert [*deferred.oldest()] == [(folder, Delay(10, LagCause.HELD))]
    # Another copy of a doorbell tells why it waits now, and no later time.
    deferred.add(keys[1], Waiters(), Delay(40, LagCause.UNAVAILABLE))
    deferred.listed(keys[0], 5)
    assert {delay for _, delay in deferred.oldest()} == {
        Delay(5, LagCause.HELD),
        Delay(10, LagCause.UNAVAILABLE),
    }
    for key in keys:
        deferred.take(key)
    assert [*deferred.oldest()] == []


def test_a_request_that_a_whole_listing_does_not_show_has_no_delay_any_more() -> None:
    deferred = DeferredDoorbells(ManualWorld(now_ms=0))
    storage = MemoryStorage(world=ManualWorld(now_ms=0))
    table = build_table(warehouse="memory://warehouse")
    here, gone = (InboxKey(build_request(table, epoch=epoch).key) for epoch in range(2))
    for key in (here, gone):
        deferred.add(key, Waiters(), DELAY)
    deferred.begin_listing()
    deferred.listed(here, 0)
    deferred.end_listing(skips_of(), Inbox(storage, "memory://requests"))
    assert (deferred.delay(here), deferred.delay(gone)) == (DELAY, None)
    assert gone in deferred, "its waiters are answered by the next read"
