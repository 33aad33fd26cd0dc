from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence

import pytest

from committer.errors import CatalogUnavailableError, StorageUnavailableError
from committer.ports.pointer_swap import Conflict, Swap, SwapAnswer
from committer.ports.storage import NewObject
from committer.service.tasks.steps import create_all, send_swap
from tests.support.builders.table_builders import build_swap, build_table
from tests.support.memory.memory_catalog import MemoryCatalog
from tests.support.memory.memory_storage import MemoryStorage

VIRTUAL_TIME = True
TABLE = build_table(warehouse="memory://warehouse")
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


async def test_a_canceled_swap_is_awaited_however_often_it_is_canceled() -> None:
    ended: list[str] = []

    class SlowCatalog(MemoryCatalog):
        async def swap(self, swap: Swap) -> SwapAnswer:
            await asyncio.sleep(10.0)
            ended.append("landed")
            return Conflict()

    catalog = SlowCatalog(storage=MemoryStorage())
    task = asyncio.ensure_future(send_swap(catalog, build_swap(TABLE)))
    await asyncio.sleep(1.0)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(1.0)
        assert not task.done()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["landed"]


async def test_a_swap_that_fails_after_it_was_canceled_leaves_no_unheard_error() -> None:
    class FailingCatalog(MemoryCatalog):
        async def swap(self, swap: Swap) -> SwapAnswer:
            await asyncio.sleep(10.0)
            raise CatalogUnavailableError("away")

    catalog = FailingCatalog(storage=MemoryStorage())
    task = asyncio.ensure_future(send_swap(catalog, build_swap(TABLE)))
    await asyncio.sleep(1.0)
    task.cancel()
    unheard: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(context))
    with pytest.raises(asyncio.CancelledError):
        await task
    del task
    await asyncio.sleep(1.0)
    gc.collect()
    assert unheard == []
