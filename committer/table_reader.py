"""Reads tables from code without an event loop: a catalog's pointer, then the bytes that it names.

For the command and for `frazil.load_table`. Nothing is written, and no catalog is made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from threading import Thread
from typing import Any, Protocol, TypeVar

from committer.backends.catalog_kinds import open_catalog
from committer.backends.storage_schemes import open_storage, open_table_storage
from committer.catalog.catalog_properties import CatalogProperties
from committer.errors import FrazilError, NoSuchNamespaceError, NoSuchTableError
from committer.iceberg.values.near_names import did_you_mean
from committer.ports.catalog import Catalog
from committer.ports.pointer_swap import LoadedTable
from committer.ports.table_credentials import VendedCredential
from committer.ports.world import World
from committer.real_world import RealWorld
from committer.request.table_identifier import TableIdentifier
from committer.settings.setting_names import named_setting
from committer.storage.disk import local_files
from committer.storage.scheme import scheme_of
from committer.storage.vending.vended import VendedStorage

_T = TypeVar("_T")
_NAMES_MAX = 10


class Runner(Protocol):
    """Runs coroutines in an event loop of its own, and waits for them."""

    def run(self, coroutine: Coroutine[Any, Any, _T], /) -> _T:
        """Return the result of a coroutine. Errors: its own."""


class TableReader:
    """An open storage with an event loop of its own. Used by one thread, outside any loop, unless
    its runner has a thread of its own.
    """

    def __init__(
        self,
        properties: CatalogProperties,
        runner: Runner,
        storage: VendedStorage,
        world: World,
    ) -> None:
        self._properties, self._runner = properties, runner
        self._storage, self._world = storage, world
        self._catalog: Catalog | None = None

    def load(self, identifier: TableIdentifier) -> LoadedTable:
        """Load the table as the catalog names it now.

        Errors: `NoSuchTableError`, which names the catalog and the tables beside; those of
        `open_catalog` and `Catalog.load`.
        """
        return self._runner.run(self._load(identifier))

    def refreshed(self, known: LoadedTable) -> LoadedTable:
        """Return the table as the catalog names it now: `known` itself where its pointer has not
        moved. Errors: as `load`.
        """
        return self._runner.run(self._refreshed(known))

    def credential(self, location: str) -> VendedCredential | None:
        """Return what the catalog has vended for a location of the table that was loaded last."""
        return self._runner.run(self._storage.credential(location))

    def prepare(self, identifier: TableIdentifier) -> None:
        """Ask for the credentials of a table that was loaded by another reader, if its catalog may
        vend some. Errors: as `load`.
        """
        if self._properties.is_rest:  # the only kind that vends some
            self.load(identifier)

    def read(self, location: str) -> bytes:
        """Read the bytes at a location as metadata spells it; a local file without a loop.

        Errors: `NotFoundError`, `AccessError`, `StorageUnavailableError`, `SettingsError`.
        """
        if scheme_of(location) == "file":
            return local_files.read(location, 0, None)
        return self._runner.run(self._storage.get(location))

    def size_bytes(self, location: str) -> int:
        """Return the size of an object. Errors: as `read`."""
        return self._runner.run(self._storage.head(location)).size_bytes

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        """Read some bytes of an object, fewer at its end. Errors: as `read`."""
        return self._runner.run(self._storage.get(location, offset=offset, length=length))

    def close(self) -> None:
        """Release connections."""
        self._runner.run(self._close())

    async def _close(self) -> None:
        if self._catalog is not None:
            await self._catalog.close()
        await self._storage.close()

    async def _refreshed(self, known: LoadedTable) -> LoadedTable:
        catalog = self._catalog = self._catalog or await self._open_catalog()
        if await catalog.current_location(known.identifier) == known.metadata_location:
            return known
        return await self._load(known.identifier)

    async def _load(self, identifier: TableIdentifier) -> LoadedTable:
        catalog = self._catalog = self._catalog or await self._open_catalog()
        try:
            return await catalog.load(identifier)
        except NoSuchTableError as error:
            hint = await _hint(catalog, identifier)
            raise NoSuchTableError(f"{error} in {self._properties}: {hint}") from error

    async def _open_catalog(self) -> Catalog:
        """Open the catalog. It stays open: what it vends for the files of a table has an end."""
        storage, world = self._storage, self._world
        with named_setting(f"catalog.{self._properties.address}"):
            return await open_catalog(
                self._properties, storage, world, create=False, vended=storage
            )


@contextmanager
def open_reader(properties: CatalogProperties) -> Iterator[TableReader]:
    """Open a reader for as long as the block runs; nothing is asked yet."""
    # A factory, so that the loop of the caller's thread stays what it is.
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        yield from _opened(properties, runner)


@contextmanager
def open_shared_reader(properties: CatalogProperties) -> Iterator[TableReader]:
    """Open a reader as `open_reader`, for calls from any threads, also where a loop runs."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, name="frazil-reader", daemon=True)
    thread.start()
    try:
        yield from _opened(properties, _ThreadRunner(loop))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _opened(properties: CatalogProperties, runner: Runner) -> Iterator[TableReader]:
    world = RealWorld()
    own = open_storage(properties, world)
    reader = TableReader(properties, runner, open_table_storage(own, properties, world), world)
    try:
        yield reader
    finally:
        reader.close()


class _ThreadRunner:
    """Runs coroutines in a loop that another thread runs. A `Runner`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def run(self, coroutine: Coroutine[Any, Any, _T], /) -> _T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


# --- A table that is not there -------------------------------------------------------------------


async def _hint(catalog: Catalog, identifier: TableIdentifier) -> str:
    """Return names that do exist: one that is near, else those of the same namespace."""
    try:
        return await _known_names(catalog, identifier)
    except FrazilError as error:
        return f"what it has cannot be listed: {error}"


async def _known_names(catalog: Catalog, identifier: TableIdentifier) -> str:
    namespace = ".".join(identifier.namespace)
    try:
        listed = await catalog.list_tables(identifier.namespace)
        # A name may be reserved for a table that is not there yet.
        tables = [str(one) for one in listed if one != identifier]
    except NoSuchNamespaceError:
        tables = []
    if tables:
        return did_you_mean(str(identifier), tables) or f"`{namespace}` has {_listed(tables)}"
    namespaces = [".".join(one) for one in await catalog.list_namespaces()]
    if not namespaces:
        return "it has no table yet; `frazil table create` makes one"
    return f"`{namespace}` has no table; the catalog has the namespaces {_listed(namespaces)}"


def _listed(names: Sequence[str]) -> str:
    """List the first names, and how many there are beside."""
    shown = ", ".join(f"`{name}`" for name in names[:_NAMES_MAX])
    more = len(names) - _NAMES_MAX
    return f"{shown} and {more} more" if more > 0 else shown
