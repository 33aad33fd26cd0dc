"""The composition root: settings in, parts out. Storages and catalogs: `committer.backends`.

Libraries of the queue are imported once it is opened: most commands do without it.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from committer.backends import catalog_kinds, storage_schemes
from committer.catalog.catalog_properties import CatalogKind
from committer.errors import CatalogUnavailableError, NotFoundError, SettingsError
from committer.ports.catalog import Catalog
from committer.ports.installation import Identity, Installation
from committer.ports.leases import Leases
from committer.ports.queue import Queue
from committer.ports.storage import Storage
from committer.ports.table_credentials import CredentialKeeper
from committer.ports.world import World
from committer.private_files import (
    is_private_folder,
    is_written_by_others,
    make_private_file,
    make_private_folder,
)
from committer.real_world import RealWorld
from committer.request.unsigned_operations import (
    ALL_OPERATIONS,
    APPEND_ONLY,
    parse_operations,
)
from committer.service.settle.high_water_mark_store import HighWaterMarkStore
from committer.settings.default_places import queue_folder
from committer.settings.service_settings import LimitSettings, Settings
from committer.settings.setting_names import named_setting, setting_text
from committer.storage.bounded import BoundedStorage, ReadLimit, ReadLimits
from committer.storage.inbox.audit_log import AuditLog
from committer.storage.inbox.inbox import Inbox, Quarantine, skips_of
from committer.storage.inbox.inbox_identity import InboxIdentity
from committer.storage.inbox.journal import Journal
from committer.storage.inbox.key_file import KeyFile
from committer.storage.inbox.moves import Moves
from committer.storage.inbox.replays import Replays

if TYPE_CHECKING:
    from committer.service.process.redis_server import RedisServer

PRIVATE = "private"
NONE = "none"
_SQLITE = "sqlite:///"
_SQLITE_PATH = "sqlite:////"  # the last slash begins an absolute path


@dataclass(frozen=True, slots=True)
class Storages:
    """The storage of the files of tables, and that of everything else, which never gets credentials
    from a catalog. `vended`: keeps those that it vends for the former.
    """

    of_tables: Storage
    own: Storage
    vended: CredentialKeeper | None = None


@dataclass(kw_only=True)
class RequestParts:
    """The parts that store requests and announce them: all that needs no catalog.

    `queue`, `leases` and `key_file` are None without one.
    """

    settings: Settings
    world: World
    storages: Storages
    queue: Queue | None = None
    leases: Leases | None = None

    def __post_init__(self) -> None:
        storage, root = self.own_storage, self.settings.inbox
        self.inbox = Inbox(storage, root)
        self.quarantine = Quarantine(storage, root)
        self.replays = Replays(storage, root)
        self.journal = Journal(storage, root)
        self.high_water_marks = HighWaterMarkStore.at(storage, root)
        self.moves = Moves(storage, root)
        self.audit = AuditLog(storage, root)
        keys = self.settings.security.keys
        self.key_file = KeyFile(storage, keys, self.world) if keys else None

    @property
    def storage(self) -> Storage:
        return self.storages.of_tables

    @property
    def own_storage(self) -> Storage:
        return self.storages.own

    async def close(self) -> None:
        """Release connections, the queue's first."""
        if self.leases is not None:
            await self.leases.close()
        if self.queue is not None:
            await self.queue.close()
        await self.storage.close()


@dataclass(kw_only=True)
class Parts(RequestParts):
    """Everything with a connection, opened for one process."""

    catalog: Catalog

    async def close(self) -> None:
        await self.catalog.close()
        await RequestParts.close(self)


def start_private_queue(settings: Settings) -> RedisServer | None:
    """Start (or find) the private server if the settings ask for one. Blocks for a moment.

    Errors: `SettingsError` where it cannot be started, or another committer uses it.
    """
    if settings.queue.url != PRIVATE:
        return None
    from committer.service.process.redis_server import claim_folder, start_redis_server

    make_home(settings)
    folder = queue_folder(settings.home)
    with named_setting("home"), _explained(folder):
        claim = claim_folder(folder)
        server = start_redis_server(folder)
    server.claim = claim
    return server


def make_home(settings: Settings) -> None:
    """Make the folder of what has no location of its own, where something has none; and in it the
    inbox, if that is there. Their owner alone may enter both. Errors: `SettingsError`.
    """
    home, inbox = settings.home, Path(settings.inbox.removeprefix("file://"))
    is_inbox_inside = inbox.is_relative_to(home)
    if settings.queue.url != PRIVATE and not is_inbox_inside and not _is_catalog_inside(settings):
        return
    with named_setting("home"), _explained(home):
        make_private_folder(home)
        if is_inbox_inside:
            make_private_folder(inbox)


