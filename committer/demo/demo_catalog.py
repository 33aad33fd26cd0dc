"""A catalog that the user chose for the demo, in the place of a new SQLite file.

The demo reads back by PyIceberg through the same catalog, and every file of the run
stays below one folder: so not every catalog serves.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from committer.backends.catalog_kinds import driver_properties
from committer.catalog.catalog_properties import CatalogKind, CatalogProperties
from committer.catalog.property_names import CATALOG_PROPERTIES
from committer.catalog.sql.sql_address import database_url
from committer.errors import SettingsError
from committer.settings.setting_names import variable_of

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

_KINDS = (CatalogKind.SQL, CatalogKind.REST, CatalogKind.HIVE)


def check_catalog(catalog: CatalogProperties) -> None:
    """Refuse a catalog that the demo cannot show. Errors: `SettingsError`."""
    if catalog.kind not in _KINDS:
        expected = ", ".join(f"`{kind}`" for kind in _KINDS)
        raise SettingsError(
            f"--catalog {catalog.name}: the demo runs on catalogs of type {expected}, and this one"
            f" is of type `{catalog.kind}`"
        )
    if catalog.place and not catalog.place.startswith(("/", "file:")):
        raise SettingsError(
            f"--catalog {catalog.name}: the demo keeps all files on this machine, and the catalog's"
            f" `warehouse` is {catalog.place}; expected a local folder, or none"
        )


def place_of_tables(catalog: CatalogProperties, home: Path) -> str:
    """Return the folder below which the demo's table goes."""
    return catalog.place or f"file://{home}/warehouse"


def variables_of(catalog: CatalogProperties) -> dict[str, str]:
    """Return the variables that name the catalog to every process of the demo.

    A property that Frazil does not know is not among its variables: each process reads it from
    PyIceberg's configuration again.
    """
    known = {name: text for name, text in catalog.values.items() if name in CATALOG_PROPERTIES}
    named = {"name": catalog.name, **known}
    return {variable_of(f"catalog.{name}"): text for name, text in named.items() if text}


def open_by_pyiceberg(catalog: CatalogProperties) -> Catalog:
    """Open the catalog by PyIceberg's own client; Frazil's part is the spelling of an address."""
    values = {name: text for name, text in catalog.values.items() if text}
    match catalog.kind:
        case CatalogKind.SQL:
            from pyiceberg.catalog.sql import SqlCatalog

            url = database_url(catalog.uri, driver_properties(catalog))
            return SqlCatalog(catalog.name, uri=url.render_as_string(hide_password=False))
        case CatalogKind.HIVE:
            from committer.demo.pyiceberg_hive import MetastoreCatalog

            return MetastoreCatalog(catalog.name, **values)
        case _:
            from pyiceberg.catalog import load_catalog

            return load_catalog(catalog.name, **{**values, "type": catalog.kind.value})
