"""A storage before a real adapter that counts calls, so that round trips can be asserted."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence

from committer.errors import StorageUnavailableError
from committer.ports import NewObject, ObjectInfo, Storage


class CountingStorage:
    """The `Storage` port around `inner`. `calls` counts by method; `is_away` fails every call."""

    def __init__(self, inner: Storage) -> None:
        self.inner = inner
        self.calls: Counter[str] = Counter()
        self.is_away = False

    def _count(self, method: str) -> None:
        self.calls[method] += 1
        if self.is_away:
            raise StorageUnavailableError("the test keeps the storage away")

    async def get(self, location: str, *, offset: int = 0, length: int | None = None) -> bytes:
        self._count("get")
        return await self.inner.get(location, offset=offset, length=length)

    async def head(self, location: str) -> ObjectInfo:
        self._count("head")
        return await self.inner.head(location)

    async def create(self, objects: Sequence[NewObject]) -> None:
        self._count("create")
        await self.inner.create(objects)

    async def replace(self, location: str, content: bytes, *, etag: str | None) -> str:
        self._count("replace")
        return await self.inner.replace(location, content, etag=etag)

    async def delete(self, locations: Sequence[str]) -> None:
        self._count("delete")
        await self.inner.delete(locations)

    async def list(self, prefix: str) -> AsyncIterator[ObjectInfo]:
        self._count("list")
        async for info in self.inner.list(prefix):
            yield info

    async def probe(self, prefix: str) -> None:
        await self.inner.probe(prefix)

    async def close(self) -> None:
        await self.inner.close()
