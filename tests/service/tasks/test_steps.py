from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from committer.errors import StorageUnavailableError
from committer.ports.storage import NewObject
from committer.service.tasks.steps import create_all, finish
from tests.support.memory.memory_storage import MemoryStorage

OBJECTS = [NewObject(f"memory:/{name}", name.encode()) for name in "abc"]


class _HalfAway(MemoryStorage):
    """Does not answer for `b`, and is slow with `c`."""

    writing = 0

    async def create(self, objects: Sequence[NewObject]) -> None:
        self.writing += 1
        try:
            if objects[0].location == "memory:/b":
                raise StorageUnavailableError("no answer")
            for _ in range(10):
                await asyncio.sleep(0)
            await super().create(objects)
        finally:
            self.writing -= 1


async def test_an_error_leaves_no_writes_under_way() -> None:
    storage = _HalfAway()
    await storage.create(OBJECTS[:1])
    with pytest.raises(StorageUnavailableError):
        await create_all(storage, OBJECTS)
    assert storage.writing == 0


async def test_what_was_sent_is_awaited_to_its_end_however_often_its_caller_is_cancelled() -> None:
    answered = asyncio.Event()
    is_applied = False

    async def swap() -> None:
        nonlocal is_applied
        await answered.wait()
        is_applied = True

    caller = asyncio.create_task(finish(swap()))
    for _ in range(3):
        await asyncio.sleep(0)
        caller.cancel()
    await asyncio.sleep(0)
    assert not caller.done()
    answered.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert is_applied
