"""Chooses the adapter of a catalog by its kind, and its arguments by its properties.

`open_rest` has those of a REST catalog. An adapter is imported once its kind is asked for.
"""

from __future__ import annotations

import asyncio
import re

from committer.backends.aws_options import aws_options
from committer.catalog.catalog_properties import CatalogKind, CatalogProperties
from committer.errors import NotFoundError, SettingsError
from committer.extras import named_extra
from committer.ports.catalog import Catalog
from committer.ports.storage import Storage
from committer.ports.table_credentials import CredentialKeeper
from committer.ports.world import World
from committer.storage.bounded import ReadLimit
from committer.storage.scheme import scheme_of

_DYNAMODB_NAME = re.compile(r"[A-Za-z0-9_.-]{3,255}")
# Iceberg's own default for `dynamodb.table-name`.
_DYNAMODB_DEFAULT_NAME = "iceberg"


async def open_catalog(
    properties: CatalogProperties,
    storage: Storage,
    world: World,
    *,
    create: bool,
    vended: CredentialKeeper | None = None,
    tables: ReadLimit | None = None,
) -> Catalog:
    """Connect to the catalog. `create`: make one that is missing. `vended`: is given the
    credentials that a catalog vends for files of tables; None: it is not asked for any.
    `tables`: of the metadata that a catalog answers itself; files have the limits of `storage`.

    Errors: `SettingsError`; `CatalogUnavailableError`; `AccessError`; `NotFoundError` for one that
    is missing and is not made.
    """
    properties.check_uri()
    match properties.kind:
        case CatalogKind.SQL:
            return await _open_sql(properties, storage, create=create)
        case CatalogKind.HADOOP:
            return await _open_hadoop(properties, storage, create=create)
        case CatalogKind.DYNAMODB:
            return await _open_dynamodb(properties, storage, world, create=create)
        case CatalogKind.GLUE:
            return await _open_glue(properties, storage, world)
        case CatalogKind.REST:
            from committer.backends.open_rest import open_rest

            return await open_rest(properties, storage, world, vended, tables)
        case CatalogKind.HIVE:
            return await _open_hive(properties, storage, world)
        case CatalogKind.S3_TABLES:
            return await _open_s3_tables(properties, storage, world)


async def _open_sql(properties: CatalogProperties, storage: Storage, *, create: bool) -> Catalog:
    from committer.catalog.sql.sql_catalog import SqlCatalog

    return await SqlCatalog.open(
        uri=properties.uri,
        name=properties.name,
        storage=storage,
        driver_properties=driver_properties(properties),
        schema_version="V0" if properties.get("jdbc.schema-version").upper() == "V0" else "V1",
        create=create,
    )


def driver_properties(properties: CatalogProperties) -> dict[str, str]:
    """Return what Java hands to the database's driver, without `jdbc.` before the names."""
    from committer.catalog.property_names import DRIVER_PROPERTIES

    found = properties.below("jdbc.")
    return {name: found[name] for name in DRIVER_PROPERTIES if name in found}


async def _open_hadoop(properties: CatalogProperties, storage: Storage, *, create: bool) -> Catalog:
    """Open the tables below `warehouse`. A folder that is missing is made by its first table."""
    from committer.catalog.hadoop.hadoop_catalog import HadoopCatalog
    from committer.storage.disk.local_files import local_path

    warehouse = properties.warehouse
    if not warehouse:
        raise SettingsError(
            "`warehouse` is empty: a catalog of type `hadoop` is the folder that it names"
        )
    is_local = scheme_of(warehouse) == "file"
    if is_local and not create and not await asyncio.to_thread(local_path(warehouse).is_dir):
        raise NotFoundError(
            f"there is no folder {warehouse} (`warehouse`) yet: `frazil table create` makes one"
        )
    return HadoopCatalog(
        warehouse=warehouse,
        storage=storage,
        no_other_writers=properties.flag("hadoop.no-other-writers"),
    )


async def _open_dynamodb(
    properties: CatalogProperties, storage: Storage, world: World, *, create: bool
) -> Catalog:
    table_name = dynamodb_table(properties)
    options = aws_options(properties, "dynamodb", str(properties))
    from committer.catalog.dynamodb.dynamodb_catalog import DynamoDbCatalog

    return await DynamoDbCatalog.open(
        table_name=table_name, storage=storage, options=options, world=world, create=create
    )


def dynamodb_table(properties: CatalogProperties) -> str:
    """Return the table of a DynamoDB catalog: that of the URI, else of `dynamodb.table-name`.

    Errors: `SettingsError` for a name that DynamoDB would not take.
    """
    named = properties.get("dynamodb.table-name", "table-name") or _DYNAMODB_DEFAULT_NAME
    name = properties.uri.removeprefix(f"{CatalogKind.DYNAMODB}://") or named
    if not _DYNAMODB_NAME.fullmatch(name):
        raise SettingsError(
            f"`{properties.uri or name}`: expected dynamodb://TABLE, a name of 3 to 255 letters,"
            f" digits, `_`, `.` and `-` (dynamodb:// alone: `{_DYNAMODB_DEFAULT_NAME}`)"
        )
    return name


async def _open_glue(properties: CatalogProperties, storage: Storage, world: World) -> Catalog:
    options = aws_options(properties, "glue", str(properties))
    from committer.catalog.glue.glue_catalog import GlueCatalog

    return await GlueCatalog.open(
        storage=storage,
        options=options,
        world=world,
        catalog_id=properties.get("glue.id"),
        skip_archive=properties.get("glue.skip-archive").lower() != "false",
    )


async def _open_s3_tables(properties: CatalogProperties, storage: Storage, world: World) -> Catalog:
    options = aws_options(properties, "s3tables", str(properties))
    from committer.catalog.s3_tables.s3_tables_catalog import S3TablesCatalog

    return await S3TablesCatalog.open(
        bucket=properties.warehouse, storage=storage, options=options, world=world
    )


async def _open_hive(properties: CatalogProperties, storage: Storage, world: World) -> Catalog:
    """Connect to a metastore. Errors: `SettingsError` where Kerberos or the extra is missing."""
    if properties.flag("hive.kerberos-authentication"):
        raise SettingsError(
            "`hive.kerberos-authentication`: Frazil does not speak Kerberos to a Hive metastore;"
            " expected false, and a metastore without `metastore.sasl.enabled`"
        )
    with named_extra(str(properties), "hive"):
        from committer.catalog.hive.hive_catalog import HiveCatalog

    return await HiveCatalog.open(
        uri=properties.uri,
        storage=storage,
        world=world,
        warehouse=properties.warehouse,
        ugi=properties.get("ugi"),
        locks_by_default=properties.get("iceberg.engine.hive.lock-enabled").lower() != "false",
        allow_unfenced_locks=properties.flag("hive.allow-unfenced-locks"),
    )
