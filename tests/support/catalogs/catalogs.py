"""Every catalog adapter with its back end, able to meet each fault, for the contract suite."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import pytest
from _pytest.mark.structures import ParameterSet

from committer.catalog.dynamodb.dynamodb_catalog import DynamoDbCatalog
from committer.catalog.sql.sql_catalog import SqlCatalog
from committer.catalog.sql.sql_engine import open_engine
from committer.ports.catalog import Catalog
from committer.ports.pointer_swap import LoadedTable
from committer.real_world import RealWorld
from tests.support.catalogs.files_harness import FilesHarness
from tests.support.catalogs.glue_harness import GlueHarness
from tests.support.catalogs.hive_harness import HiveHarness
from tests.support.catalogs.http_faults import ProxiedHarness
from tests.support.catalogs.interfered_storage import InterferedFiles, InterferedStorage
from tests.support.catalogs.mariadb_harness import MariaDbHarness
from tests.support.catalogs.plain_namespaces import PlainNamespaces
from tests.support.catalogs.postgres_harness import PostgresHarness
from tests.support.catalogs.rest_harness import RestHarness
from tests.support.catalogs.s3_tables_harness import S3TablesHarness
from tests.support.catalogs.sql_faults import SqlFaults
from tests.support.faults.faulty_catalog import Fault, FaultyCatalog
from tests.support.memory.memory_catalog import MemoryCatalog
from tests.support.servers.dynamodb_server import DynamoDbServer
from tests.support.servers.http_proxy import HttpProxy


class CatalogHarness(Protocol):
    """One back end, and a client of it. `warehouse`: where its tables lie."""

    @property
    def warehouse(self) -> str: ...

    @property
    def catalog(self) -> Catalog: ...

    @property
    def storage(self) -> InterferedStorage | InterferedFiles: ...

    def befall(self, fault: Fault) -> AbstractContextManager[None]:
        """Apply the fault to the one swap that is made inside the block."""

    async def land_late(self) -> None:
        """Land every swap that was held back."""

    async def another(self) -> Catalog:
        """Open a second client of the same back end."""

    def own_properties(self, namespace: str) -> dict[str, str]:
        """Return the properties that the back end gives to every namespace."""

    def default_location(self, namespace: str) -> str | None:
        """Return the folder that the back end gives to every namespace."""

    def first_location(self, table: LoadedTable) -> str:
        """Return where the first metadata file of a new table is, if the catalog made it so."""

    async def close(self) -> None: ...


class MemoryHarness(PlainNamespaces):
    def __init__(self) -> None:
        self.storage = InterferedStorage()
        self._faulty = FaultyCatalog(MemoryCatalog(storage=self.storage))
        self.catalog: Catalog = self._faulty

    @contextmanager
    def befall(self, fault: Fault) -> Iterator[None]:
        self._faulty.plan(fault)
        yield

    async def land_late(self) -> None:
        await self._faulty.land_late()

    async def another(self) -> Catalog:
        return self._faulty.inner

    async def close(self) -> None:
        await self.catalog.close()
        await self.storage.close()


class SqliteHarness(PlainNamespaces):
    """A database file."""

    def __init__(
        self, *, path: Path, catalog: Catalog, storage: InterferedStorage, faults: SqlFaults
    ) -> None:
        self.path = path
        self.catalog = catalog
        self.storage = storage
        self.faults = faults
        self._others: list[Catalog] = []

    @classmethod
    async def open(cls, path: Path) -> SqliteHarness:
        storage = InterferedStorage()
        engine = open_engine(f"sqlite:///{path}")
        faults = SqlFaults(engine, path)
        catalog = await SqlCatalog.on_engine(engine=engine, name="frazil", storage=storage)
        return cls(path=path, catalog=catalog, storage=storage, faults=faults)

    def befall(self, fault: Fault) -> AbstractContextManager[None]:
        return self.faults.befall(fault)

    async def land_late(self) -> None:
        self.faults.land_late()

    async def another(self) -> Catalog:
        uri = f"sqlite:///{self.path}"
        other = await SqlCatalog.open(uri=uri, name="frazil", storage=self.storage)
        self._others.append(other)
        return other

    async def close(self) -> None:
        for catalog in (*self._others, self.catalog):
            await catalog.close()
        await self.storage.close()


def make_schema_v0(path: Path) -> None:
    """Create the tables as clients made them before rows had a type."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(
            "CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL, "
            "table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL, "
            "metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), "
            "PRIMARY KEY (catalog_name, table_namespace, table_name))"
        )
        connection.execute(
            "CREATE TABLE iceberg_namespace_properties (catalog_name VARCHAR(255) NOT NULL, "
            "namespace VARCHAR(255) NOT NULL, property_key VARCHAR(255) NOT NULL, "
            "property_value VARCHAR(1000), PRIMARY KEY (catalog_name, namespace, property_key))"
        )


