"""Opens what the tables of a catalog need: the catalog, and the storage of their files.

A process that plans a write needs no more: requests, inbox and queue are opened to publish.
"""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class OpenTables:
    """A catalog's tables and what they hold open. `storage`: of their files; `own_storage`: of
    everything else, below the keys of this process.
    """

    settings: WorkerSettings
    catalog: Catalog
    storage: VendedStorage
    own_storage: SchemeStorage
    cache: TableCache
    world: World

    async def close(self) -> None:
        await self.catalog.close()
        await self.storage.close()


async def open_tables(settings: WorkerSettings) -> OpenTables:
    """Open catalog and storage. Errors: `SettingsError` naming the setting."""
    world = RealWorld()
    own = open_storage(settings.catalog, world, prune_below=settings.inbox)
    own.adapter(settings.inbox)
    storage = open_table_storage(own, settings.catalog, world)
    catalog = await _open_catalog(settings, storage, world)
    cache = TableCache(catalog=catalog, storage=storage, world=world)
    return OpenTables(settings, catalog, storage, own, cache, world)


async def _open_catalog(settings: WorkerSettings, storage: VendedStorage, world: World) -> Catalog:
    """Open the catalog: a writer makes none. Errors: as `open_tables`."""
    catalog = settings.catalog
    with named_setting(f"catalog.{catalog.address}"):
        try:
            return await open_catalog(catalog, storage, world, create=False, vended=storage)
        except NotFoundError as error:
            raise SettingsError(str(error)) from error
