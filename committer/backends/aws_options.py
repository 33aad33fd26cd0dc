"""The options of a client of AWS, from the properties of a catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from committer.catalog.catalog_properties import CatalogProperties
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
