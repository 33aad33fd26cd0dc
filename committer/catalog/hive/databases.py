"""Namespaces of a Hive metastore: its databases, and the parameters of each."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from committer.catalog.hive import hive_layout as layout
from committer.catalog.hive.metastore import Metastore, asked, frazil_error
from committer.catalog.hive.thrift_connection import LostAnswerError, MetastoreError
from committer.catalog.hive.thrift_values import Struct
from committer.catalog.namespaces import (
    Namespace,
    check_property_names,
    join_namespace,
    no_namespace,
    not_empty,
)
from committer.errors import UnsupportedError

_DEFAULT = "default"


class Databases:
    """The databases of one metastore. `warehouse`: where the folders of new ones are; empty: the
    metastore decides.
    """

    def __init__(self, metastore: Metastore, *, warehouse: str) -> None:
        self._metastore = metastore
        self._warehouse = warehouse

    async def find(self, namespace: Namespace) -> Struct | None:
        """Return a database; None also for a namespace that can be none."""
        join_namespace(namespace)
        try:
            name = layout.database_of(namespace)
        except UnsupportedError:
            return None
        return await asked(self._metastore.database(name), f"database {name}")

    async def require(self, namespace: Namespace) -> Struct:
        """Return a database. Absent: `NoSuchNamespaceError`."""
        found = await self.find(namespace)
        if found is None:
            raise no_namespace(namespace)
        return found

    async def create(self, namespace: Namespace) -> None:
        name = layout.database_of(namespace)
        if await self.find(namespace) is not None:
            return
        folder = f"{self._warehouse}/{name}.db" if self._warehouse else ""
        try:
            await self._metastore.create_database(layout.new_database(name, folder))
        except (MetastoreError, LostAnswerError) as error:
            if await self.find(namespace) is None:
                raise frazil_error(error, f"creation of database {name}") from error

    async def drop(self, namespace: Namespace) -> None:
        await self.require(namespace)
        name = layout.database_of(namespace)
        if name == _DEFAULT:
            raise UnsupportedError("namespace default: a Hive metastore keeps it for itself")
        try:
            await self._metastore.drop_database(name)
        except (MetastoreError, LostAnswerError) as error:
            # Gone now: by a rival, or by this call, whose answer was lost.
            await self.require(namespace)
            if isinstance(error, MetastoreError) and error.is_refused:
                raise not_empty(namespace) from error
            raise frazil_error(error, f"removal of database {name}") from error

    async def all(self) -> list[Namespace]:
        names = await asked(self._metastore.databases(), "list of the databases")
        return [(name,) for name in sorted(names)]

    async def properties(self, namespace: Namespace) -> dict[str, str]:
        return layout.database_parameters(await self.require(namespace))

    async def set_properties(
        self, namespace: Namespace, properties: Mapping[str, str], removed: Collection[str]
    ) -> None:
        check_property_names((*properties, *removed))
        layout.check_database_parameters(properties)
        database = await self.require(namespace)
        kept = {
            key: value
            for key, value in layout.database_parameters(database).items()
            if key not in removed
        }
        changed = layout.with_database_parameters(database, kept | dict(properties))
        name = layout.database_of(namespace)
        try:
            await self._metastore.alter_database(name, changed)
        except (MetastoreError, LostAnswerError) as error:
            await self.require(namespace)
            raise frazil_error(error, f"change of database {name}") from error

    async def folder(self, namespace: Namespace) -> str | None:
        found = await self.find(namespace)
        return layout.folder_of(found) or None if found is not None else None
