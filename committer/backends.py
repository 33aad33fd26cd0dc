"""Which adapter serves a location, and which a catalog's URI: for the service and the Spark side.

AWS libraries are imported once a scheme asks for them: one machine does without the extra `aws`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from committer.aws.access import AwsAccess
from committer.errors import SettingsError
from committer.extras import named_extra
from committer.ports.catalog import Catalog
from committer.ports.storage import Storage
from committer.ports.world import World
from committer.storage.local import LocalStorage
from committer.storage.s3_location import SCHEMES as S3_SCHEMES
from committer.storage.scheme import SchemeStorage, scheme_of

if TYPE_CHECKING:
    from committer.aws.client import AwsOptions

_DYNAMODB = "dynamodb:"
_DYNAMODB_URI = re.compile(r"dynamodb://(?P<table>[A-Za-z0-9_.-]{3,255})?")
# Iceberg's own default for `dynamodb.table-name`.
_DYNAMODB_TABLE = "iceberg"


def open_storage(aws: AwsAccess, world: World, *, prune_below: str = "") -> SchemeStorage:
    """Open local files, and S3 from the first location that needs it; nothing is asked yet.

    `prune_below`: a folder strictly below which no empty local folders are left. Errors:
    `SettingsError`, later at a location on S3 too: without the extra, or for an unknown profile.
    """
    prunes = (prune_below,) if prune_below and scheme_of(prune_below) == "file" else ()

    @cache
    def open_s3() -> Storage:
        return _open_s3(aws, world)

    return SchemeStorage(
        {"file": LocalStorage(prune_below=prunes)}, on_demand=dict.fromkeys(S3_SCHEMES, open_s3)
    )


def is_dynamodb(uri: str) -> bool:
    """Return whether a catalog's URI names a DynamoDB table. Else it is a SQL catalog's URL."""
    return uri.startswith(_DYNAMODB)


def dynamodb_table(uri: str) -> str:
    """Return the table of a DynamoDB catalog's URI.

    Errors: `SettingsError` for a name that DynamoDB would not take.
    """
    match = _DYNAMODB_URI.fullmatch(uri)
    if match is None:
        raise SettingsError(
            f"catalog `{uri}`: expected dynamodb://TABLE, a name of 3 to 255 letters, digits, `_`,"
            f" `.` and `-` (dynamodb:// alone: `{_DYNAMODB_TABLE}`)"
        )
    return match["table"] or _DYNAMODB_TABLE


async def open_catalog(
    uri: str, name: str, storage: Storage, aws: AwsAccess, world: World, *, create: bool
) -> Catalog:
    """Connect to the catalog. `create`: make one that is missing.

    Errors: `SettingsError`; `CatalogUnavailableError`; `AccessError`; `NotFoundError` for one that
    is missing and is not made.
    """
    if not is_dynamodb(uri):
        from committer.catalog.sql import SqlCatalog

        return await SqlCatalog.open(uri=uri, name=name, storage=storage, create=create)
    table_name = dynamodb_table(uri)
    options = _options(aws, aws.dynamodb_endpoint_url, f"catalog `{uri}`")
    from committer.catalog.dynamodb import DynamoDbCatalog

    return await DynamoDbCatalog.open(
        name=name,
        table_name=table_name,
        storage=storage,
        options=options,
        world=world,
        create=create,
    )


def _open_s3(aws: AwsAccess, world: World) -> Storage:
    options = _options(aws, aws.s3_endpoint_url, "a location on S3")
    from committer.storage.s3 import S3Storage

    return S3Storage(options, world=world)


def _options(aws: AwsAccess, endpoint_url: str, what: str) -> AwsOptions:
    """Convert options for AWS clients. Errors: `SettingsError` where the extra is not installed."""
    with named_extra(what, "aws"):
        from committer.aws.client import AwsOptions
    return AwsOptions(
        region=aws.region,
        profile=aws.profile,
        endpoint_url=endpoint_url,
        addressing_style=aws.s3_addressing_style,
    )
