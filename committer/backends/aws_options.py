"""The options of a client of AWS, from the properties of a catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from committer.catalog.catalog_properties import CatalogKind, CatalogProperties
from committer.catalog.s3_tables.s3_tables_layout import region_of
from committer.errors import SettingsError
from committer.extras import named_extra

if TYPE_CHECKING:
    from committer.aws.client import AwsOptions, AwsService


def aws_options(
    properties: CatalogProperties, service: AwsService | Literal["rest"], subject: str
) -> AwsOptions:
    """Choose the options of a client. Errors: `SettingsError` where the extra is missing."""
    with named_extra(subject, "aws"):
        from committer.aws.client import AwsOptions

    def own(name: str) -> str:
        return properties.get(f"{service}.{name}", f"client.{name}")

    # Half of one pair and half of another would be no credentials at all.
    keys = service if properties.get(f"{service}.access-key-id") else "client"
    for half in (service, "client"):
        _check_pair(properties, f"{half}.access-key-id", f"{half}.secret-access-key")
    return AwsOptions(
        region=aws_region(properties, service),
        profile=own("profile-name"),
        access_key_id=properties.get(f"{keys}.access-key-id"),
        secret_access_key=properties.get(f"{keys}.secret-access-key"),
        session_token=properties.get(f"{keys}.session-token"),
        endpoint_url=properties.get(f"{service}.endpoint"),
        addressing_style=addressing_style(properties),
    )


def aws_region(properties: CatalogProperties, service: str) -> str:
    """Return the region that is configured: of a table bucket's tables that of the bucket.

    Errors: `SettingsError` where both are said, and differ.
    """
    names = (f"{service}.region", "client.region")
    name = next((one for one in names if properties.get(one)), "")
    region = properties.get(name)
    if properties.get("type").lower() != CatalogKind.S3_TABLES:
        return region
    of_bucket = region_of(properties.warehouse)
    if region and region != of_bucket:
        raise SettingsError(
            f"`{name}` {region}: the table bucket that `warehouse` names, and the files of its"
            f" tables, are in {of_bucket}; correct one of them, or leave out `{name}`"
        )
    return of_bucket


def _check_pair(properties: CatalogProperties, first: str, second: str) -> None:
    """Refuse half of a pair of properties. Errors: `SettingsError`."""
    given = [name for name in (first, second) if properties.get(name)]
    if len(given) == 1:
        (missing,) = {first, second} - set(given)
        raise SettingsError(f"`{given[0]}` is set without `{missing}`: set both, or none")


def addressing_style(properties: CatalogProperties) -> Literal["auto", "path", "virtual"]:
    """Return how S3 requests name a bucket. Errors: `SettingsError` where two properties differ."""
    is_path = properties.flag("s3.path-style-access")
    is_virtual = properties.flag("s3.force-virtual-addressing")
    if is_path and is_virtual:
        raise SettingsError(
            "`s3.path-style-access` and `s3.force-virtual-addressing` exclude each other"
        )
    return "path" if is_path else "virtual" if is_virtual else "auto"