class DynamoDbHarness(PlainNamespaces, ProxiedHarness[DynamoDbCatalog, InterferedStorage]):
    """A DynamoDB table of its own."""

    # Of a swap, alone or in a transaction.
    swap_mark = b"#location = :base"

    def __init__(self, *, proxy: HttpProxy, server: DynamoDbServer) -> None:
        super().__init__(url=server.url, proxy=proxy, storage=InterferedStorage())
        self.table_name = server.new_table_name()
        self._server = server

    @classmethod
    async def open(cls, server: DynamoDbServer) -> DynamoDbHarness:
        proxy = await HttpProxy(server.url).__aenter__()
        harness = cls(proxy=proxy, server=server)
        harness.catalog = await harness.client(proxy.url)
        return harness

    async def client(self, url: str, *, read_timeout_s: float = 20.0) -> DynamoDbCatalog:
        options = replace(self._server.options, endpoint_url=url, read_timeout_s=read_timeout_s)
        return await DynamoDbCatalog.open(
            table_name=self.table_name,
            storage=self.storage,
            options=options,
            world=RealWorld(),
        )


async def open_harness(adapter: str, folder: Path, fixture: Callable[[str], Any]) -> CatalogHarness:
    """Open one of `ADAPTERS`; `v0`: a database whose rows have no type. `fixture` returns that of a
    server, by its name, where the adapter needs one.
    """
    match adapter:
        case "memory":
            return MemoryHarness()
        case "dynamodb":
            return await DynamoDbHarness.open(fixture("dynamodb_server"))
        case "postgres":
            return await PostgresHarness.open(fixture("postgres_server"))
        case "postgres-v0":
            return await PostgresHarness.open(fixture("postgres_server"), schema_version="V0")
        case "mariadb":
            return await MariaDbHarness.open(fixture("mariadb_server"))
        case "glue":
            return await GlueHarness.open(fixture("moto_server"))
        case "s3tables":
            return await S3TablesHarness.open(fixture("moto_server"))
        case "rest":
            return await RestHarness.open(fixture("rest_server"))
        case "hive":
            return await HiveHarness.open(fixture("hive_server"))
        case "hive-2":
            return await HiveHarness.open(fixture("hive_2_server"))
        case "hive-3":
            return await HiveHarness.open(fixture("hive_3_server"), unfenced=True)
        case "files":
            return FilesHarness(folder)
        case "sqlite-v0":
            make_schema_v0(folder / "catalog.db")
    return await SqliteHarness.open(folder / "catalog.db")


def _on_a_server(*adapters: str) -> tuple[ParameterSet, ...]:
    return tuple(pytest.param(one, marks=pytest.mark.server) for one in adapters)


def _on_a_heavy_server(*adapters: str) -> tuple[ParameterSet, ...]:
    marks = (pytest.mark.server, pytest.mark.heavy)
    return tuple(pytest.param(one, marks=marks) for one in adapters)


_SERVERS_OF_SQL = (*_on_a_server("postgres"), *_on_a_heavy_server("postgres-v0", "mariadb"))
_MEMORY_AND_SQL = ("memory", "sqlite", "sqlite-v0", *_SERVERS_OF_SQL)
# They may refuse a change for what it says; the others look at the condition alone.
JUDGING = (*_MEMORY_AND_SQL, *_on_a_server("rest"))
_KEEPING = (*JUDGING, *_on_a_server("dynamodb"))
_HIVE = _on_a_heavy_server("hive", "hive-2")
_S3_TABLES = _on_a_heavy_server("s3tables")
# A layer below may send a swap again: a client library, a gateway, the server to its own back end.
RESENDING = (
    *("memory", "files", *_on_a_server("dynamodb", "glue", "rest")),
    *_on_a_heavy_server("s3tables", "hive"),
)
# Their namespaces have levels, and their names any characters.
NESTED = (*_KEEPING, "files")
# Commits are kept apart by locks alone.
_UNFENCED = _on_a_heavy_server("hive-3")
# Their rename is one step.
RENAMING = (*_KEEPING, *_HIVE, *_S3_TABLES, *_UNFENCED)
FLAT = (*_on_a_server("glue"), *_S3_TABLES, *_HIVE, *_UNFENCED)
WITHOUT_RENAME = _on_a_server("glue")
# A pointer can be removed while the files stay, and be written for files that are there.
REGISTERING = (*_KEEPING, *_on_a_server("glue"), *_HIVE, *_UNFENCED)
WITHOUT_REGISTER = _S3_TABLES
WITH_NAMESPACE_PROPERTIES = REGISTERING
NESTED_WITH_PROPERTIES = _KEEPING
WITHOUT_NAMESPACE_PROPERTIES = WITHOUT_REGISTER
# They hold a pointer to a metadata file that the committer writes, and may compress.
COMPRESSING = (*_MEMORY_AND_SQL, *_on_a_server("dynamodb", "glue"), *_HIVE, *_UNFENCED)
POINTERS = (*COMPRESSING, *_S3_TABLES)
# Their swap has a condition, however late it lands.
FENCED = (*NESTED, *_on_a_server("glue"), *_S3_TABLES, *_HIVE)
# They change several tables together or none; races: also while others do the same.
TOGETHER = _KEEPING
TOGETHER_IN_RACES = (*_MEMORY_AND_SQL, *_on_a_server("dynamodb"))
NOT_TOGETHER = ("files", *_on_a_server("glue"), *_on_a_heavy_server("s3tables", "hive"))
# A table is its folder.
FOLDERS = ("files",)
ADAPTERS = (*NESTED, *FLAT)
