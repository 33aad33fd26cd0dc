"""Namespaces of a file system catalog: folders that hold something and are no table's.

An object without content marks one that has no table yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from committer.catalog.hadoop.hadoop_layout import MARKER, metadata_folder_of, namespace_folder
from committer.catalog.hadoop.versions import Versions, unavailable
from committer.catalog.namespaces import Namespace, join_namespace, no_namespace, not_empty
from committer.errors import AlreadyExistsError, TableAlreadyExistsError
from committer.ports.storage import NewObject, Storage

_FOLDERS_AT_ONCE = 16
_Asked = TypeVar("_Asked")
_Answer = TypeVar("_Answer")


class Folders:
    """The folders below a warehouse."""

    def __init__(self, warehouse: str, storage: Storage, versions: Versions) -> None:
        self._warehouse = warehouse
        self._storage = storage
        self._versions = versions

    async def require(self, namespace: Namespace) -> str:
        """Return the folder of a namespace. Errors: `NoSuchNamespaceError`; `UnsupportedError`."""
        folder = namespace_folder(self._warehouse, namespace)
        if not await self._exists(namespace):
            raise no_namespace(namespace)
        return folder

    async def tables(self, namespace: Namespace) -> list[str]:
        """Return the names of the tables in a namespace, sorted. Errors: as `require`."""
        folder = await self.require(namespace)
        below = await self._below(folder)
        found = await _each(
            below, lambda name: self._versions.current(metadata_folder_of(f"{folder}/{name}"))
        )
        return [name for name, current in found if current is not None]

    async def namespaces(self) -> list[Namespace]:
        """Return all namespaces, sorted."""
        found: list[Namespace] = []
        level: list[Namespace] = [()]
        while level:
            below = [
                (*one, name)
                for one in level
                for name in await self._below("/".join((self._warehouse, *one)))
            ]
            level = [one for one, is_there in await _each(below, self._exists) if is_there]
            found += level
        return sorted(found)

    async def create(self, namespace: Namespace) -> None:
        """Mark a folder as a namespace. Errors: `TableAlreadyExistsError` in a table's folder."""
        folder = namespace_folder(self._warehouse, namespace)
        for depth in range(1, len(namespace) + 1):
            above = namespace_folder(self._warehouse, namespace[:depth])
            if await self._versions.has_metadata(metadata_folder_of(above)):
                raise TableAlreadyExistsError(
                    f"namespace {join_namespace(namespace)}: `{above}` is the folder of a table"
                )
        with unavailable():
            try:
                await self._storage.create((NewObject(f"{folder}/{MARKER}", b""),))
            except AlreadyExistsError:
                return

    async def drop(self, namespace: Namespace) -> None:
        """Remove the mark of a namespace that holds nothing else."""
        folder = await self.require(namespace)
        with unavailable():
            async for found in self._storage.list(folder):
                if found.location != f"{folder}/{MARKER}":
                    raise not_empty(namespace)
            await self._storage.delete((f"{folder}/{MARKER}",))

    async def _exists(self, namespace: Namespace) -> bool:
        folder = "/".join((self._warehouse, *namespace))
        with unavailable():
            first = await anext(aiter(self._storage.list(folder)), None)
        if first is None:
            return False
        return not await self._versions.has_metadata(metadata_folder_of(folder))

    async def _below(self, folder: str) -> list[str]:
        names = await self._versions.names(folder)
        return [one[:-1] for one in names if one.endswith("/") and not one.startswith(".")]


async def _each(
    asked: Sequence[_Asked], ask: Callable[[_Asked], Awaitable[_Answer]]
) -> list[tuple[_Asked, _Answer]]:
    """Ask about each, several at a time."""
    answers: list[_Answer] = []
    for start in range(0, len(asked), _FOLDERS_AT_ONCE):
        some = asked[start : start + _FOLDERS_AT_ONCE]
        answers += await asyncio.gather(*map(ask, some))
    return list(zip(asked, answers, strict=True))
