"""Opens what publishing needs: the tables, the inbox, keys and queue, as the settings name them."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

from committer.ports.installation import Identity
from committer.ports.queue import Queue
from committer.queue.redis_stream import RedisQueue
from committer.storage.inbox.inbox import Inbox, Quarantine
from committer.storage.inbox.inbox_identity import InboxIdentity
from committer.storage.inbox.key_file import KeyFile
from workers.requests.open_tables import OpenTables, open_tables
from workers.requests.publisher import Publisher
from workers.settings.worker_settings import NO_QUEUE, WorkerSettings


@dataclass(frozen=True, slots=True)
class Connections:
    """A publisher and what it holds open."""

    publisher: Publisher
    tables: OpenTables
    queue: Queue | None

    async def close(self) -> None:
        if self.queue is not None:
            await self.queue.close()
        await self.tables.close()


async def open_connections(settings: WorkerSettings) -> Connections:
    """Open everything, the catalog too. Errors: `SettingsError` naming the setting."""
    tables = open_tables(settings)
    await tables.catalog()
    return connect(tables)


def connect(tables: OpenTables) -> Connections:
    """Open what publishing needs beside the tables, which are closed with it. Errors: as
    `open_connections`."""
    settings, storage = tables.settings, tables.own_storage
    key_file = None
    if settings.keys:
        storage.adapter(settings.keys)
        key_file = KeyFile(storage, settings.keys, tables.world)
    queue = _open_queue(settings, InboxIdentity(storage, settings.inbox, tables.world))
    publisher = Publisher(
        catalog_name=settings.catalog.name,
        tables=tables.cache,
        inbox=Inbox(storage, settings.inbox),
        quarantine=Quarantine(storage, settings.inbox),
        queue=queue,
        world=tables.world,
        key_file=key_file,
    )
    return Connections(publisher, tables, queue)


def _open_queue(settings: WorkerSettings, identity: Identity) -> Queue | None:
    if settings.queue_url == NO_QUEUE:
        return None
    consumer = f"{socket.gethostname()}-{os.getpid()}"
    return RedisQueue(settings.queue_url, identity=identity, consumer=consumer)
