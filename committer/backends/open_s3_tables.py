"""Opens a catalog of S3 Tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from committer.backends.aws_options import aws_options
from committer.catalog.catalog_properties import CatalogProperties
from committer.ports.storage import Storage
from committer.ports.world import World

if TYPE_CHECKING:
    from committer.catalog.s3_tables.s3_tables_catalog import S3TablesCatalog


async def open_s3_tables(
    properties: CatalogProperties, storage: Storage, world: World
) -> S3TablesCatalog:
    """Connect to S3 Tables. Errors: those of `open_catalog`."""
    options = aws_options(properties, "s3tables", str(properties))
    from committer.catalog.s3_tables.s3_tables_catalog import S3TablesCatalog

    return await S3TablesCatalog.open(
        bucket=properties.warehouse, storage=storage, options=options, world=world
    )
