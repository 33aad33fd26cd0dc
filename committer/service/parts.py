"""The composition root: the one place that names concrete adapters. Settings in, parts out."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path

from committer.catalog.sql import SqlCatalog
from committer.errors import SettingsError
from committer.plan.batching import BatchPolicy
from committer.ports import Catalog, Queue, Storage, World
from committer.queue.redis_stream import RedisQueue
from committer.service.redis_server import RedisServer, private_server_url, start_redis_server
from committer.service.world import RealWorld
from committer.settings import Settings
from committer.storage.inbox import Inbox, Quarantine
from committer.storage.local import LocalStorage
from committer.storage.scheme import SchemeStorage

PRIVATE = "private"
NONE = "none"


@dataclass(slots=True)
class Parts:
    """Everything with a connection, opened for one process. `queue` is None without one."""

    settings: Settings
    world: World
    storage: Storage
    catalog: Catalog
    queue: Queue | None
    inbox: Inbox
    quarantine: Quarantine

    async def close(self) -> None:
        """Release connections, the queue's first."""
        if self.queue is not None:
            await self.queue.close()
        await self.catalog.close()
        await self.storage.close()


def start_private_queue(settings: Settings) -> RedisServer | None:
    """Start (or find) the private server if the settings ask for one. Blocks for a moment."""
    if settings.queue.url != PRIVATE:
        return None
    return start_redis_server(queue_folder(settings))


def queue_folder(settings: Settings) -> Path:
    """Where the private server lives."""
    return settings.home / "queue"


async def open_parts(settings: Settings) -> Parts:
    """Open the adapters that the settings name. Errors: `SettingsError`, naming the setting."""
    world = RealWorld()
    storage = SchemeStorage({"file": LocalStorage(prune_below=(settings.inbox,))})
    return Parts(
        settings=settings,
        world=world,
        storage=storage,
        catalog=await _open_catalog(settings, storage),
        queue=_open_queue(settings),
        inbox=Inbox(storage, settings.inbox),
        quarantine=Quarantine(storage, settings.inbox),
    )


async def _open_catalog(settings: Settings, storage: Storage) -> Catalog:
    catalog = settings.catalog
    if catalog.uri.startswith("sqlite:////"):
        Path(catalog.uri.removeprefix("sqlite:///")).parent.mkdir(parents=True, exist_ok=True)
    return await SqlCatalog.open(uri=catalog.uri, name=catalog.name, storage=storage)


def _open_queue(settings: Settings) -> Queue | None:
    url = settings.queue.url
    if url == NONE:
        return None
    if url == PRIVATE:
        url = private_server_url(queue_folder(settings))
    return RedisQueue(url, consumer=settings.queue.consumer or socket.gethostname())


def policy(settings: Settings) -> BatchPolicy:
    """The batch policy that the settings ask for."""
    commit = settings.commit
    if commit.batch_requests_max < 1:
        raise SettingsError("commit.batch_requests_max: expected at least 1")
    return BatchPolicy(
        min_interval_ms=commit.min_interval_ms,
        files_max=commit.batch_files_max,
        bytes_max=commit.batch_bytes_max,
        requests_max=commit.batch_requests_max,
    )
