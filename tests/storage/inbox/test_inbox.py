"""The inbox and the quarantine on any storage: what is durable, found, and never overwritten."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import pytest

from committer.errors import InvalidRequestError, NotFoundError, PublishError
from committer.ports.storage import NewObject
from committer.reason import Reason
from committer.request.request_format import read_request
from committer.storage.inbox.inbox import (
    Inbox,
    Outstanding,
    Quarantine,
    QuarantineRecord,
    read_quarantined,
)
from tests.support.builders.request_builders import build_line, build_manifest, build_request, seal
from tests.support.builders.table_builders import build_table
from tests.support.clock.worlds import ManualWorld
from tests.support.faults.counting_storage import CountingStorage
from tests.support.memory.memory_storage import MemoryStorage

ROOT = "memory://requests"
TABLE = build_table(warehouse="memory://warehouse")


def record_of(key: str, **changes: object) -> QuarantineRecord:
    record = QuarantineRecord(
        key=key,
        reason=Reason.COUNT_MISMATCH,
        message="it has too few",
        quarantined_at_ms=5,
        table="db.flights",
    )
    return record.model_copy(update=changes)


async def keys(found: AsyncIterator[Outstanding]) -> list[str]:
    return [one.key async for one in found]


@pytest.mark.parametrize("root", [ROOT, ROOT + "/"])
async def test_a_request_is_found_under_its_key_until_it_is_deleted(root: str) -> None:
    storage = MemoryStorage()
    inbox, sealed = Inbox(storage, root), build_request(TABLE)
    key = sealed.request.inbox_key
    assert not await inbox.contains(key)
    assert await inbox.put(sealed)
    assert inbox.location(key) == f"memory://requests/inbox/{key}"
    assert await inbox.contains(key)
    assert read_request(await inbox.get(key), key=key) == sealed
    (found,) = [one async for one in inbox.list()]
    assert (found.key, found.size_bytes) == (key, len(sealed.content))
    await inbox.delete([key, key])
    await inbox.delete([key])
    assert not await inbox.contains(key)
    with pytest.raises(NotFoundError):
        await inbox.get(key)


async def test_the_same_bytes_twice_are_one_publication() -> None:
    inbox, sealed = Inbox(MemoryStorage(), ROOT), build_request(TABLE)
    assert await inbox.put(sealed)
    assert not await inbox.put(sealed)


async def test_other_content_under_one_attempt_is_an_error_that_names_the_sink_option() -> None:
    inbox, sealed = Inbox(MemoryStorage(), ROOT), build_request(TABLE)
    other = build_request(TABLE, nonce=sealed.request.nonce, files_count=2)
    await inbox.put(sealed)
    with pytest.raises(PublishError, match="sink"):
        await inbox.put(other)
    assert await inbox.get(sealed.request.inbox_key) == sealed.content


async def test_another_attempt_of_an_epoch_is_another_request() -> None:
    inbox = Inbox(MemoryStorage(), ROOT)
    assert await inbox.put(build_request(TABLE))
    assert await inbox.put(build_request(TABLE))
    assert len(await keys(inbox.list())) == 2


async def test_listings_are_of_everything_of_a_table_or_of_a_producer_and_of_no_neighbor() -> None:
    inbox = Inbox(MemoryStorage(), ROOT)
    other = build_table("db.other", warehouse="memory://warehouse")
    for table in (TABLE, other):
        for producer in ("q", "q1", "q/1", "q%2F1"):
            for epoch in (10, 9):
                await inbox.put(build_request(table, producer=producer, epoch=epoch))
    everything = await keys(inbox.list())
    assert len(everything) == 16
    assert everything == sorted(everything)
    assert len(await keys(inbox.list(TABLE.metadata.table_uuid))) == 8
    for producer in ("q", "q1", "q/1", "q%2F1"):
        found = await keys(inbox.list(TABLE.metadata.table_uuid, producer))
        assert [key.split("/")[2] for key in found] == [f"{9:020d}", f"{10:020d}"]
    assert await keys(inbox.list(uuid4())) == []
    assert await keys(inbox.list(TABLE.metadata.table_uuid, "nobody")) == []


async def test_inbox_and_quarantine_do_not_see_one_another() -> None:
    storage = MemoryStorage()
    inbox, quarantine = Inbox(storage, ROOT), Quarantine(storage, ROOT)
    sealed = build_request(TABLE)
    key = sealed.request.inbox_key
    await inbox.put(sealed)
    await quarantine.put(record_of(key), sealed.content)
    await inbox.delete([key])
    assert await keys(inbox.list()) == []
    assert await keys(quarantine.list(TABLE.metadata.table_uuid, "query-1")) == [key]


async def test_a_quarantined_request_keeps_its_reason_and_its_bytes() -> None:
    quarantine = Quarantine(MemoryStorage(), ROOT)
    for content in (build_request(TABLE).content, b"", b"\n\n", b"no line at all", b"\0\n\xff"):
        key = f"some/{len(content)}"
        await quarantine.put(record_of(key), content)
        assert await quarantine.get(key) == (record_of(key), content)
        assert await quarantine.record(key) == record_of(key)
        assert await quarantine.contains(key)


async def test_the_first_reason_stays() -> None:
    quarantine = Quarantine(MemoryStorage(), ROOT)
    await quarantine.put(record_of("k"), b"content")
    await quarantine.put(record_of("k", reason=Reason.SPEC_UNKNOWN), b"content")
    assert (await quarantine.get("k"))[0].reason == Reason.COUNT_MISMATCH


async def test_a_record_alone_is_read_without_the_request_behind_it() -> None:
    storage = CountingStorage(MemoryStorage())
    quarantine = Quarantine(storage, ROOT)
    await quarantine.put(record_of("k"), bytes(1_000_000))
    read: list[int | None] = []
    inner = storage.inner.get

    async def get(
        location: str,
        *,
        offset: int = 0,
        length: int | None = None,
        size_bytes_max: int | None = None,
    ) -> bytes:
        read.append(length)
        return await inner(location, offset=offset, length=length, size_bytes_max=size_bytes_max)

    storage.inner.get = get  # type: ignore[method-assign]
    assert await quarantine.record("k") == record_of("k")
    assert read == [16 * 1024]
    # A message longer than that is read to its end.
    long = record_of("l", message="x" * 40_000)
    await quarantine.put(long, bytes(10))
    assert await quarantine.record("l") == long


async def test_a_record_that_only_told_is_read_once_and_another_one_in_its_place_again() -> None:
    world = ManualWorld()
    storage = CountingStorage(MemoryStorage(world=world))
    quarantine = Quarantine(storage, ROOT)
    told, kept = (build_request(TABLE, epoch=epoch).key for epoch in (1, 2))
    await quarantine.put(record_of(told, is_told_only=True), b"")
    await quarantine.put(record_of(kept), b"content")

    async def told_only() -> list[str]:
        listed = [one async for one in quarantine.list()]
        return [one.key for one in listed if await quarantine.is_told_only(one)]

    assert await told_only() == await told_only() == [told]
    assert storage.calls["get"] == 3
    await quarantine.delete([told])
    world.advance(1.0)
    await quarantine.put(record_of(told), b"content")
    assert await told_only() == []


async def test_an_object_without_a_record_says_so() -> None:
    storage = MemoryStorage()
    quarantine = Quarantine(storage, ROOT)
    for number, content in enumerate((b"", b"{}\n", b"not json\nrest")):
        await storage.create((NewObject(quarantine.location(f"k{number}"), content),))
        with pytest.raises(InvalidRequestError) as caught:
            await quarantine.get(f"k{number}")
        assert caught.value.reason == Reason.REQUEST_MALFORMED
    with pytest.raises(NotFoundError):
        await quarantine.get("absent")


def test_a_record_of_a_later_version_is_read_as_far_as_it_is_known() -> None:
    line = record_of("k").model_dump_json()[:-1] + ',"later":{"x":1}}'
    assert read_quarantined(line.encode() + b"\nrest", "k") == (record_of("k"), b"rest")


async def test_a_hostile_producer_stays_in_its_folder() -> None:
    inbox = Inbox(MemoryStorage(), ROOT)
    line = build_line(TABLE, producer="../../x")
    sealed = seal(line, [build_manifest(TABLE.metadata, [])])
    await inbox.put(sealed)
    (key,) = await keys(inbox.list(TABLE.metadata.table_uuid))
    assert key.split("/")[1] == "..%2F..%2Fx"
    assert UUID(key.split("/")[0]) == TABLE.metadata.table_uuid
