"""Which adapter serves a location, and which a catalog's URI: for the service and the Spark side.

Libraries of an object store are imported once a scheme asks for them: one machine runs without the
extras `aws`, `gcs` and `adls`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Literal

from committer.catalog.catalog_properties import CatalogKind, CatalogProperties
from committer.catalog.property_names import DRIVER_PROPERTIES
from committer.catalog.vended_credentials import without_secrets_of
from committer.errors import NotFoundError, SettingsError
from committer.extras import named_extra
from committer.ports.catalog import Catalog
from committer.ports.storage import Storage
from committer.ports.table_credentials import CredentialKeeper
from committer.ports.world import World
from committer.storage.adls.adls_location import SCHEMES as ADLS_SCHEMES
from committer.storage.adls.adls_location import AdlsPlaces
from committer.storage.gcs.gcs_location import SCHEMES as GCS_SCHEMES
from committer.storage.local import LocalStorage
from committer.storage.local_files import local_path
from committer.storage.s3_location import SCHEMES as S3_SCHEMES
from committer.storage.scheme import SchemeStorage, scheme_of
from committer.storage.vended import VendedStorage

if TYPE_CHECKING:
    from committer.aws.client import AwsOptions, AwsService
    from committer.catalog.rest.rest_auth import SignedAuth
    from committer.catalog.rest.rest_options import BasicOptions, OAuth2Options

_DYNAMODB_NAME = re.compile(r"[A-Za-z0-9_.-]{3,255}")
# Iceberg's own default for `dynamodb.table-name`.
_DYNAMODB_TABLE = "iceberg"


def open_storage(
    properties: CatalogProperties, world: World, *, prune_below: str = ""
) -> SchemeStorage:
    """Open local files, and an object store from the first location that needs it; nothing is asked
    yet.

    `prune_below`: a folder strictly below which no empty local folders are left. Errors:
    `SettingsError`, later at a location in an object store too: without its extra, or for what the
    properties say of it.
    """
    prunes = (prune_below,) if prune_below and scheme_of(prune_below) == "file" else ()

    @cache
    def open_s3() -> Storage:
        return _open_s3(properties, world)

    @cache
    def open_gcs() -> Storage:
        return _open_gcs(properties, world)

    @cache
    def open_adls() -> Storage:
        return _open_adls(properties, world)

    on_demand = {
        **dict.fromkeys(S3_SCHEMES, open_s3),
        **dict.fromkeys(GCS_SCHEMES, open_gcs),
        **dict.fromkeys(ADLS_SCHEMES, open_adls),
    }
    return SchemeStorage({"file": LocalStorage(prune_below=prunes)}, on_demand=on_demand)


def open_table_storage(own: Storage, properties: CatalogProperties, world: World) -> VendedStorage:
    """Return the storage of table files: `own`, but where the catalog vends credentials for them.

    Closing it closes `own`.
    """

    def open_with(vended: Mapping[str, str]) -> Storage:
        values = {**without_secrets_of(vended, properties.values), **vended}
        return open_storage(replace(properties, values=values), world)

    return VendedStorage(own, open_with, world=world)


def vends_credentials(properties: CatalogProperties) -> bool:
    """Return whether the catalog may vend credentials for the files of its tables: a REST one."""
    return properties.get("type").lower() == "rest" or properties.uri.startswith("http")


def dynamodb_table(properties: CatalogProperties) -> str:
    """Return the table of a DynamoDB catalog: that of the URI, else of `dynamodb.table-name`.

    Errors: `SettingsError` for a name that DynamoDB would not take.
    """
    named = properties.get("dynamodb.table-name", "table-name") or _DYNAMODB_TABLE
    name = properties.uri.removeprefix(f"{CatalogKind.DYNAMODB}://") or named
    if not _DYNAMODB_NAME.fullmatch(name):
        raise SettingsError(
            f"`{properties.uri or name}`: expected dynamodb://TABLE, a name of 3 to 255 letters,"
            f" digits, `_`, `.` and `-` (dynamodb:// alone: `{_DYNAMODB_TABLE}`)"
        )
    return name


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
    match properties.kind:
        case CatalogKind.SQL:
            from committer.catalog.sql import SqlCatalog

            return await SqlCatalog.open(
                uri=properties.uri,
                name=properties.name,
                storage=storage,
                driver_properties=_driver_properties(properties),
                schema_version=_schema_version(properties),
                create=create,
            )
        case CatalogKind.HADOOP:
            return await _open_hadoop(properties, storage, create=create)
        case CatalogKind.DYNAMODB:
            table_name = dynamodb_table(properties)
            options = _aws_options(properties, "dynamodb", str(properties))
            from committer.catalog.dynamodb import DynamoDbCatalog

            return await DynamoDbCatalog.open(
                name=properties.name,
                table_name=table_name,
                storage=storage,
                options=options,
                world=world,
                create=create,
            )
        case CatalogKind.GLUE:
            options = _aws_options(properties, "glue", str(properties))
            from committer.catalog.glue.glue_catalog import GlueCatalog

            return await GlueCatalog.open(
                storage=storage,
                options=options,
                world=world,
                catalog_id=properties.get("glue.id"),
                skip_archive=properties.get("glue.skip-archive").lower() != "false",
            )
        case CatalogKind.REST:
            return await _open_rest(properties, storage, world, vended)
        case CatalogKind.HIVE:
            return await _open_hive(properties, storage, world)


async def _open_rest(
    properties: CatalogProperties, storage: Storage, world: World, vended: CredentialKeeper | None
) -> Catalog:
    with named_extra(str(properties), "rest"):
        from committer.catalog.rest.rest_catalog import RestCatalog
        from committer.catalog.rest.rest_properties import rest_options

    return await RestCatalog.open(
        options=rest_options(properties),
        storage=storage,
        world=world,
        auth=_rest_auth(properties),
        properties=properties.values,
        vended=vended,
    )


def _rest_auth(
    properties: CatalogProperties,
) -> SignedAuth | OAuth2Options | BasicOptions | None:
    from committer.catalog.rest.rest_auth import SignedAuth
    from committer.catalog.rest.rest_properties import (
        SIGNING_NAME,
        AuthType,
        auth_type,
        basic_options,
        oauth2_options,
    )

    match auth_type(properties):
        case AuthType.NONE:
            return None
        case AuthType.BASIC:
            return basic_options(properties)
        case AuthType.OAUTH2:
            return oauth2_options(properties)
        case AuthType.SIGV4:
            options = _aws_options(properties, "rest", f"{properties} with SigV4")
            from committer.aws.request_signer import RequestSigner

            region = properties.get("rest.signing-region") or options.region
            name = properties.get("rest.signing-name") or SIGNING_NAME
            signer = RequestSigner.open(replace(options, region=region), name=name)
            return SignedAuth(signer.sign)


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


def _driver_properties(properties: CatalogProperties) -> dict[str, str]:
    """Return what Java hands to the database's driver, without `jdbc.` before the names."""
    found = properties.below("jdbc.")
    return {name: found[name] for name in DRIVER_PROPERTIES if name in found}


