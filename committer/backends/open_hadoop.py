"""Opens a catalog that is a folder: file system tables."""

from __future__ import annotations

import asyncio

from committer.catalog.catalog_properties import CatalogProperties
from committer.catalog.hadoop.hadoop_catalog import HadoopCatalog
from committer.errors import NotFoundError, SettingsError
from committer.ports.storage import Storage
from committer.storage.disk.local_files import local_path
from committer.storage.scheme import scheme_of


async def open_hadoop(
    properties: CatalogProperties, storage: Storage, *, create: bool
) -> HadoopCatalog:
    """Open the tables below `warehouse`. A folder that is missing is made by its first table."""
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
