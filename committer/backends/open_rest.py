"""Opens a catalog behind Iceberg's REST protocol, with the identity that its properties name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from committer.backends.aws_options import aws_options
from committer.catalog.catalog_properties import CatalogProperties
from committer.extras import named_extra
from committer.ports.storage import Storage
from committer.ports.table_credentials import CredentialKeeper
from committer.ports.world import World
from committer.storage.bounded import ReadLimit

if TYPE_CHECKING:
    from committer.catalog.rest.client.rest_auth import SignedAuth
    from committer.catalog.rest.client.rest_options import BasicOptions, OAuth2Options
    from committer.catalog.rest.rest_catalog import RestCatalog


async def open_rest(
    properties: CatalogProperties,
    storage: Storage,
    world: World,
    vended: CredentialKeeper | None,
    tables: ReadLimit | None = None,
) -> RestCatalog:
    """Connect to the server. `vended`, `tables` and errors: those of `open_catalog`."""
    with named_extra(str(properties), "rest"):
        from committer.catalog.rest.rest_catalog import RestCatalog
        from committer.catalog.rest.rest_properties import rest_options

    return await RestCatalog.open(
        options=rest_options(
            properties,
            table_bytes_max=tables.bytes_max if tables else None,
            large_table_advice=tables.advice if tables else "",
        ),
        storage=storage,
        world=world,
        auth=_rest_auth(properties),
        properties=properties.values,
        vended=vended,
        maintains_tables=_is_of_s3_tables(properties),
        atomic_transactions=properties.flag("rest.atomic-transactions"),
    )


def _is_of_s3_tables(properties: CatalogProperties) -> bool:
    """Return whether tables lie in a table bucket: behind the endpoint of S3 Tables, or of Glue."""
    signs_for = properties.get("rest.signing-name")
    return signs_for == "s3tables" or ":s3tablescatalog/" in f":{properties.warehouse}"


def _rest_auth(
    properties: CatalogProperties,
) -> SignedAuth | OAuth2Options | BasicOptions | None:
    from committer.catalog.rest.client.rest_auth import SignedAuth
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
            options = aws_options(properties, "rest", f"{properties} with SigV4")
            from committer.aws.request_signer import RequestSigner

            region = properties.get("rest.signing-region") or options.region
            name = properties.get("rest.signing-name") or SIGNING_NAME
            signer = RequestSigner.open(replace(options, region=region), name=name)
            return SignedAuth(signer.sign)
