"""Wraps ports to time and count their calls; the adapters do not change for it.

No decision lives here. The `Meter` decides what becomes of the numbers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from inspect import iscoroutinefunction
from types import SimpleNamespace
from typing import Protocol, TypeVar, cast

from committer.ports.skips import Skips
from committer.ports.storage import NewObject, ObjectInfo, Storage


class Meter(Protocol):
    """Measures every call of one port, by the name of its method."""

    def timed(self, call: str, location: str = "") -> AbstractContextManager[None]:
        """Measure one call, and see its error. Of a listing, also what is done meanwhile.
        `location`: the object that is called, or the first of them.
        """

    def moved(self, call: str, objects: int, size_bytes: int) -> None:
        """Count objects and bytes of a `create`, `replace`, `get` or `delete` that succeeded."""


class InstrumentedStorage:
    """The `Storage` port around `inner`."""

    def __init__(self, inner: Storage, meter: Meter) -> None:
        self.inner = inner
        self._meter = meter

    async def get(
        self,
        location: str,
        *,
        offset: int = 0,
        length: int | None = None,
        size_bytes_max: int | None = None,
    ) -> bytes:
        with self._meter.timed("get", location):
            content = await self.inner.get(
                location, offset=offset, length=length, size_bytes_max=size_bytes_max
            )
        self._meter.moved("get", 1, len(content))
        return content

    async def head(self, location: str) -> ObjectInfo:
        with self._meter.timed("head", location):
            return await self.inner.head(location)

    async def create(self, objects: Sequence[NewObject]) -> None:
        with self._meter.timed("create", objects[0].location if objects else ""):
            await self.inner.create(objects)
        self._meter.moved("create", len(objects), sum(len(one.content) for one in objects))

    async def replace(self, location: str, content: bytes, *, etag: str | None) -> str:
        with self._meter.timed("replace", location):
            new_etag = await self.inner.replace(location, content, etag=etag)
        self._meter.moved("replace", 1, len(content))
        return new_etag

    async def delete(self, locations: Sequence[str]) -> None:
        with self._meter.timed("delete", locations[0] if locations else ""):
            await self.inner.delete(locations)
        self._meter.moved("delete", len(locations), 0)

    async def list(self, prefix: str, *, skips: Skips | None = None) -> AsyncIterator[ObjectInfo]:
        with self._meter.timed("list"):
            async for info in self.inner.list(prefix, skips=skips):
                yield info

    async def names(self, folder: str, *, starts_with: str = "") -> Sequence[str]:
        with self._meter.timed("names"):
            return await self.inner.names(folder, starts_with=starts_with)

    async def probe(self, prefix: str) -> None:
        with self._meter.timed("probe"):
            await self.inner.probe(prefix)

    async def close(self) -> None:
        await self.inner.close()


P = TypeVar("P")


def instrumented(inner: P, port: type, meter: Meter) -> P:
    """Return a port around `inner`, each of whose awaited calls but `close` is timed. A call that
    waits for news takes as long as it waits.
    """
    wrapper = SimpleNamespace(inner=inner)
    for name, method in vars(port).items():
        if not name.startswith("_"):
            is_timed = iscoroutinefunction(method) and name != "close"
            call = getattr(inner, name)
            setattr(wrapper, name, _timed(call, name, meter) if is_timed else call)
    return cast(P, wrapper)


def _timed(
    call: Callable[..., Awaitable[object]], name: str, meter: Meter
) -> Callable[..., Awaitable[object]]:
    async def timed(*args: object, **kwargs: object) -> object:
        with meter.timed(name):
            return await call(*args, **kwargs)

    return timed
