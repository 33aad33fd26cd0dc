"""Opens what publishing needs: storage, catalog and queue, as the settings name them."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

from committer.backends.catalog_kinds import open_catalog
from committer.backends.storage_schemes import open_storage, open_table_storage
from committer.creation.create_table import NewTable, Surroundings, create_table
from committer.errors import NotFoundError, SettingsError
from committer.ports.catalog import Catalog
from committer.ports.pointer_swap import LoadedTable
from committer.ports.queue import Queue
from committer.ports.world import World
from committer.queue.redis_stream import RedisQueue
from committer.real_world import RealWorld
from committer.settings.setting_names import named_setting
from committer.storage.inbox.inbox import Inbox, Quarantine
from committer.storage.inbox.key_file import KeyFile
from committer.storage.vending.vended import VendedStorage
from workers.requests.publisher import Publisher
from workers.requests.table_cache import TableCache
from workers.settings.worker_settings import NO_QUEUE, WorkerSettings


@dataclass(frozen=True, slots=True)
class Connections:
    """A publisher and what it holds open. `storage`: of the files of tables; the inbox has its
    own, which is closed with it.
    """

    publisher: Publisher
    storage: VendedStorage
    catalog: Catalog
    queue: Queue | None
    world: World
    around: Surroundings

    async def create_table(self, new: NewTable) -> LoadedTable:
        """Create a table. Errors: as `committer.creation.create_table.create_table`."""
        return await create_table(self.catalog, self.world, new, self.around)

    async def close(self) -> None:
        if self.queue is not None:
            await self.queue.close()
        await self.catalog.close()
        await self.storage.close()


async def open_connections(settings: WorkerSettings) -> Connections:
    """Open storage, catalog, keys and queue. Errors: `SettingsError` naming the setting."""
    world = RealWorld()
    storage = open_storage(settings.catalog, world, prune_below=settings.inbox)
    storage.adapter(settings.inbox)
    table_storage = open_table_storage(storage, settings.catalog, world)
    catalog = await _open_catalog(settings, table_storage, world)
    key_file = None
    if settings.keys:
        storage.adapter(settings.keys)
        key_file = KeyFile(storage, settings.keys, world)
    queue = _open_queue(settings)
    publisher = Publisher(
        catalog_name=settings.catalog.name,
        tables=TableCache(catalog=catalog, storage=table_storage),
        inbox=Inbox(storage, settings.inbox),
        quarantine=Quarantine(storage, settings.inbox),
        queue=queue,
        world=world,
        key_file=key_file,
    )
    around = Surroundings(place=settings.place, inbox=settings.inbox)
    return Connections(publisher, table_storage, catalog, queue, world, around)


async def _open_catalog(settings: WorkerSettings, storage: VendedStorage, world: World) -> Catalog:
    """Open the catalog: a writer makes none. Errors: as `open_connections`."""
    catalog = settings.catalog
    with named_setting(f"catalog.{catalog.address}"):
        try:
            return await open_catalog(catalog, storage, world, create=False, vended=storage)
        except NotFoundError as error:
            raise SettingsError(str(error)) from error


def _open_queue(settings: WorkerSettings) -> Queue | None:
    if settings.queue_url == NO_QUEUE:
        return None
    return RedisQueue(settings.queue_url, consumer=f"{socket.gethostname()}-{os.getpid()}")