def _is_catalog_inside(settings: Settings) -> bool:
    uri = settings.catalog.uri
    path = Path(uri.removeprefix(_SQLITE))
    return uri.startswith(_SQLITE_PATH) and path.is_relative_to(settings.home)


def open_request_parts(settings: Settings) -> RequestParts:
    """Open all but the catalog; nothing is asked yet.

    Errors: `SettingsError`, naming the setting.
    """
    world = RealWorld()
    with named_setting("inbox"):
        properties = settings.catalog.all_properties
        storage = storage_schemes.open_storage(properties, world, prune_below=settings.inbox)
        storage.adapter(settings.inbox)
    with named_setting("catalog.warehouse"):
        if properties.place:
            storage.adapter(properties.place)
    if settings.security.keys:
        with named_setting("security.keys"):
            storage.adapter(settings.security.keys)
    table_storage = storage_schemes.open_table_storage(storage, properties, world)
    bounded = BoundedStorage(table_storage, read_limits(settings.limits))
    queue, leases = _open_queue(settings, InboxIdentity(storage, settings.inbox, world), world)
    return RequestParts(
        settings=settings,
        world=world,
        storages=Storages(bounded, storage, vended=table_storage),
        queue=queue,
        leases=leases,
    )


def read_limits(limits: LimitSettings) -> ReadLimits:
    """Return the limits of the files of tables, each with what to do about a larger one."""

    def limit(bytes_max: int, setting: str, remedy: str) -> ReadLimit:
        raised = f"or raise {setting_text(f'limits.{setting}')}, which takes up to ten times as"
        return ReadLimit(bytes_max, f"{remedy}, {raised} much memory; only this table waits")

    return ReadLimits(
        metadata=limit(
            limits.metadata_bytes_max,
            "metadata_bytes_max",
            "with another engine, expire snapshots and remove long properties",
        ),
        manifest_list=limit(
            limits.manifest_list_bytes_max,
            "manifest_list_bytes_max",
            "with another engine, rewrite the table's manifests to fewer ones",
        ),
        manifest=limit(
            limits.manifest_bytes_max,
            "manifest_bytes_max",
            "with another engine, rewrite the table's manifests to smaller ones"
            " (`commit.manifest.target-size-bytes`)",
        ),
    )


def unsigned_operations(settings: Settings) -> frozenset[str]:
    """Return the operations that a request may ask for without a signature.

    Where the settings do not say: all, if no other user can publish, as inbox and queue are in a
    private home; else appends alone.
    """
    text = settings.security.unsigned_operations
    if text:
        return parse_operations(text)
    return ALL_OPERATIONS if _is_private(settings) else APPEND_ONLY


def _is_private(settings: Settings) -> bool:
    """Return whether the owner of the home alone can publish a request, or ring a doorbell, which
    may carry one.
    """
    home, inbox = settings.home, Path(settings.inbox.removeprefix("file://"))
    url = settings.queue.url
    socket_ = Path(unquote(urlsplit(url).path)) if url.startswith("unix:") else None
    has_own_queue = url in (PRIVATE, NONE) or (
        socket_ is not None and (_is_in(socket_, home) or is_private_folder(socket_.parent))
    )
    if not has_own_queue or not _is_in(inbox, home):
        return False
    is_home_kept = not is_written_by_others(home)
    return is_private_folder(home) or (is_home_kept and is_private_folder(inbox))


def _is_in(path: Path, folder: Path) -> bool:
    return path.is_absolute() and path.resolve().is_relative_to(folder.resolve())


async def open_parts(settings: Settings, *, create: bool = True) -> Parts:
    """Open the adapters that the settings name. `create` and errors: those of `open_catalog`."""
    parts = open_request_parts(settings)
    try:
        catalog = await open_catalog(parts, create=create)
        shared = {field.name: getattr(parts, field.name) for field in fields(RequestParts)}
        return Parts(**shared, catalog=catalog)
    except BaseException:
        await parts.close()
        raise


async def open_catalog(parts: RequestParts, *, create: bool = True) -> Catalog:
    """Connect to the catalog. `create`: make one that is missing.

    Errors: `SettingsError`, naming the setting; `CatalogUnavailableError`; `AccessError`;
    `NotFoundError` for a catalog that is missing and is not made.
    """
    settings = parts.settings
    uri, properties = settings.catalog.uri, settings.catalog.all_properties
    with named_setting(f"catalog.{properties.address}"):
        if create and uri.startswith(_SQLITE_PATH):
            _make_place(Path(uri.removeprefix(_SQLITE)), settings)
        return await catalog_kinds.open_catalog(
            properties,
            parts.storage,
            parts.world,
            create=create,
            vended=parts.storages.vended,
            tables=read_limits(settings.limits).metadata,
        )


