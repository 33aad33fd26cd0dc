"""The calls of the `Storage` port that are about one location, for storages that pass them on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from committer.errors import FrazilError, UndeletedError
from committer.group_commit import finish_all
from committer.ports.storage import ObjectInfo, Storage, require_deleted

T = TypeVar("T")


class RoutedStorage(ABC):
    """Passes each call on to the storage that its location has."""

    @abstractmethod
    async def _call(self, location: str, act: Callable[[Storage], Awaitable[T]]) -> T:
        """Act on the storage of a location."""

    async def get(
        self,
        location: str,
        *,
        offset: int = 0,
        length: int | None = None,
        size_bytes_max: int | None = None,
    ) -> bytes:
        return await self._call(
            location,
            lambda storage: storage.get(
                location, offset=offset, length=length, size_bytes_max=size_bytes_max
            ),
        )

    async def head(self, location: str) -> ObjectInfo:
        return await self._call(location, lambda storage: storage.head(location))

    async def replace(self, location: str, content: bytes, *, etag: str | None) -> str:
        return await self._call(
            location, lambda storage: storage.replace(location, content, etag=etag)
        )

    async def names(self, folder: str, *, starts_with: str = "") -> Sequence[str]:
        return await self._call(
            folder, lambda storage: storage.names(folder, starts_with=starts_with)
        )

    async def probe(self, prefix: str) -> None:
        await self._call(prefix, lambda storage: storage.probe(prefix))


async def delete_groups(
    groups: Iterable[Sequence[str]], delete: Callable[[Sequence[str]], Awaitable[None]]
) -> None:
    """Delete groups of locations at once, each in its own way. Errors: as of `Storage.delete`; no
    group keeps another from being deleted.
    """
    groups = [*groups]
    failures: dict[str, FrazilError] = {}
    calls = (_undeleted(group, delete, is_lone=len(groups) == 1) for group in groups)
    for remaining in await finish_all(calls):
        failures |= remaining
    require_deleted(failures, [location for group in groups for location in group])


async def _undeleted(
    group: Sequence[str], delete: Callable[[Sequence[str]], Awaitable[None]], *, is_lone: bool
) -> Mapping[str, FrazilError]:
    try:
        await delete(group)
    except UndeletedError as error:
        return error.failures
    except FrazilError as error:
        if is_lone:
            raise
        return dict.fromkeys(group, error)
    return {}
