"""A storage that delegates each location to the adapter of its scheme. No I/O of its own."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

from committer.errors import SettingsError
from committer.group_commit import finish_all
from committer.ports.skips import Skips
from committer.ports.storage import NewObject, ObjectInfo, Storage
from committer.storage.routed import RoutedStorage, T, delete_groups

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")


def scheme_of(location: str) -> str:
    """Return `s3` of `s3://bucket/key`, `file` of a bare absolute path; lower case.

    Errors: `SettingsError` for a relative path.
    """
    if match := _SCHEME.match(location):
        return match[1].lower()
    if location.startswith("/"):
        return "file"
    raise SettingsError(f"location `{location}`: expected a URI or an absolute path")


class SchemeStorage(RoutedStorage):
    """Sends each call to the adapter registered for the location's scheme (`file`, `s3`, …).

    One adapter may serve several schemes. It owns the adapters: `close` closes them. Those in
    `on_demand` are made at the first location of their scheme.
    """

    def __init__(
        self,
        adapters: Mapping[str, Storage],
        *,
        on_demand: Mapping[str, Callable[[], Storage]] | None = None,
    ) -> None:
        self._adapters = dict(adapters)
        self._on_demand = dict(on_demand or {})

    async def create(self, objects: Sequence[NewObject]) -> None:
        groups: dict[Storage, list[NewObject]] = {}
        for created in objects:
            groups.setdefault(self.adapter(created.location), []).append(created)
        await finish_all(adapter.create(group) for adapter, group in groups.items())

    async def delete(self, locations: Sequence[str]) -> None:
        groups: dict[Storage, list[str]] = {}
        for location in locations:
            groups.setdefault(self.adapter(location), []).append(location)
        await delete_groups(groups.values(), lambda group: self.adapter(group[0]).delete(group))

    async def list(self, prefix: str, *, skips: Skips | None = None) -> AsyncIterator[ObjectInfo]:
        async for info in self.adapter(prefix).list(prefix, skips=skips):
            yield info

    async def close(self) -> None:
        await finish_all(adapter.close() for adapter in set(self._adapters.values()))

    async def _call(self, location: str, act: Callable[[Storage], Awaitable[T]]) -> T:
        return await act(self.adapter(location))

    def adapter(self, location: str) -> Storage:
        """Return the adapter that serves a location. Errors: `SettingsError` if none does."""
        scheme = scheme_of(location)
        if scheme not in self._adapters:
            if scheme not in self._on_demand:
                known = ", ".join(sorted({*self._adapters, *self._on_demand}))
                raise SettingsError(
                    f"location `{location}`: no storage for `{scheme}:` (have: {known})"
                )
            self._adapters[scheme] = self._on_demand[scheme]()
        return self._adapters[scheme]
