"""Storages that let a test act in the moment before a read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from committer.real_world import RealWorld
from committer.storage.disk.local import LocalStorage
from committer.storage.scheme import scheme_of
from tests.support.memory.memory_storage import MemoryStorage


class InterferedStorage(MemoryStorage):
    """Lets a test act in the moment before a read. `warehouse`: where the tables of tests are."""

    def __init__(self, warehouse: str = "memory://warehouse") -> None:
        super().__init__(world=RealWorld(), schemes=(scheme_of(warehouse),))
        self.warehouse = warehouse
        self.before_get: Callable[[str], Awaitable[None]] | None = None

    async def get(
        self,
        location: str,
        *,
        offset: int = 0,
        length: int | None = None,
        size_bytes_max: int | None = None,
    ) -> bytes:
        act, self.before_get = self.before_get, None
        if act is not None:
            await act(location)
        return await super().get(
            location, offset=offset, length=length, size_bytes_max=size_bytes_max
        )


class InterferedFiles(LocalStorage):
    """Files, of which no test interferes with the reads: the server has the pointer."""

    before_get: Callable[[str], Awaitable[None]] | None = None
