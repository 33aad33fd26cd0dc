"""Catalogs of each kind, on the server of each, between which a table can move."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from committer.catalog.dynamodb.dynamodb_catalog import DynamoDbCatalog
from committer.catalog.glue.glue_catalog import GlueCatalog
from committer.catalog.hive.hive_catalog import HiveCatalog
from committer.catalog.rest.client.rest_options import RestOptions
from committer.catalog.rest.rest_catalog import RestCatalog
from committer.catalog.sql.sql_catalog import SqlCatalog
from committer.ports.catalog import Catalog
from committer.ports.storage import Storage
from committer.real_world import RealWorld
from committer.service.admin.catalog_side import CatalogSide
from committer.storage.disk.local import LocalStorage
from tests.support.catalogs.hive_harness import empty

KINDS = ("sqlite", "postgres", "dynamodb", "rest", "hive", "glue")


async def open_kind(
    kind: str, folder: Path, fixture: Callable[[str], Any], storage: Storage
) -> Catalog:
    """Open an empty catalog. `fixture` returns that of a server, by its name."""
    match kind:
        case "sqlite":
            uri = f"sqlite:///{folder / 'catalog.db'}"
            return await SqlCatalog.open(uri=uri, name="sqlite", storage=storage)
        case "postgres":
            uri = fixture("postgres_server").new_schema()
            return await SqlCatalog.open(uri=uri, name="postgres", storage=storage)
        case "dynamodb":
            server = fixture("dynamodb_server")
            return await DynamoDbCatalog.open(
                table_name=server.new_table_name(),
                storage=storage,
                options=server.options,
                world=RealWorld(),
            )
        case "glue":
            options = fixture("moto_server").new_account()
            return await GlueCatalog.open(storage=storage, options=options, world=RealWorld())
        case "hive":
            empty(fixture("hive_server"))
            return await HiveCatalog.open(
                uri=fixture("hive_server").uri,
                storage=storage,
                world=RealWorld(),
                locks_by_default=False,
            )
        case "rest":
            options = RestOptions(uri=fixture("rest_server").url)
            catalog = await RestCatalog.open(options=options, storage=storage, world=RealWorld())
            await drop_all(catalog)
            return catalog
    raise AssertionError(kind)


async def drop_all(catalog: Catalog) -> None:
    for namespace in await catalog.list_namespaces():
        for table in await catalog.list_tables(namespace):
            await catalog.drop_table(table)


@asynccontextmanager
async def open_sides(
    kinds: tuple[str, ...], folder: Path, fixture: Callable[[str], Any]
) -> AsyncIterator[list[CatalogSide]]:
    """Open catalogs that share a storage, each with an inbox of its own."""
    storage = LocalStorage()
    sides: list[CatalogSide] = []
    try:
        for kind in kinds:
            catalog = await open_kind(kind, folder, fixture, storage)
            root = f"file://{folder}/{kind}-requests"
            sides.append(CatalogSide(kind, catalog, storage, storage, root))
        yield sides
    finally:
        for side in sides:
            await side.catalog.close()
        await storage.close()
