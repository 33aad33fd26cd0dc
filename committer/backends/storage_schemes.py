"""Chooses the storage of a location: local files, S3, Google Cloud Storage, Azure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial

from committer.backends.aws_options import aws_options
from committer.catalog.catalog_properties import CatalogProperties
from committer.catalog.vended_credentials import without_secrets_of
from committer.extras import named_extra
from committer.ports.storage import Storage
from committer.ports.world import World
from committer.storage.adls.adls_location import SCHEMES as ADLS_SCHEMES
from committer.storage.adls.adls_location import AdlsPlaces
from committer.storage.disk.local import LocalStorage
from committer.storage.gcs.gcs_location import SCHEMES as GCS_SCHEMES
from committer.storage.s3.s3_location import SCHEMES as S3_SCHEMES
from committer.storage.scheme import SchemeStorage, scheme_of
from committer.storage.vending.vended import VendedStorage


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
    on_demand: dict[str, Callable[[], Storage]] = {}
    stores = ((S3_SCHEMES, _open_s3), (GCS_SCHEMES, _open_gcs), (ADLS_SCHEMES, _open_adls))
    for schemes, open_store in stores:
        # The spellings of one store share one adapter.
        on_demand |= dict.fromkeys(schemes, cache(partial(open_store, properties, world)))
    return SchemeStorage({"file": LocalStorage(prune_below=prunes)}, on_demand=on_demand)


def open_table_storage(own: Storage, properties: CatalogProperties, world: World) -> VendedStorage:
    """Return the storage of table files: `own`, but where the catalog vends credentials for them.

    Closing it closes `own`.
    """

    def open_with(vended: Mapping[str, str]) -> Storage:
        values = {**without_secrets_of(vended, properties.values), **vended}
        return open_storage(replace(properties, values=values), world)

    return VendedStorage(own, open_with, world=world)


def _open_s3(properties: CatalogProperties, world: World) -> Storage:
    options = aws_options(properties, "s3", "a location on S3")
    from committer.storage.s3.s3_storage import S3Storage

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
