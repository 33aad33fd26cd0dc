"""Replays on memory storage, cut off after every single call, and raced by a committer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from uuid import UUID

import pytest

from committer.errors import InvalidRequestError, NotFoundError, StorageUnavailableError
from committer.ports.skips import Skips
from committer.ports.storage import NewObject, ObjectInfo
from committer.request.request_format import EncodedRequest
from committer.request.request_key import published_key
from committer.storage.inbox.inbox import Inbox, Quarantine, QuarantineRecord
from committer.storage.inbox.replays import Replays
from tests.support.builders.request_builders import build_request
from tests.support.builders.table_builders import build_table
from tests.support.clock.worlds import ManualWorld
from tests.support.memory.memory_storage import MemoryStorage

ROOT = "memory://requests"
# A replay makes fewer changes than this.
CHANGES_MAX = 4
FRESH, AGAIN = UUID(int=1), UUID(int=2)


class TappedStorage:
    """Memory that is cut off before change number `changes_left`; `after_change` runs behind each.

    A change that was cut off has not happened.
    """

    def __init__(
        self,
        inner: MemoryStorage,
        *,
        changes_left: int = CHANGES_MAX,
        after_change: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._inner = inner
        self._changes_left = changes_left
        self._after_change = after_change

    async def _change(self, change: Coroutine[object, object, None]) -> None:
        if self._changes_left == 0:
            change.close()
            raise StorageUnavailableError("cut off")
        self._changes_left -= 1
        await change
        if self._after_change is not None:
            await self._after_change()

    async def create(self, objects: Sequence[NewObject]) -> None:
        await self._change(self._inner.create(objects))

    async def delete(self, locations: Sequence[str]) -> None:
        await self._change(self._inner.delete(locations))

    async def replace(self, location: str, content: bytes, *, etag: str | None) -> str:
        return await self._inner.replace(location, content, etag=etag)

    async def get(
        self,
        location: str,
        *,
        offset: int = 0,
        length: int | None = None,
        size_bytes_max: int | None = None,
    ) -> bytes:
        return await self._inner.get(
            location, offset=offset, length=length, size_bytes_max=size_bytes_max
        )

    async def head(self, location: str) -> ObjectInfo:
        return await self._inner.head(location)

    def list(self, prefix: str, *, skips: Skips | None = None) -> AsyncIterator[ObjectInfo]:
        return self._inner.list(prefix, skips=skips)

    async def names(self, folder: str, *, starts_with: str = "") -> Sequence[str]:
        return await self._inner.names(folder, starts_with=starts_with)

    async def probe(self, prefix: str) -> None:
        await self._inner.probe(prefix)

    async def close(self) -> None:
        await self._inner.close()


class Place:
    """An inbox with a quarantine in memory, and one request."""

    def __init__(self) -> None:
        self.storage = MemoryStorage(world=ManualWorld())
        self.inbox = Inbox(self.storage, ROOT)
        self.quarantine = Quarantine(self.storage, ROOT)
        self.replays = Replays(self.storage, ROOT)
        self.sealed: EncodedRequest = build_request(build_table(warehouse="memory://warehouse"))
        self.key = self.sealed.request.inbox_key

    async def quarantined(self, *, content: bytes | None = None, key: str | None = None) -> None:
        record = QuarantineRecord(
            key=key or self.key, reason="table_unknown", message="gone", quarantined_at_ms=1
        )
        await self.quarantine.put(record, content or self.sealed.content)

    async def copies(self) -> list[str]:
        """Return where the request's content is."""
        found = [info.location async for info in self.storage.list(ROOT)]
        return [one for one in found if self.sealed.content in await self.storage.get(one)]


async def test_a_replayed_request_is_in_the_inbox_under_a_fresh_key_and_nowhere_else() -> None:
    place = Place()
    await place.quarantined()
    replayed = await place.replays.replay(place.key, FRESH)
    assert replayed.key == f"{place.key}.{FRESH}"
    assert published_key(replayed.key) == place.key
    assert await place.copies() == [place.inbox.location(replayed.key)]
    assert await place.inbox.get(replayed.key) == place.sealed.content


async def test_what_an_interrupted_quarantine_has_left_in_the_inbox_goes_with_a_replay() -> None:
    place = Place()
    await place.inbox.put(place.sealed)
    await place.quarantined()
    replayed = await place.replays.replay(place.key, FRESH)
    assert await place.copies() == [place.inbox.location(replayed.key)]


async def test_a_late_deletion_of_the_old_key_does_not_take_what_was_replayed() -> None:
    place = Place()
    await place.inbox.put(place.sealed)
    await place.quarantined()
    replayed = await place.replays.replay(place.key, FRESH)
    await place.inbox.delete((place.key,))
    assert await place.copies() == [place.inbox.location(replayed.key)]


@pytest.mark.parametrize("changes", range(CHANGES_MAX))
async def test_a_replay_that_is_cut_off_loses_nothing_and_can_be_repeated(changes: int) -> None:
    place = Place()
    await place.quarantined()
    cut_off = Replays(TappedStorage(place.storage, changes_left=changes), ROOT)
    try:
        await cut_off.replay(place.key, FRESH)
    except StorageUnavailableError:
        assert place.quarantine.location(place.key) in await place.copies()
        await place.replays.replay(place.key, AGAIN)
    found = await place.copies()
    assert place.quarantine.location(place.key) not in found
    assert found
    assert {published_key(place.inbox.key_of(one)) for one in found} == {place.key}


async def test_a_committer_that_quarantines_it_again_at_once_loses_nothing() -> None:
    place = Place()
    await place.quarantined()

    async def judge() -> None:
        """Quarantine as the committer does: write a durable record, then delete from the inbox."""
        async for found in place.inbox.list():
            await place.quarantined(key=found.key)
            await place.inbox.delete((found.key,))

    tapped = TappedStorage(place.storage, after_change=judge)
    replayed = await Replays(tapped, ROOT).replay(place.key, FRESH)
    assert await place.copies() == [place.quarantine.location(replayed.key)]
    again = await place.replays.replay(replayed.key, AGAIN)
    assert again.key == f"{place.key}.{AGAIN}"
    assert await place.copies() == [place.inbox.location(again.key)]


async def test_an_unreadable_request_stays_where_it_is() -> None:
    place = Place()
    await place.quarantined(content=place.sealed.content[:-1])
    with pytest.raises(InvalidRequestError):
        await place.replays.replay(place.key, FRESH)
    assert [found.key async for found in place.quarantine.list()] == [place.key]
    assert [found.key async for found in place.inbox.list()] == []


async def test_a_discarded_request_is_gone() -> None:
    place = Place()
    await place.quarantined()
    await place.replays.discard(place.key)
    assert await place.copies() == []
    with pytest.raises(NotFoundError):
        await place.replays.replay(place.key, FRESH)


async def test_a_request_is_found_wherever_it_is_and_whatever_its_key_is_now() -> None:
    place = Place()
    other = build_request(build_table(warehouse="memory://warehouse"), epoch=1)
    await place.inbox.put(other)
    assert not await place.inbox.holds(place.key)
    await place.quarantined()
    assert await place.quarantine.holds(place.key)
    await place.replays.replay(place.key, FRESH)
    assert await place.inbox.holds(place.key)
    assert not await place.quarantine.holds(place.key)
