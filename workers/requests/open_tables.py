"""Opens what the tables of a catalog need: the catalog, and the storage of their files.

A process that plans a write needs no more: requests, inbox and queue are opened to publish. One
that publishes for a table that was just planned with needs no catalog, whose library may take as
long to import as everything else here.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from committer.backends.catalog_kinds import open_catalog
from committer.backends.storage_schemes import open_storage, open_table_storage
from committer.errors import NotFoundError, SettingsError
from committer.ports.catalog import Catalog
from committer.ports.world import World
from committer.real_world import RealWorld
from committer.settings.setting_names import named_setting
from committer.storage.scheme import SchemeStorage
from committer.storage.vending.vended import VendedStorage
from workers.requests.table_cache import TableCache
from workers.settings.worker_settings import WorkerSettings


@dataclass(slots=True, eq=False)
class LateCatalog:
    """The catalog of the settings, opened by the first that asks for it; a writer makes none."""

    _settings: WorkerSettings
    _storage: VendedStorage
    _world: World
    _opened: Catalog | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def __call__(self) -> Catalog:
        """Return it, open. Errors: `SettingsError` naming the setting."""
        async with self._lock:
            if self._opened is None:
                self._opened = await self._open()
            return self._opened

    async def _open(self) -> Catalog:
        properties, storage = self._settings.catalog, self._storage
        with named_setting(f"catalog.{properties.address}"):
            try:
                return await open_catalog(
                    properties, storage, self._world, create=False, vended=storage
                )
            except NotFoundError as error:
                raise SettingsError(str(error)) from error

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()


@dataclass(frozen=True, slots=True)
class OpenTables:
    """A catalog's tables and what they hold open. `storage`: of their files; `own_storage`: of
    everything else, below the keys of this process.
    """

    settings: WorkerSettings
    catalog: LateCatalog
    storage: VendedStorage
    own_storage: SchemeStorage
    cache: TableCache
    world: World

    async def close(self) -> None:
        await self.catalog.close()
        await self.storage.close()


def open_tables(settings: WorkerSettings) -> OpenTables:
    """Open the storage; the catalog follows at its first use, with its errors. Errors:
    `SettingsError` naming the setting."""
    world = RealWorld()
    own = open_storage(settings.catalog, world, prune_below=settings.inbox)
    own.adapter(settings.inbox)
    storage = open_table_storage(own, settings.catalog, world)
    catalog = LateCatalog(settings, storage, world)
    cache = TableCache(open_catalog=catalog, storage=storage, world=world)
    return OpenTables(settings, catalog, storage, own, cache, world)
