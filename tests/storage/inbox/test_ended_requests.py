"""Ended requests on memory storage: what leaves inbox and quarantine, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import pytest

from committer.errors import AccessError, StorageUnavailableError
from committer.storage.inbox.ended_requests import EndedRequests
from committer.storage.inbox.inbox import Inbox, Quarantine, QuarantineRecord
from tests.support.builders.request_builders import build_request
from tests.support.builders.table_builders import build_table
from tests.support.clock.worlds import ManualWorld
from tests.support.faults.counting_storage import CountingStorage
from tests.support.memory.memory_storage import MemoryStorage

ROOT = "memory://requests"
TABLE = build_table(warehouse="memory://warehouse")
PUBLISHED = build_request(TABLE, epoch=1)
REPLAYED, REPLAYED_AGAIN = (PUBLISHED.replayed(UUID(int=number)) for number in (1, 2))
# Another attempt of the same epoch: another request.
OTHER = build_request(TABLE, epoch=1, nonce=UUID(int=9))


class StuckInbox(MemoryStorage):
    """Deletes nothing from the inbox."""

    async def delete(self, locations: Sequence[str]) -> None:
        if any("/inbox/" in location for location in locations):
            raise StorageUnavailableError("cut off")
        await super().delete(locations)


class Place:
    def __init__(self, storage: MemoryStorage | None = None) -> None:
        self.storage = CountingStorage(storage or MemoryStorage(world=ManualWorld()))
        self.inbox = Inbox(self.storage, ROOT)
        self.quarantine = Quarantine(self.storage, ROOT)
        self.ended = EndedRequests(self.inbox, self.quarantine)

    async def quarantined(self, *keys: str) -> None:
        for key in keys:
            record = QuarantineRecord(key=key, reason="x", message="x", quarantined_at_ms=1)
            await self.quarantine.put(record, PUBLISHED.content)

    async def left(self) -> tuple[list[str], list[str]]:
        return (
            [one.key async for one in self.inbox.list()],
            [one.key async for one in self.quarantine.list()],
        )


async def test_a_replay_that_has_landed_leaves_no_record_of_any_of_its_keys() -> None:
    place = Place()
    await place.inbox.put(REPLAYED_AGAIN)
    await place.quarantined(PUBLISHED.key, REPLAYED.key, OTHER.key)
    await place.ended.delete([REPLAYED_AGAIN.key], [REPLAYED_AGAIN.key])
    assert await place.left() == ([], [OTHER.key])


async def test_a_replay_that_went_to_quarantine_stays_there() -> None:
    place = Place()
    await place.inbox.put(REPLAYED)
    await place.quarantined(REPLAYED.key)
    await place.ended.delete([REPLAYED.key], [])
    assert await place.left() == ([], [REPLAYED.key])


async def test_what_was_not_replayed_costs_one_call() -> None:
    place = Place()
    await place.inbox.put(PUBLISHED)
    before = place.storage.calls.copy()
    await place.ended.delete([PUBLISHED.key], [PUBLISHED.key])
    assert place.storage.calls - before == {"delete": 1}
    assert await place.left() == ([], [])


async def test_the_record_goes_first_so_that_a_crash_leaves_what_is_found_again() -> None:
    place = Place(StuckInbox(world=ManualWorld()))
    await place.inbox.put(REPLAYED)
    await place.quarantined(PUBLISHED.key)
    failures = await place.ended.delete([REPLAYED.key], [REPLAYED.key])
    assert [*failures] == [REPLAYED.key]
    assert await place.left() == ([REPLAYED.key], [])


async def test_a_record_that_stays_keeps_its_own_replay_alone_in_the_inbox() -> None:
    memory = MemoryStorage(world=ManualWorld())
    place = Place(memory)
    await place.inbox.put(REPLAYED)
    await place.inbox.put(OTHER)
    await place.quarantined(PUBLISHED.key)
    memory.undeletable[place.quarantine.location(PUBLISHED.key)] = AccessError("denied")
    failures = await place.ended.delete([REPLAYED.key, OTHER.key], [REPLAYED.key, OTHER.key])
    assert [*failures] == [REPLAYED.key]
    assert await place.left() == ([REPLAYED.key], [PUBLISHED.key])


async def test_an_inbox_that_is_away_as_a_whole_is_no_objects_fault() -> None:
    place = Place(StuckInbox(world=ManualWorld()))
    for sealed in (PUBLISHED, OTHER):
        await place.inbox.put(sealed)
    with pytest.raises(StorageUnavailableError):
        await place.ended.delete([PUBLISHED.key, OTHER.key], [])
