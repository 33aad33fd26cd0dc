"""Opens a catalog in a SQL database: SQLite, PostgreSQL, MariaDB."""

from __future__ import annotations

from typing import Literal

from committer.catalog.catalog_properties import CatalogProperties
from committer.catalog.property_names import DRIVER_PROPERTIES
from committer.catalog.sql.sql_catalog import SqlCatalog
from committer.ports.storage import Storage


async def open_sql(properties: CatalogProperties, storage: Storage, *, create: bool) -> SqlCatalog:
    """Connect to the database. `create` and errors: those of `open_catalog`."""
    return await SqlCatalog.open(
        uri=properties.uri,
        name=properties.name,
        storage=storage,
        driver_properties=driver_properties(properties),
        schema_version=_schema_version(properties),
        create=create,
    )


def driver_properties(properties: CatalogProperties) -> dict[str, str]:
    """Return what Java hands to the database's driver, without `jdbc.` before the names."""
    found = properties.below("jdbc.")
    return {name: found[name] for name in DRIVER_PROPERTIES if name in found}


def _schema_version(properties: CatalogProperties) -> Literal["V0", "V1"]:
    return "V0" if properties.get("jdbc.schema-version").upper() == "V0" else "V1"
