"""Ports that a process cannot reach for a while: their calls hang, or are refused at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, cast

from committer.errors import CatalogUnavailableError, StorageUnavailableError, TransientError
from committer.ports.catalog import Catalog
from committer.ports.storage import Storage

# As long as an adapter tries, as a rule.
HANG_S = 60.0
How = Literal["hangs", "is refused"]
P = TypeVar("P")


@dataclass(slots=True, eq=False)
class Link:
    """The way of one process to one place. `how`: what becomes of a call while it is cut."""

    error: type[TransientError]
    how: How | None = None
    _healed: asyncio.Event = field(default_factory=asyncio.Event)

    def cut(self, how: How) -> None:
        self.how = how
        self._healed = asyncio.Event()

    def heal(self) -> None:
        self.how = None
        self._healed.set()

    async def cross(self) -> None:
        """Wait until a call reaches the place. Errors: `error` if it does not."""
        if self.how is None:
            return
        if self.how == "hangs":
            with suppress(TimeoutError):
                async with asyncio.timeout(HANG_S):
                    await self._healed.wait()
                    return
        raise self.error("the test keeps the place away")


@dataclass(slots=True)
class Links:
    """The ways of one process to all places that its tables need."""

    storage: Link = field(default_factory=lambda: Link(StorageUnavailableError))
    inbox: Link = field(default_factory=lambda: Link(StorageUnavailableError))
    catalog: Link = field(default_factory=lambda: Link(CatalogUnavailableError))

    def of(self, place: str) -> Link:
        return cast(Link, getattr(self, place))


class _Linked:
    def __init__(self, inner: Storage | Catalog, link: Link) -> None:
        self._inner = inner
        self._link = link

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if name == "list":
            return self._listed
        return self._crossing(method) if asyncio.iscoroutinefunction(method) else method

    def _crossing(self, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def call(*args: Any, **options: Any) -> Any:
            await self._link.cross()
            return await method(*args, **options)

        return call

    async def _listed(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        await self._link.cross()
        listed: AsyncIterator[Any] = cast(Any, self._inner).list(*args, **options)
        async for found in listed:
            yield found


def linked_storage(inner: Storage, link: Link) -> Storage:
    """Return a storage at the other end of a link."""
    return cast(Storage, _Linked(inner, link))


def linked_catalog(inner: Catalog, link: Link) -> Catalog:
    """Return a catalog at the other end of a link."""
    return cast(Catalog, _Linked(inner, link))
