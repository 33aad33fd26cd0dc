"""A storage whose every call takes longer: a stand-in for the round trip to an object store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from committer.ports.skips import Skips
from committer.ports.storage import NewObject, ObjectInfo, Storage


class DelayedStorage:
    """Sleeps before each call of the storage inside; a listing sleeps once."""

    def __init__(self, storage: Storage, delay_s: float) -> None:
        self._storage = storage
        self._delay_s = delay_s

    async def get(
        self,
        location: str,
        *,
        offset: int = 0,
        length: int | None = None,
        size_bytes_max: int | None = None,
    ) -> bytes:
        await asyncio.sleep(self._delay_s)
        return await self._storage.get(
            location, offset=offset, length=length, size_bytes_max=size_bytes_max
        )

    async def head(self, location: str) -> ObjectInfo:
        await asyncio.sleep(self._delay_s)
        return await self._storage.head(location)

    async def create(self, objects: Sequence[NewObject]) -> None:
        await asyncio.sleep(self._delay_s)
        await self._storage.create(objects)

    async def replace(self, location: str, content: bytes, *, etag: str | None) -> str:
        await asyncio.sleep(self._delay_s)
        return await self._storage.replace(location, content, etag=etag)

    async def delete(self, locations: Sequence[str]) -> None:
        await asyncio.sleep(self._delay_s)
        await self._storage.delete(locations)

    async def list(self, prefix: str, *, skips: Skips | None = None) -> AsyncIterator[ObjectInfo]:
        await asyncio.sleep(self._delay_s)
        async for found in self._storage.list(prefix, skips=skips):
            yield found

    async def names(self, folder: str, *, starts_with: str = "") -> Sequence[str]:
        await asyncio.sleep(self._delay_s)
        return await self._storage.names(folder, starts_with=starts_with)

    async def probe(self, prefix: str) -> None:
        await self._storage.probe(prefix)

    async def close(self) -> None:
        await self._storage.close()


def delayed(storage: Storage, delay_ms: int) -> Storage:
    """Return a storage with this delay; the storage itself if it is 0."""
    return DelayedStorage(storage, delay_ms / 1_000) if delay_ms else storage
