"""Opens a catalog in a table of DynamoDB."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from committer.backends.aws_options import aws_options
from committer.catalog.catalog_properties import CatalogKind, CatalogProperties
from committer.errors import SettingsError
from committer.ports.storage import Storage
from committer.ports.world import World

if TYPE_CHECKING:
    from committer.catalog.dynamodb.dynamodb_catalog import DynamoDbCatalog

_NAME = re.compile(r"[A-Za-z0-9_.-]{3,255}")
# Iceberg's own default for `dynamodb.table-name`.
_DEFAULT_NAME = "iceberg"


async def open_dynamodb(
    properties: CatalogProperties, storage: Storage, world: World, *, create: bool
) -> DynamoDbCatalog:
    """Connect to the table. `create` and errors: those of `open_catalog`."""
    table_name = dynamodb_table(properties)
    options = aws_options(properties, "dynamodb", str(properties))
    from committer.catalog.dynamodb.dynamodb_catalog import DynamoDbCatalog

    return await DynamoDbCatalog.open(
        table_name=table_name,
        storage=storage,
        options=options,
        world=world,
        create=create,
    )


def dynamodb_table(properties: CatalogProperties) -> str:
    """Return the table of a DynamoDB catalog: that of the URI, else of `dynamodb.table-name`.

    Errors: `SettingsError` for a name that DynamoDB would not take.
    """
    named = properties.get("dynamodb.table-name", "table-name") or _DEFAULT_NAME
    name = properties.uri.removeprefix(f"{CatalogKind.DYNAMODB}://") or named
    if not _NAME.fullmatch(name):
        raise SettingsError(
            f"`{properties.uri or name}`: expected dynamodb://TABLE, a name of 3 to 255 letters,"
            f" digits, `_`, `.` and `-` (dynamodb:// alone: `{_DEFAULT_NAME}`)"
        )
    return name
