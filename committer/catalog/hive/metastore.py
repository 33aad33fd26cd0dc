"""The calls that the catalog makes to a metastore, each with the fields that it needs.

Errors are those of `pool`; `frazil_error` turns them into Frazil's for a call that changes nothing,
or that may be repeated.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from committer.catalog.hive import hive_layout as layout
from committer.catalog.hive.pool import ConnectionPool
from committer.catalog.hive.thrift_connection import LostAnswerError, MetastoreError
from committer.catalog.hive.thrift_values import (
    Struct,
    boolean,
    get_struct,
    get_texts,
    i16,
    struct,
    text,
)
from committer.errors import AccessError, CatalogUnavailableError, FrazilError

_T = TypeVar("_T")
_MODIFIED = f"The table has been modified. The parameter value for key '{layout.LOCATION}' is"


class Metastore:
    """A metastore by its calls. Names are those that `hive_layout` has checked."""

    def __init__(self, pool: ConnectionPool) -> None:
        self.pool = pool

    async def table(self, database: str, name: str) -> Struct | None:
        """Return a table's entry, None if there is none."""
        request = {1: struct({1: text(database), 2: text(name)})}
        result = await self._found("get_table_req", request)
        return None if result is None else get_struct(get_struct(result, 0), 1)

    async def database(self, name: str) -> Struct | None:
        result = await self._found("get_database", {1: text(name)})
        return None if result is None else get_struct(result, 0)

    async def databases(self) -> list[str]:
        return get_texts(await self.pool.call("get_all_databases", {}), 0)

    async def table_names(self, database: str) -> list[str]:
        """Return the names of a database's Iceberg tables."""
        # Some databases under a metastore cannot compare parameters by `=`.
        wanted = 'hive_filter_field_params__table_type like "ICEBERG"'
        request = {1: text(database), 2: text(wanted), 3: i16(-1)}
        result = await self._found("get_table_names_by_filter", request)
        return [] if result is None else get_texts(result, 0)

    async def create_database(self, database: Struct) -> None:
        await self.pool.call("create_database", {1: struct(database)})

    async def alter_database(self, name: str, database: Struct) -> None:
        await self.pool.call("alter_database", {1: text(name), 2: struct(database)})

    async def drop_database(self, name: str) -> None:
        """Remove an empty database; its folder stays."""
        arguments = {1: text(name), 2: boolean(False), 3: boolean(False)}
        await self.pool.call("drop_database", arguments)

    async def create_table(self, entry: Struct) -> None:
        await self.pool.call("create_table", {1: struct(entry)})

    async def alter(self, database: str, name: str, entry: Struct, base_location: str) -> None:
        """Replace an entry if its pointer is the base's."""
        arguments = {
            1: text(database),
            2: text(name),
            3: struct(entry),
            4: layout.environment(base_location),
        }
        await self.pool.call("alter_table_with_environment_context", arguments)

    async def drop_table(self, database: str, name: str) -> None:
        """Remove an entry; its files stay."""
        arguments = {1: text(database), 2: text(name), 3: boolean(False)}
        await self.pool.call("drop_table", arguments)

    async def _found(self, name: str, arguments: Struct) -> Struct | None:
        """Return the result of a call, None for "not there", which only a fresh connection may say:
        an older one may repeat the error of another call.
        """
        try:
            return await self.pool.call(name, arguments)
        except MetastoreError as error:
            if not error.is_absent:
                raise
        try:
            return await self.pool.call(name, arguments, fresh=True)
        except MetastoreError as error:
            if not error.is_absent:
                raise
        return None


def says_modified(error: MetastoreError) -> bool:
    """Return whether an alter was refused because the pointer was not the expected one."""
    return error.kind == "MetaException" and error.message.startswith(_MODIFIED)


def frazil_error(error: MetastoreError | LostAnswerError, what: str) -> FrazilError:
    """Return the error to raise for a call that was surely not applied, or may be repeated."""
    if isinstance(error, MetastoreError):
        if error.kind == "UnknownMethod":
            return AccessError(
                f"Hive metastore: {what}: this release lacks a call that Frazil needs"
                f" ({error.message}); needed is 2.3.10, 4.0.1 or later"
            )
        if error.is_refused or error.is_invalid:
            return AccessError(f"Hive metastore: {what} was refused: {error.message}")
    return CatalogUnavailableError(f"Hive metastore: {what}: {error}")


async def asked(call: Awaitable[_T], what: str) -> _T:
    """Await a call that changes nothing, or may be repeated. Errors: those of Frazil."""
    try:
        return await call
    except (MetastoreError, LostAnswerError) as error:
        raise frazil_error(error, what) from error