def _schema_version(properties: CatalogProperties) -> Literal["V0", "V1"]:
    return "V0" if properties.get("jdbc.schema-version").upper() == "V0" else "V1"


async def _open_hadoop(properties: CatalogProperties, storage: Storage, *, create: bool) -> Catalog:
    """Open the tables below `warehouse`. A folder that is missing is made by its first table."""
    from committer.catalog.hadoop.hadoop_catalog import HadoopCatalog

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
    return await HadoopCatalog.open(
        warehouse=warehouse,
        storage=storage,
        no_other_writers=properties.flag("hadoop.no-other-writers"),
    )


def _open_s3(properties: CatalogProperties, world: World) -> Storage:
    options = _aws_options(properties, "s3", "a location on S3")
    from committer.storage.s3 import S3Storage

    return S3Storage(options, world=world)


def _open_gcs(properties: CatalogProperties, world: World) -> Storage:
    with named_extra("a location on Google Cloud Storage", "gcs"):
        from committer.storage.gcs.open_gcs import GcsOptions, open_gcs

    ends_ms = properties.get("gcs.oauth2.token-expires-at")
    options = GcsOptions(
        host=properties.get("gcs.service.host"),
        token=properties.get("gcs.oauth2.token"),
        token_ends_ms=int(ends_ms) if ends_ms else None,
        is_anonymous=properties.flag("gcs.no-auth"),
    )
    return open_gcs(options, world=world)


def _open_adls(properties: CatalogProperties, world: World) -> Storage:
    with named_extra("a location on Azure", "adls"):
        from committer.storage.adls.entra_tokens import EntraOptions
        from committer.storage.adls.open_adls import AdlsOptions, open_adls

    def own(name: str) -> str:
        return properties.get(f"adls.{name}")

    options = AdlsOptions(
        places=AdlsPlaces(
            own("account-name"),
            own("blob-storage-authority"),
            own("blob-storage-scheme") or "https",
        ),
        connection_string=own("connection-string"),
        account_key=own("account-key"),
        sas_token=own("sas-token"),
        token=own("token"),
        is_anonymous=properties.flag("adls.anon"),
        entra=EntraOptions(own("tenant-id"), own("client-id"), own("client-secret")),
    )
    return open_adls(options, world=world)


def _aws_options(
    properties: CatalogProperties, service: AwsService | Literal["rest"], subject: str
) -> AwsOptions:
    """Choose the options of a client. Errors: `SettingsError` where the extra is missing."""
    with named_extra(subject, "aws"):
        from committer.aws.client import AwsOptions

    def own(name: str) -> str:
        return properties.get(f"{service}.{name}", f"client.{name}")

    # Half of one pair and half of another would be no credentials at all.
    keys = service if properties.get(f"{service}.access-key-id") else "client"
    return AwsOptions(
        region=own("region"),
        profile=own("profile-name"),
        access_key_id=properties.get(f"{keys}.access-key-id"),
        secret_access_key=properties.get(f"{keys}.secret-access-key"),
        session_token=properties.get(f"{keys}.session-token"),
        endpoint_url=properties.get(f"{service}.endpoint"),
        addressing_style=addressing_style(properties),
    )


def addressing_style(properties: CatalogProperties) -> Literal["auto", "path", "virtual"]:
    """Return how S3 requests name a bucket. Errors: `SettingsError` where two properties differ."""
    is_path = properties.flag("s3.path-style-access")
    is_virtual = properties.flag("s3.force-virtual-addressing")
    if is_path and is_virtual:
        raise SettingsError(
            "`s3.path-style-access` and `s3.force-virtual-addressing` exclude each other"
        )
    return "path" if is_path else "virtual" if is_virtual else "auto"
