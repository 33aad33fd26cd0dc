"""A catalog in a Hive metastore, in the layout of Iceberg Java's HiveCatalog.

One `alter_table` with an expected parameter is the swap: the metastore (2.3.10, 4.0.1 and later)
applies it only while `metadata_location` is the base's. The alter replaces the whole entry, so the
entry is read right before, and what this client does not know goes back as it came.

A refused alter is no answer by itself: the metastore resends inside, so its own first attempt may
be what it found. The pointer is read again, and if others have moved it since, the metadata's log.

Calls are in `metastore`, entries in `hive_layout`. A call is one hop to a worker thread, sent once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager

from committer.catalog.hive import hive_layout as layout
from committer.catalog.hive.databases import Databases
from committer.catalog.hive.hive_probe import probe
from committer.catalog.hive.metastore import Metastore, asked, frazil_error, says_modified
from committer.catalog.hive.pool import ConnectionPool
from committer.catalog.hive.table_lock import HeldLock, TableLocks, wants_lock
from committer.catalog.hive.thrift_connection import LostAnswerError, MetastoreError
from committer.catalog.hive.thrift_values import Struct
from committer.catalog.namespaces import (
    Namespace,
    absent_if_unsupported,
    name_taken,
    no_table,
)
from committer.catalog.pointer_catalog import PointerCatalog
from committer.catalog.refused_swap import judge_by_load
from committer.catalog.staging import read_registered, write_first_metadata
from committer.errors import (
    CatalogUnavailableError,
    FrazilError,
    NoSuchTableError,
    UnsupportedError,
)
from committer.ports.catalog_capabilities import CatalogCapabilities
from committer.ports.pointer_swap import (
    Committed,
    Conflict,
    LoadedTable,
    Rejected,
    Swap,
    SwapAnswer,
    Unknown,
)
from committer.ports.storage import Storage
from committer.ports.world import World
from committer.request.table_identifier import TableIdentifier

# Each round needs another commit between the read and the alter.
_ROUNDS_MAX = 10


class HiveCatalog(PointerCatalog):
    """The `Catalog` port on one metastore.

    A creating, renaming or dropping call whose answer was lost raises `CatalogUnavailableError`
    although it may have been applied; `create_table`, `register_table` and `create_namespace` may
    be repeated as they are.
    """

    capabilities = CatalogCapabilities(
        kind="Hive metastore",
        namespace_levels_max=1,
        property_key_chars_max=layout.KEY_CHARS_MAX,
    )

    def __init__(
        self,
        *,
        pool: ConnectionPool,
        storage: Storage,
        world: World,
        warehouse: str,
        locks_by_default: bool,
        allow_unfenced_locks: bool,
        lock_wait_s_max: float,
    ) -> None:
        super().__init__(storage)
        self._metastore = Metastore(pool)
        self._world = world
        self._databases = Databases(self._metastore, warehouse=warehouse)
        self._locks_by_default = locks_by_default
        self._allow_unfenced_locks = allow_unfenced_locks
        self._locks = TableLocks(pool, world, wait_s_max=lock_wait_s_max)

    @classmethod
    async def open(
        cls,
        *,
        uri: str,
        storage: Storage,
        world: World,
        warehouse: str = "",
        ugi: str = "",
        locks_by_default: bool = True,
        allow_unfenced_locks: bool = False,
        answer_s_max: float = 60.0,
        lock_wait_s_max: float = 30.0,
    ) -> HiveCatalog:
        """Connect. `uri`: `thrift://host:port`, several of one metastore by commas.

        `warehouse`: where the folders of new databases are. `locks_by_default`: whether a table
        without `engine.hive.lock-enabled` is committed to under the metastore's lock, as Java does.
        `allow_unfenced_locks`: a metastore that ignores the expected parameter is good enough; all
        commits hold the lock then. Errors: `SettingsError`; `CatalogUnavailableError`.
        """
        pool = ConnectionPool(uri, ugi=ugi, answer_s_max=answer_s_max)
        try:
            await pool.call("get_all_databases", {})
        except LostAnswerError as error:
            await pool.close()
            raise CatalogUnavailableError(
                f"catalog uri `{uri}`: the server there gives no answer of a Hive metastore"
                f" ({error}); one that wants Kerberos, TLS or HTTP is not supported"
            ) from error
        except MetastoreError as error:
            await pool.close()
            raise frazil_error(error, "list of the databases") from error
        except BaseException:
            await pool.close()
            raise
        return cls(
            pool=pool,
            storage=storage,
            world=world,
            warehouse=warehouse,
            locks_by_default=locks_by_default,
            allow_unfenced_locks=allow_unfenced_locks,
            lock_wait_s_max=lock_wait_s_max,
        )

    async def current_location(self, identifier: TableIdentifier) -> str:
        return layout.location_of(identifier, await self._entry(identifier))

    async def _entry(self, identifier: TableIdentifier) -> Struct:
        with absent_if_unsupported():
            layout.names_of(identifier)
        entry = await self._find(identifier)
        if entry is None:
            raise no_table(identifier)
        return entry

    async def _find(self, identifier: TableIdentifier) -> Struct | None:
        names = layout.names_of(identifier)
        return await asked(self._metastore.table(*names), f"table {identifier}")

    async def swap(self, swap: Swap) -> SwapAnswer:
        """Swap by a read and an alter, under the metastore's lock where the table is one of those.

        `Rejected` only for a property that the metastore has no room for, before anything is sent.
        """
        if refusal := _too_long(swap.metadata.properties):
            return Rejected(refusal)
        identifier = swap.base.identifier
        async with self._locked(identifier, swap.base.metadata.properties) as lock:
            try:
                entry = await self._entry(identifier)
                location = layout.location_of(identifier, entry)
            except NoSuchTableError:
                return Conflict()
            if location != swap.base.metadata_location:
                return Conflict()
            answer = await self._alter(swap, entry)
            if lock and isinstance(answer, Unknown):
                lock.keep()
            return answer

    @asynccontextmanager
    async def _locked(
        self, identifier: TableIdentifier, properties: Mapping[str, str]
    ) -> AsyncIterator[HeldLock | None]:
        """Hold the metastore's lock where the table, by these properties, is one of those."""
        if not wants_lock(
            identifier,
            properties,
            by_default=self._locks_by_default,
            is_needed=self._allow_unfenced_locks,
        ):
            yield None
            return
        # Without a fence, a call that was lost may be applied over the next: it must not follow
        # before the lock has expired.
        takes_over = not self._allow_unfenced_locks
        names = layout.names_of(identifier)
        async with self._locks.held(*names, takes_over=takes_over) as lock:
            yield lock

    async def _alter(self, swap: Swap, entry: Struct) -> SwapAnswer:
        identifier, base = swap.base.identifier, swap.base
        names = layout.names_of(identifier)
        changed = layout.swapped_entry(entry, base.metadata, swap.metadata, swap.metadata_location)
        try:
            await self._metastore.alter(*names, changed, base.metadata_location)
        except LostAnswerError as error:
            return Unknown(str(error))
        except MetastoreError as error:
            if says_modified(error):
                # The metastore sends an alter to its database again: its own success may have
                # refused it.
                return await judge_by_load(swap, error.message, self.load)
            if not error.is_refused:
                return Unknown(str(error))
            if await self._find(identifier) is None:
                return Conflict()
            raise frazil_error(error, f"change of table {identifier}") from error
        return Committed(swap.table)

    async def create_table(self, table: LoadedTable) -> None:
        _refuse_long_keys(table)
        layout.names_of(table.identifier)
        await self._databases.require(table.identifier.namespace)
        created = await write_first_metadata(self._storage, table)
        try:
            await self._insert(table)
        except FrazilError as error:
            # Surely not applied, and no other process knows a file that this call wrote.
            if created and isinstance(error.__cause__, MetastoreError):
                await self._storage.delete((table.metadata_location,))
            raise

    async def register_table(
        self, identifier: TableIdentifier, metadata_location: str
    ) -> LoadedTable:
        layout.names_of(identifier)
        await self._databases.require(identifier.namespace)
        table = await read_registered(self._storage, identifier, metadata_location)
        _refuse_long_keys(table)
        await self._insert(table)
        return table

    async def _insert(self, table: LoadedTable) -> None:
        """Create the entry. Whatever the answer to that: if one with our pointer is there, it is
        ours.
        """
        identifier, location = table.identifier, table.metadata_location
        now_s = self._world.now_ms() // 1000
        entry = layout.new_entry(identifier, table.metadata, location, now_s)
        try:
            await self._metastore.create_table(entry)
        except (MetastoreError, LostAnswerError) as error:
            found = await self._find(identifier)
            if found is None:
                await self._databases.require(identifier.namespace)
                raise frazil_error(error, f"creation of table {identifier}") from error
            if layout.parameters_of(found).get(layout.LOCATION) != location:
                raise name_taken(identifier) from error

    async def drop_table(self, identifier: TableIdentifier) -> None:
        layout.location_of(identifier, await self._entry(identifier))
        drop = self._metastore.drop_table(*layout.names_of(identifier))
        try:
            await asked(drop, f"removal of table {identifier}")
        except CatalogUnavailableError:
            # A rival's drop, or this client's own whose answer was lost.
            await self._entry(identifier)
            raise

    async def rename_table(self, identifier: TableIdentifier, to: TableIdentifier) -> None:
        """Rename by a read and an alter of the whole entry, so under the lock as `swap`."""
        layout.names_of(to)
        properties = layout.parameters_of(await self._entry(identifier))
        async with self._locked(identifier, properties) as lock:
            for _ in range(_ROUNDS_MAX):
                entry = await self._entry(identifier)
                await self._databases.require(to.namespace)
                if await self._find(to) is not None:
                    raise name_taken(to)
                if await self._rename(identifier, to, entry, lock):
                    return
        raise CatalogUnavailableError(
            f"table {identifier}: it changes faster than it can be renamed"
        )

    async def _rename(
        self, identifier: TableIdentifier, to: TableIdentifier, entry: Struct, lock: HeldLock | None
    ) -> bool:
        """Rename an entry; False if it was changed since it was read."""
        names, location = layout.names_of(identifier), layout.location_of(identifier, entry)
        try:
            await self._metastore.alter(*names, layout.renamed_entry(entry, to), location)
        except MetastoreError as error:
            if says_modified(error):
                return False
            # The loop finds out whether the old name is gone, or the new one taken.
            if error.is_refused and await self._has_moved(identifier, to):
                return False
            raise frazil_error(error, f"rename of table {identifier}") from error
        except LostAnswerError as error:
            if lock:
                lock.keep()
            raise frazil_error(error, f"rename of table {identifier}") from error
        return True

    async def _has_moved(self, identifier: TableIdentifier, to: TableIdentifier) -> bool:
        """Return whether the old name is free, or the new one taken."""
        return await self._find(identifier) is None or await self._find(to) is not None

    async def list_tables(self, namespace: Namespace) -> list[TableIdentifier]:
        await self._databases.require(namespace)
        database = layout.database_of(namespace)
        names = await asked(self._metastore.table_names(database), f"tables of {database}")
        return [TableIdentifier(namespace, name) for name in sorted(names)]

    async def create_namespace(self, namespace: Namespace) -> None:
        await self._databases.create(namespace)

    async def drop_namespace(self, namespace: Namespace) -> None:
        await self._databases.drop(namespace)

    async def list_namespaces(self) -> list[Namespace]:
        return await self._databases.all()

    async def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        return await self._databases.properties(namespace)

    async def set_namespace_properties(
        self,
        namespace: Namespace,
        properties: Mapping[str, str],
        *,
        removed: Collection[str] = (),
    ) -> None:
        await self._databases.set_properties(namespace, properties, removed)

    async def default_location(self, namespace: Namespace) -> str | None:
        return await self._databases.folder(namespace)

    async def probe(self) -> None:
        await probe(
            self._metastore,
            self._locks,
            self._world,
            allow_unfenced_locks=self._allow_unfenced_locks,
        )

    async def close(self) -> None:
        await self._metastore.pool.close()


def _too_long(properties: Iterable[str]) -> str:
    """Return a sentence if the metastore has no room for the name of a property; else nothing."""
    for key in properties:
        if len(key) > layout.KEY_CHARS_MAX:
            return (
                f"the table property `{key}` has a name of {len(key)} characters, and a Hive"
                f" metastore takes {layout.KEY_CHARS_MAX}"
            )
    return ""


def _refuse_long_keys(table: LoadedTable) -> None:
    if refusal := _too_long(table.metadata.properties):
        raise UnsupportedError(f"table {table.identifier}: {refusal}")
