"""Reads where the object stores are from the driver's settings, for its tasks. Secrets stay."""

from __future__ import annotations

from collections.abc import Mapping

from committer.backends.aws_options import addressing_style, aws_region
from committer.catalog.catalog_properties import CatalogProperties
from workers.files.adls_files import AdlsAccess
from workers.files.gcs_files import GcsAccess
from workers.files.s3_files import S3Access
from workers.files.store_access import StoreAccess


def access_of_driver(
    properties: CatalogProperties, environment: Mapping[str, str | None]
) -> StoreAccess:
    """Return the tasks' access to the stores, with the values of AWS's and Google's own variables
    on the driver: executors may lack them.
    """
    return StoreAccess(
        s3=_s3_access(properties, environment),
        gcs=_gcs_access(properties, environment),
        adls=AdlsAccess(
            account=properties.get("adls.account-name"),
            authority=properties.get("adls.blob-storage-authority"),
            scheme=properties.get("adls.blob-storage-scheme"),
        ),
    )


def _s3_access(properties: CatalogProperties, environment: Mapping[str, str | None]) -> S3Access:
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    endpoint_url = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    return S3Access(
        region=aws_region(properties, "s3") or region or "",
        endpoint_url=properties.get("s3.endpoint") or endpoint_url or "",
        is_virtual=addressing_style(properties) == "virtual",
    )


def _gcs_access(properties: CatalogProperties, environment: Mapping[str, str | None]) -> GcsAccess:
    host = properties.get("gcs.service.host")
    emulator = environment.get("STORAGE_EMULATOR_HOST") or ""
    if emulator and not host:
        return GcsAccess(emulator if "://" in emulator else f"http://{emulator}", True)
    return GcsAccess(host, properties.flag("gcs.no-auth"))
