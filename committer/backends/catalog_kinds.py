"""Which adapter serves a catalog, by its kind."""

from __future__ import annotations

from committer.catalog.catalog_properties import CatalogKind, CatalogProperties
from committer.ports.catalog import Catalog
from committer.ports.storage import Storage
from committer.ports.table_credentials import CredentialKeeper
from committer.ports.world import World


async def open_catalog(
    properties: CatalogProperties,
    storage: Storage,
    world: World,
    *,
    create: bool,
    vended: CredentialKeeper | None = None,
) -> Catalog:
    """Connect to the catalog. `create`: make one that is missing. `vended`: is given the
    credentials that a catalog vends for files of tables; None: it is not asked for any.

    Errors: `SettingsError`; `CatalogUnavailableError`; `AccessError`; `NotFoundError` for one that
    is missing and is not made.
    """
    properties.check_uri()
    match properties.kind:
        case CatalogKind.SQL:
            from committer.backends.open_sql import open_sql

            return await open_sql(properties, storage, create=create)
        case CatalogKind.HADOOP:
            from committer.backends.open_hadoop import open_hadoop

            return await open_hadoop(properties, storage, create=create)
        case CatalogKind.DYNAMODB:
            from committer.backends.open_dynamodb import open_dynamodb

            return await open_dynamodb(properties, storage, world, create=create)
        case CatalogKind.GLUE:
            from committer.backends.open_glue import open_glue

            return await open_glue(properties, storage, world)
        case CatalogKind.REST:
            from committer.backends.open_rest import open_rest

            return await open_rest(properties, storage, world, vended)
        case CatalogKind.HIVE:
            from committer.backends.open_hive import open_hive

            return await open_hive(properties, storage, world)
        case CatalogKind.S3_TABLES:
            from committer.backends.open_s3_tables import open_s3_tables

            return await open_s3_tables(properties, storage, world)
