"""A storage before a real one that stops answering at a chosen call, as a dying process sees it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from committer.ports.skips import Skips
from committer.ports.storage import NewObject, ObjectInfo, Storage


class StoppingStorage:
    """The `Storage` port around `inner`.

    Changes that `counts` are numbered from 0. At number `stop_at` the call never returns: nothing
    of it is applied (half of the deletes: a batch is not one step), or all with `applied`.
    `delay_s`: how long each call takes; `delete_delay_s`: what each object of a delete adds.
    """

    def __init__(self, inner: Storage, counts: Callable[[str, Sequence[str]], bool]) -> None:
        self.inner = inner
        self.changes: list[tuple[str, tuple[str, ...]]] = []
        self.stop_at: int | None = None
        self.applied = False
        self.delay_s = 0.0
        self.delete_delay_s = 0.0
        self._counts = counts

    async def _change(self, kind: str, locations: Sequence[str]) -> bool:
        """Return whether the call continues; if not, it may have been applied, and hangs."""
        if not self._counts(kind, locations):
            return True
        self.changes.append((kind, tuple(locations)))
        return len(self.changes) - 1 != self.stop_at

    async def _hang(self) -> None:
        await asyncio.Event().wait()

    async def get(
        self,
        location: str,
        *,
        offset: int = 0,
        length: int | None = None,
        size_bytes_max: int | None = None,
    ) -> bytes:
        await asyncio.sleep(self.delay_s)
        return await self.inner.get(
            location, offset=offset, length=length, size_bytes_max=size_bytes_max
        )

    async def head(self, location: str) -> ObjectInfo:
        await asyncio.sleep(self.delay_s)
        return await self.inner.head(location)

    async def create(self, objects: Sequence[NewObject]) -> None:
        await asyncio.sleep(self.delay_s)
        goes_on = await self._change("create", [one.location for one in objects])
        if goes_on or self.applied:
            await self.inner.create(objects)
        if not goes_on:
            await self._hang()

    async def replace(self, location: str, content: bytes, *, etag: str | None) -> str:
        goes_on = await self._change("replace", (location,))
        if goes_on:
            return await self.inner.replace(location, content, etag=etag)
        if self.applied:
            await self.inner.replace(location, content, etag=etag)
        await self._hang()
        raise AssertionError("unreachable")

    async def delete(self, locations: Sequence[str]) -> None:
        await asyncio.sleep(self.delay_s + self.delete_delay_s * len(locations))
        goes_on = await self._change("delete", locations)
        if goes_on or self.applied:
            await self.inner.delete(locations)
        elif len(locations) > 1:
            await self.inner.delete(locations[: len(locations) // 2])
        if not goes_on:
            await self._hang()

    async def list(self, prefix: str, *, skips: Skips | None = None) -> AsyncIterator[ObjectInfo]:
        async for info in self.inner.list(prefix, skips=skips):
            yield info

    async def names(self, folder: str, *, starts_with: str = "") -> Sequence[str]:
        return await self.inner.names(folder, starts_with=starts_with)

    async def probe(self, prefix: str) -> None:
        await self.inner.probe(prefix)

    async def close(self) -> None:
        await self.inner.close()
