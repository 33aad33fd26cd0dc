"""A catalog in a SQL database, in the layout of Java's JdbcCatalog and PyIceberg's SqlCatalog.

One UPDATE whose condition is the base's metadata location is the swap; the number of rows that it
changed decides. Swaps of several tables are as many UPDATEs in one transaction. Every call is one
hop to a worker thread. Statements live in `sql_layout`, connections in `sql_engine`, the meaning of
errors in `sql_errors`.

**The one line that matters is COMMIT.** Before it is sent nothing can have been applied, since the
database rolls back what was not committed: so any error up to there is raised (or, if the change
itself was refused, `Rejected`). From the moment it is sent until it has returned, the outcome is in
doubt, whatever error the driver raises: `Unknown`. A serialization failure before that line is a
`Conflict`: the database rolled back, because another transaction came first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Literal, TypeVar

from sqlalchemy import Connection, Engine, Executable
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from committer.catalog.namespaces import (
    Namespace,
    absent_if_unsupported,
    join_namespace,
    name_taken,
    no_table,
)
from committer.catalog.pointer_catalog import PointerCatalog
from committer.catalog.sql.sql_engine import (
    connected,
    open_engine,
    reading,
    threads,
    writing,
)
from committer.catalog.sql.sql_errors import Fault, cause_of, fault_of, frazil_error
from committer.catalog.sql.sql_layout import Statements, require_names_fit
from committer.catalog.sql.sql_namespaces import SqlNamespaces
from committer.catalog.sql.sql_probe import check_layout, probe_swap
from committer.catalog.staging import read_registered
from committer.catalog.swap_groups import require_group
from committer.errors import (
    CatalogUnavailableError,
    InvalidMetadataError,
)
from committer.place_threads import NoAnswerError, PlaceThreads
from committer.ports.catalog_capabilities import CatalogCapabilities
from committer.ports.pointer_swap import (
    Committed,
    Conflict,
    GroupAnswer,
    GroupCommitted,
    GroupConflict,
    LoadedTable,
    Rejected,
    Swap,
    SwapAnswer,
    Unknown,
)
from committer.ports.storage import Storage
from committer.request.table_identifier import TableIdentifier

SchemaVersion = Literal["V0", "V1"]

_T = TypeVar("_T")


class SqlCatalog(PointerCatalog):
    """The `Catalog` port on one catalog name of one database.

    A creating or dropping call whose COMMIT was in doubt raises `CatalogUnavailableError` although
    it may have been applied; `create_table` and `create_namespace` may be repeated as they are.
    """

    capabilities = CatalogCapabilities(kind="SQL database", has_transactions=True)

    def __init__(
        self,
        *,
        engine: Engine,
        executor: PlaceThreads,
        statements: Statements,
        storage: Storage,
    ) -> None:
        super().__init__(storage)
        self._engine = engine
        self._reader = reading(engine)
        self._writer = writing(engine)
        self._executor = executor
        self._statements = statements
        self._namespaces = SqlNamespaces(statements)

    @classmethod
    async def open(
        cls,
        *,
        uri: str,
        name: str,
        storage: Storage,
        driver_properties: Mapping[str, str] | None = None,
        schema_version: SchemaVersion = "V1",
        create: bool = True,
    ) -> SqlCatalog:
        """Connect. `create`: make a file or the layout's tables where they are missing, these of
        `schema_version`; else the database is left as it is. `driver_properties`: see
        `sql_address.database_url`.

        Errors: `SettingsError` for a wrong address or server, a missing driver or folder;
        `AccessError` where the tables are missing and may not be made; `NotFoundError` where they
        are not to be made.
        """
        engine = open_engine(uri, driver_properties=driver_properties, create=create)
        return await cls.on_engine(
            engine=engine, name=name, storage=storage, schema_version=schema_version, create=create
        )

    @classmethod
    async def on_engine(
        cls,
        *,
        engine: Engine,
        name: str,
        storage: Storage,
        schema_version: SchemaVersion = "V1",
        create: bool = True,
    ) -> SqlCatalog:
        """Open a catalog as `open`, on an engine that `sql_engine.open_engine` built."""
        executor = PlaceThreads("database of the catalog", threads_max=threads(engine))
        with_type = schema_version == "V1"
        try:
            has_type = await _hop(
                executor, lambda: check_layout(engine, create=create, with_type=with_type)
            )
        except BaseException:
            await _release(engine, executor)
            raise
        statements = Statements(name, has_type=has_type)
        return cls(engine=engine, executor=executor, statements=statements, storage=storage)

    async def current_location(self, identifier: TableIdentifier) -> str:
        with absent_if_unsupported():
            rows = await self._read(self._statements.location, _row(identifier))
        if not rows:
            raise no_table(identifier)
        if rows[0] is None:
            raise InvalidMetadataError(f"table {identifier}: the catalog names no metadata file")
        return rows[0]

    async def swap(self, swap: Swap) -> SwapAnswer:
        match await self._send_swaps((swap,)):
            case GroupCommitted((table,)):
                return Committed(table)
            case Rejected() | Unknown() as answer:
                return answer
            case _:
                return Conflict()

    async def swap_together(self, swaps: Sequence[Swap]) -> GroupAnswer:
        require_group(swaps, self.capabilities)
        return await self._send_swaps(swaps)

    async def _send_swaps(self, swaps: Sequence[Swap]) -> GroupAnswer:
        try:
            return await self._executor.run("swap", lambda: self._swap(swaps))
        except NoAnswerError as error:
            if error.is_begun:
                return Unknown(str(error))
            raise CatalogUnavailableError(str(error)) from error

    def _swap(self, swaps: Sequence[Swap]) -> GroupAnswer:
        commit_sent = False
        try:
            with self._writer.connect() as connection:
                # In one order, so that two groups never wait for each other's rows.
                for swap in sorted(swaps, key=lambda one: one.base.identifier):
                    if connection.execute(self._statements.swap, _pointer(swap)).rowcount != 1:
                        return GroupConflict((swap.base.identifier,))
                commit_sent = True
                connection.commit()
        except Exception as error:
            if commit_sent:
                return Unknown(cause_of(error))
            if not isinstance(error, SQLAlchemyError):
                raise
            match fault_of(error):
                case Fault.OVERTAKEN:
                    return GroupConflict()
                case Fault.REFUSED:
                    return Rejected(cause_of(error))
            raise frazil_error(error) from error
        return GroupCommitted(tuple(swap.table for swap in swaps))

    async def create_table(self, table: LoadedTable) -> None:
        require_names_fit(_row(table.identifier), table.metadata_location)
        async with self._first_metadata(table):
            await _hop(self._executor, lambda: self._insert(table))

    def _insert(self, table: LoadedTable) -> None:
        parameters = _row(table.identifier)

        def insert(connection: Connection) -> None:
            self._namespaces.require(connection, table.identifier.namespace)
            location = {"location": table.metadata_location}
            connection.execute(self._statements.create, parameters | location)

        try:
            self._write(insert)
        except IntegrityError as error:
            # The row is this client's own if an earlier call's answer was lost.
            held = self._select(self._statements.location, parameters)
            if held != [table.metadata_location]:
                raise name_taken(table.identifier) from error

    async def drop_table(self, identifier: TableIdentifier) -> None:
        parameters = _row(identifier)

        def drop(connection: Connection) -> int:
            return connection.execute(self._statements.drop, parameters).rowcount

        if not await _hop(self._executor, lambda: self._write(drop)):
            raise no_table(identifier)

    async def rename_table(self, identifier: TableIdentifier, to: TableIdentifier) -> None:
        parameters = _row(identifier) | _new_name(to)
        require_names_fit(_row(to))

        def rename(connection: Connection) -> None:
            self._namespaces.require(connection, to.namespace)
            if connection.execute(self._statements.rename, parameters).rowcount != 1:
                raise no_table(identifier)
            if to == identifier:
                raise name_taken(to)

        def rename_once() -> None:
            try:
                self._write(rename)
            except IntegrityError as error:
                raise name_taken(to) from error

        await _hop(self._executor, rename_once)

    async def register_table(
        self, identifier: TableIdentifier, metadata_location: str
    ) -> LoadedTable:
        require_names_fit(_row(identifier), metadata_location)
        table = await read_registered(self._storage, identifier, metadata_location)
        await _hop(self._executor, lambda: self._insert(table))
        return table

    async def list_tables(self, namespace: Namespace) -> list[TableIdentifier]:
        parameters = {"namespace_text": join_namespace(namespace)}

        def names(connection: Connection) -> list[str]:
            found = connection.scalars(self._statements.list_tables, parameters).all()
            if not found:
                self._namespaces.require(connection, namespace)
            return sorted(found)

        found = await _hop(self._executor, lambda: self._connected(names))
        return [TableIdentifier(namespace, name) for name in found]

    async def create_namespace(self, namespace: Namespace) -> None:
        require_names_fit({"namespace_text": join_namespace(namespace)})
        try:
            await self._change_namespaces(partial(self._namespaces.create, namespace=namespace))
        except IntegrityError:
            return  # another connection created it in this moment

    async def drop_namespace(self, namespace: Namespace) -> None:
        await self._change_namespaces(partial(self._namespaces.drop, namespace=namespace))

    async def list_namespaces(self) -> list[Namespace]:
        return await _hop(self._executor, lambda: self._connected(self._namespaces.all))

    async def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        properties = partial(self._namespaces.properties, namespace=namespace)
        return await _hop(self._executor, lambda: self._connected(properties))

    async def set_namespace_properties(
        self,
        namespace: Namespace,
        properties: Mapping[str, str],
        *,
        removed: Collection[str] = (),
    ) -> None:
        change = partial(self._namespaces.change, properties=properties, removed=removed)
        try:
            await self._change_namespaces(partial(change, namespace=namespace))
        except IntegrityError as error:
            what = f"namespace {join_namespace(namespace)}"
            raise CatalogUnavailableError(f"{what}: others change it, too; try again") from error

    async def _change_namespaces(self, change: Callable[[Connection], None]) -> None:
        await _hop(self._executor, lambda: self._write(change))

    async def default_location(self, namespace: Namespace) -> str | None:
        parameters = {"namespace_text": join_namespace(namespace)}
        found = await self._read(self._statements.default_location, parameters)
        return found[0] or None if found else None

    async def probe(self) -> None:
        await _hop(self._executor, lambda: probe_swap(self._writer))

    async def close(self) -> None:
        await _release(self._engine, self._executor)

    async def _read(self, statement: Executable, parameters: dict[str, str]) -> list[str | None]:
        return await _hop(self._executor, lambda: self._select(statement, parameters))

    def _select(self, statement: Executable, parameters: dict[str, str]) -> list[str | None]:
        return self._connected(
            lambda connection: list(connection.execute(statement, parameters).scalars())
        )

    def _connected(self, work: Callable[[Connection], _T]) -> _T:
        try:
            with connected(self._reader) as connection:
                return work(connection)
        except SQLAlchemyError as error:
            raise frazil_error(error) from error

    def _write(self, work: Callable[[Connection], _T]) -> _T:
        """Run one transaction. `IntegrityError` is the caller's to judge."""
        try:
            with self._writer.begin() as connection:
                return work(connection)
        except IntegrityError:
            raise
        except SQLAlchemyError as error:
            raise frazil_error(error) from error


async def _hop(executor: PlaceThreads, work: Callable[[], _T]) -> _T:
    """Work in a thread. Errors: also `CatalogUnavailableError` where it takes too long, although it
    may take effect.
    """
    try:
        return await executor.run("call", work)
    except NoAnswerError as error:
        raise CatalogUnavailableError(str(error)) from error


async def _release(engine: Engine, executor: PlaceThreads) -> None:
    # `dispose` runs here and not in the executor, so that a second call finds nothing to do. Beside
    # a call that hangs it would hang, too.
    await asyncio.to_thread(executor.shutdown)
    if executor.is_idle:
        engine.dispose()


def _row(identifier: TableIdentifier) -> dict[str, str]:
    return {
        "namespace_text": join_namespace(identifier.namespace),
        "name_text": identifier.name,
    }


def _pointer(swap: Swap) -> dict[str, str]:
    """Return the parameters of a swap's statement."""
    locations = {"base": swap.base.metadata_location, "location": swap.metadata_location}
    return _row(swap.base.identifier) | locations


def _new_name(identifier: TableIdentifier) -> dict[str, str]:
    return {
        "new_namespace_text": join_namespace(identifier.namespace),
        "new_name_text": identifier.name,
    }