async def open_known_catalog(parts: RequestParts, *, create: bool = True) -> Catalog:
    """Open the catalog as `open_catalog`, but never make a new, empty one while requests wait.

    Where the file of a SQLite catalog is away (a disk that is not mounted yet), a DynamoDB table or
    every database of Glue is not in the region that is asked, or a database or a table bucket is
    another one, all of them would go to quarantine for an unknown table. Errors:
    `CatalogUnavailableError` for the file then, `SettingsError` for what a server lacks.
    """
    uri = parts.settings.catalog.uri
    if _is_away(uri) and await _has_outstanding(parts.inbox):
        raise CatalogUnavailableError(
            f"the file of the catalog `{uri}` does not exist, but requests wait in"
            f" `{parts.settings.inbox}` for its tables; if it is lost, `frazil table create` begins"
            " a new one"
        )
    if create and not uri.startswith(_SQLITE) and await _has_outstanding(parts.inbox):
        with named_setting(f"catalog.{parts.settings.catalog.all_properties.address}"):
            return await _open_standing_catalog(parts)
    return await open_catalog(parts, create=create)


async def _open_standing_catalog(parts: RequestParts) -> Catalog:
    waiting, properties = parts.settings.inbox, parts.settings.catalog.all_properties
    try:
        catalog = await open_catalog(parts, create=False)
    except NotFoundError as error:
        raise SettingsError(f"requests wait in `{waiting}` for tables, but {error}") from error
    may_be_elsewhere = properties.kind in (CatalogKind.GLUE, CatalogKind.S3_TABLES)
    if may_be_elsewhere and await _is_empty(catalog):
        raise SettingsError(
            f"requests wait in `{waiting}` for tables, but {properties} has no namespace at all:"
            " correct its region or its account; if it is to be new, `frazil table create` makes"
            " the first namespace"
        )
    return catalog


async def _is_empty(catalog: Catalog) -> bool:
    """Return whether a catalog, which a wrong region shows empty, is so; then it is closed."""
    try:
        is_empty = not await catalog.list_namespaces()
    except BaseException:
        await catalog.close()
        raise
    if is_empty:
        await catalog.close()
    return is_empty


def _is_away(uri: str) -> bool:
    return uri.startswith(_SQLITE_PATH) and not Path(uri.removeprefix(_SQLITE)).exists()


async def _has_outstanding(inbox: Inbox) -> bool:
    with named_setting("inbox"):
        async for _ in inbox.list(skips=skips_of()):
            return True
    return False


def _make_place(file: Path, settings: Settings) -> None:
    """Make the folder of a catalog's file. In the home the file is its owner's alone; elsewhere
    other engines may share it, as the umask says.
    """
    if _is_catalog_inside(settings):
        make_home(settings)
    with _explained(file.parent):
        file.parent.mkdir(parents=True, exist_ok=True)
        if _is_catalog_inside(settings):
            make_private_file(file)


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SettingsError(f"folder `{folder}`: {error.strerror or error}") from error


def _open_queue(
    settings: Settings, identity: Identity, world: World
) -> tuple[Queue | None, Leases | None]:
    url = queue_url(settings)
    if url is None:
        return None, None
    from committer.queue.redis_leases import RedisLeases
    from committer.queue.redis_stream import RedisQueue

    with named_setting("queue.url"):
        name = member_name(settings)
        queue = RedisQueue(url, identity=identity, consumer=name)
        leases = RedisLeases(
            url,
            identity=identity,
            installation=installation_of(settings),
            member=name,
            process=world.uuid(),
        )
        return queue, leases


def installation_of(settings: Settings) -> Installation:
    """Return what a committer with these settings serves."""
    return Installation(settings.inbox.rstrip("/"), settings.catalog.name)


def member_name(settings: Settings) -> str:
    """Return the name of this committer among those that share the queue."""
    return settings.queue.consumer or socket.gethostname()


def status_url(settings: Settings) -> str | None:
    """Return where other machines reach this committer's `/status`; None if its endpoints are off.
    An address of this machine alone is returned as it is: others on this machine reach it.
    """
    service = settings.service
    if service.status_url or service.http_port == 0:
        return service.status_url or None
    is_any = service.http_host in ("0.0.0.0", "::")  # noqa: S104  # compared only
    host = socket.gethostname() if is_any else service.http_host
    return f"http://{f'[{host}]' if ':' in host else host}:{service.http_port}"


def queue_url(settings: Settings) -> str | None:
    """Return the URL of the queue's server, the private one included; None without a queue."""
    if settings.queue.url == NONE:
        return None
    if settings.queue.url == PRIVATE:
        from committer.service.process.redis_server import private_server_url

        return private_server_url(queue_folder(settings.home))
    return settings.queue.url
