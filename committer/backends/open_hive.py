"""Opens a catalog behind a Hive metastore."""

from __future__ import annotations

from typing import TYPE_CHECKING

from committer.catalog.catalog_properties import CatalogProperties
from committer.errors import SettingsError
from committer.extras import named_extra
from committer.ports.storage import Storage
from committer.ports.world import World

if TYPE_CHECKING:
    from committer.catalog.hive.hive_catalog import HiveCatalog


async def open_hive(properties: CatalogProperties, storage: Storage, world: World) -> HiveCatalog:
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
