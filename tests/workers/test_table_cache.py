from __future__ import annotations

from committer.storage.memory import MemoryStorage
from tests.workers.publishing import FLIGHTS, build_bench
from workers.table_cache import TableCache


class _CountingStorage(MemoryStorage):
    gets = 0

    async def get(self, location: str, *, offset: int = 0, length: int | None = None) -> bytes:
        self.gets += 1
        return await super().get(location, offset=offset, length=length)


async def test_metadata_is_read_again_only_when_the_pointer_has_moved() -> None:
    storage = _CountingStorage()
    bench = await build_bench(storage=storage)
    cache = TableCache(catalog=bench.catalog, storage=storage)
    first = await cache.current(FLIGHTS)
    assert await cache.current(FLIGHTS) is first
    assert storage.gets == 1
    await bench.land(bench.written())
    storage.gets = 0
    assert (await cache.current(FLIGHTS)).metadata_location != first.metadata_location
    assert storage.gets == 1
