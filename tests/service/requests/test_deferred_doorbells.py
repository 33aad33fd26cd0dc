"""Doorbells that wait for their requests, across a hand-over of shards."""

from __future__ import annotations

from uuid import UUID

import pytest

from committer.ports.queue import Delivery, Doorbell, shard_of
from committer.service.requests import deferred_doorbells
from committer.service.requests.deferred_doorbells import DeferredDoorbells, Waiters
from committer.service.requests.inbox_keys import InboxKey
from tests.support.builders.request_builders import build_request
from tests.support.builders.table_builders import build_table
from tests.support.clock.worlds import ManualWorld

KEY = InboxKey(build_request(build_table(warehouse="memory://warehouse")).key)
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
    deferred.add(KEY, own("1"))
    deferred.release_shards({KEY.shard})
    assert KEY not in deferred


def test_a_doorbell_by_the_shard_of_another_table_stays_until_that_is_released() -> None:
    deferred = DeferredDoorbells(ManualWorld(now_ms=0))
    deferred.add(KEY, own("1"))
    deferred.add(KEY, waiters("2", OTHER))
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
