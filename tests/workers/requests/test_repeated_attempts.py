"""Two writes of one attempt: the second is rejected, whatever has become of the first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

import pytest

from committer.errors import AlreadyExistsError, PublishError
from committer.ports.storage import NewObject
from committer.storage.inbox.replays import Replays
from tests.support.memory.memory_storage import MemoryStorage
from tests.support.workers.publishing import Bench, build_bench, move_to_quarantine, quarantine
from workers.requests.publisher import Publisher, PublishPolicy
from workers.requests.written_epoch import WrittenEpoch

DURABLE = PublishPolicy()


async def assert_second_write_rejected(bench: Bench, publisher: Publisher) -> None:
    """Publish a second write of the first attempt: an error that names the option `sink`."""
    before = await bench.inbox_keys()
    with pytest.raises(PublishError, match="give each write its own `sink` option"):
        await publisher.publish(bench.written(names=("b",), may_repeat=True), DURABLE)
    assert await bench.inbox_keys() == before


# --- By the publisher that published the first write --------------------------------------------


async def _landed_by_a_rerun(bench: Bench, first: WrittenEpoch) -> None:
    """Land the epoch by an earlier run: the ledger knows its attempt only."""
    await bench.land(first, attempt=2)
    await bench.inbox.delete(await bench.inbox_keys())


async def _without_ledger(bench: Bench, first: WrittenEpoch) -> None:
    """Delete the inbox object of the first write, whose producer has no ledger entry."""
    await bench.inbox.delete(await bench.inbox_keys())


async def _replayed(bench: Bench, first: WrittenEpoch) -> None:
    """Replay the first write from quarantine, under a fresh key."""
    (key,) = await bench.inbox_keys()
    await move_to_quarantine(bench, key)
    await Replays(bench.storage, "memory:/requests").replay(key, UUID(int=7))


@pytest.mark.parametrize("change", [_landed_by_a_rerun, _without_ledger, _replayed])
async def test_a_publisher_rejects_a_second_write_that_no_server_knows_of_any_more(
    change: Callable[[Bench, WrittenEpoch], Awaitable[None]],
) -> None:
    bench = await build_bench()
    first = bench.written(names=("a",), may_repeat=True)
    await bench.publisher.publish(first, DURABLE)
    await change(bench, first)
    await assert_second_write_rejected(bench, bench.publisher)


async def test_a_publisher_rejects_a_second_write_after_it_repeated_the_first() -> None:
    bench = await build_bench()
    first = bench.written(names=("a",), may_repeat=True)
    await bench.publisher.publish(first, DURABLE)
    elsewhere = bench.publisher_elsewhere()
    await elsewhere.publish(first, DURABLE)
    await bench.inbox.delete(await bench.inbox_keys())
    await assert_second_write_rejected(bench, elsewhere)


async def test_the_next_epoch_and_another_run_of_this_one_are_no_second_writes() -> None:
    bench = await build_bench()
    await bench.publisher.publish(bench.written(names=("a",), may_repeat=True), DURABLE)
    for written in (
        bench.written(epoch=1, names=("b",), may_repeat=True),
        bench.written(epoch=1, names=("c",), attempt=2, may_repeat=True),
    ):
        await bench.publisher.publish(written, DURABLE)
    assert len(await bench.inbox_keys()) == 3


# --- By another process -------------------------------------------------------------------------


async def test_a_second_write_is_rejected_although_the_first_has_landed() -> None:
    bench = await build_bench()
    first = bench.written(names=("a",), may_repeat=True)
    await bench.publisher.publish(first, DURABLE)
    await bench.land(first)
    await bench.inbox.delete(await bench.inbox_keys())
    await assert_second_write_rejected(bench, bench.publisher_elsewhere())


class LeavingStorage(MemoryStorage):
    """Does something right after a create has found its location taken."""

    when_taken: Callable[[], Awaitable[None]] | None = None

    async def create(self, objects: Sequence[NewObject]) -> None:
        try:
            await super().create(objects)
        except AlreadyExistsError:
            if self.when_taken is not None:
                await self.when_taken()
            raise


async def test_a_second_write_is_rejected_although_the_first_lands_meanwhile() -> None:
    storage = LeavingStorage()
    bench = await build_bench(storage=storage)
    first = bench.written(names=("a",), may_repeat=True)
    await bench.publisher.publish(first, DURABLE)

    async def land() -> None:
        await bench.land(first)
        await bench.inbox.delete(await bench.inbox_keys())

    storage.when_taken = land
    with pytest.raises(PublishError, match="give each write its own `sink` option"):
        await bench.publisher_elsewhere().publish(
            bench.written(names=("b",), may_repeat=True), DURABLE
        )


async def test_a_second_write_is_rejected_although_the_first_is_in_quarantine() -> None:
    bench = await build_bench()
    await quarantine(bench, bench.written(names=("a",), may_repeat=True))
    await assert_second_write_rejected(bench, bench.publisher_elsewhere())


async def test_a_second_write_is_rejected_although_the_record_of_the_first_is_broken() -> None:
    bench = await build_bench()
    await bench.publisher.publish(bench.written(names=("a",), may_repeat=True), DURABLE)
    (key,) = await bench.inbox_keys()
    await bench.inbox.delete([key])
    await bench.storage.create([NewObject(bench.quarantine.location(key), b"no record")])
    await assert_second_write_rejected(bench, bench.publisher_elsewhere())


async def test_a_rerun_of_a_landed_epoch_is_published_as_another_attempt() -> None:
    bench = await build_bench()
    first = bench.written(may_repeat=True)
    await bench.land(first)
    again = bench.written(attempt=2, may_repeat=True)
    await bench.publisher.publish(again, DURABLE)
    (key,) = await bench.inbox_keys()
    assert key.endswith(str(again.attempt))
