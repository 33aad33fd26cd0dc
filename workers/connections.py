"""Opens what publishing needs: storage, catalog and queue, as the settings name them."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

from committer.backends import open_catalog, open_storage
from committer.errors import SettingsError
from committer.ports import Catalog, Queue, Storage
from committer.queue.redis_stream import RedisQueue
from committer.setting_names import variable_of
from committer.storage.inbox import Inbox, Quarantine
from committer.storage.key_file import KeyFile
from committer.world import RealWorld
from workers.publisher import Publisher
from workers.settings import NO_QUEUE, WorkerSettings
from workers.table_cache import TableCache

_SQLITE = "sqlite:///"


@dataclass(frozen=True, slots=True)
class Connections:
    """A publisher and what it holds open."""

    publisher: Publisher
    storage: Storage
    catalog: Catalog
    queue: Queue | None

    async def close(self) -> None:
        if self.queue is not None:
            await self.queue.close()
        await self.catalog.close()
        await self.storage.close()


async def open_connections(settings: WorkerSettings) -> Connections:
    """Errors: `SettingsError` naming the setting."""
    _check_sqlite_file(settings.catalog_uri)
    world = RealWorld()
    storage = open_storage(settings.aws, world, prune_below=settings.inbox)
    storage.adapter(settings.inbox)
    catalog = await open_catalog(
        settings.catalog_uri,
        settings.catalog_name,
        storage,
        settings.aws,
        world,
        create=False,
    )
    key_file = None
    if settings.keys:
        storage.adapter(settings.keys)
        key_file = KeyFile(storage, settings.keys, world)
    queue = _open_queue(settings)
    publisher = Publisher(
        catalog_name=settings.catalog_name,
        tables=TableCache(catalog=catalog, storage=storage),
        inbox=Inbox(storage, settings.inbox),
        quarantine=Quarantine(storage, settings.inbox),
        queue=queue,
        world=world,
        key_file=key_file,
    )
    return Connections(publisher, storage, catalog, queue)


def _check_sqlite_file(uri: str) -> None:
    """SQLite makes an empty catalog of a path that is wrong."""
    if not uri.startswith(_SQLITE):
        return
    path = Path(uri.removeprefix(_SQLITE).partition("?")[0])
    if not path.is_file():
        raise SettingsError(
            f"setting `catalog.uri` ({variable_of('catalog.uri')}): `{path}` does not exist; the"
            " catalog is made by the committer, or by `frazil table create`"
        )


def _open_queue(settings: WorkerSettings) -> Queue | None:
    if settings.queue_url == NO_QUEUE:
        return None
    return RedisQueue(settings.queue_url, consumer=f"{socket.gethostname()}-{os.getpid()}")
