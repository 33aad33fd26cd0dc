"""Opens a catalog of Glue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from committer.backends.aws_options import aws_options
from committer.catalog.catalog_properties import CatalogProperties
from committer.ports.storage import Storage
from committer.ports.world import World

if TYPE_CHECKING:
    from committer.catalog.glue.glue_catalog import GlueCatalog


async def open_glue(properties: CatalogProperties, storage: Storage, world: World) -> GlueCatalog:
    """Connect to Glue. Errors: those of `open_catalog`."""
    options = aws_options(properties, "glue", str(properties))
    from committer.catalog.glue.glue_catalog import GlueCatalog

    return await GlueCatalog.open(
        storage=storage,
        options=options,
        world=world,
        catalog_id=properties.get("glue.id"),
        skip_archive=properties.get("glue.skip-archive").lower() != "false",
    )
