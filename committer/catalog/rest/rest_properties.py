"""From a catalog's properties, as PyIceberg and Java name them, to what its client is opened with.

Pure: nothing is asked, and no file is read.
"""

from __future__ import annotations

from enum import StrEnum

from committer.catalog.catalog_properties import CatalogProperties
from committer.catalog.rest.client.rest_auth import is_header_text
from committer.catalog.rest.client.rest_options import (
    ANSWER_BYTES_MAX,
    BasicOptions,
    OAuth2Options,
    RestOptions,
    TlsOptions,
)
from committer.errors import SettingsError

SIGNING_NAME = "execute-api"
"""The service name in a signature by default, as in PyIceberg and Java."""


class AuthType(StrEnum):
    """The kinds of authentication; the values are Java's `rest.auth.type`."""

    NONE = "none"
    BASIC = "basic"
    OAUTH2 = "oauth2"
    SIGV4 = "sigv4"


def rest_options(
    properties: CatalogProperties, table_bytes_max: int | None = None, large_table_advice: str = ""
) -> RestOptions:
    """Return how the server is reached. `table_bytes_max`: of a table's metadata in an answer.
    Errors: `SettingsError` for half a certificate.
    """
    certificate = properties.get("ssl.client.cert")
    if properties.get("ssl.client.key") and not certificate:
        raise SettingsError("`ssl.client.key` is set and `ssl.client.cert` is not: set both")
    page_size = properties.get("rest-page-size")
    return RestOptions(
        uri=properties.uri,
        # As it is written: an identifier or a location, which the server knows.
        warehouse=properties.get("warehouse"),
        prefix=properties.get("prefix"),
        page_size=int(page_size) if page_size else None,
        headers=properties.below("header."),
        tls=TlsOptions(
            ca_bundle=properties.get("ssl.cabundle"),
            client_certificate=certificate,
            client_key=properties.get("ssl.client.key"),
        ),
        answer_bytes_max=table_bytes_max or ANSWER_BYTES_MAX,
        large_table_advice=large_table_advice,
    )


def auth_type(properties: CatalogProperties) -> AuthType:
    """Return what `rest.auth.type` says, else what the other properties imply.

    Errors: `SettingsError` for a type that is not served.
    """
    named = properties.get("rest.auth.type", "auth.type").lower()
    if named in ("", "none", "noop"):
        return AuthType.NONE if named else _implied(properties)
    try:
        return AuthType(named)
    except ValueError:
        raise SettingsError(
            f"`rest.auth.type` {named}: expected one of"
            f" {', '.join(f'`{one}`' for one in sorted(AuthType))}"
        ) from None


def _implied(properties: CatalogProperties) -> AuthType:
    if properties.flag("rest.sigv4-enabled"):
        return AuthType.SIGV4
    has_token = bool(properties.get("token", "credential"))
    return AuthType.OAUTH2 if has_token else AuthType.NONE


def basic_options(properties: CatalogProperties) -> BasicOptions:
    """Return the user and the password. Errors: `SettingsError` where there is no user."""
    username = properties.get("rest.auth.basic.username")
    if not username:
        raise SettingsError("`rest.auth.type` basic: set `rest.auth.basic.username`")
    if ":" in username:
        raise SettingsError("`rest.auth.basic.username`: expected no `:`, which ends the name")
    return BasicOptions(username=username, password=properties.get("rest.auth.basic.password"))


def oauth2_options(properties: CatalogProperties) -> OAuth2Options:
    """Return the token or the credential. Errors: `SettingsError` where there is neither."""
    if not properties.get("token", "credential"):
        raise SettingsError("`rest.auth.type` oauth2: set `credential` (`id:secret`) or `token`")
    if (token := properties.get("token")) and not is_header_text(token):
        raise SettingsError("`token`: expected printable ASCII text on one line")
    return OAuth2Options(
        token=properties.get("token"),
        credential=properties.get("credential"),
        server_uri=properties.get("oauth2-server-uri"),
        scope=properties.get("scope") or "catalog",
        audience=properties.get("audience"),
        resource=properties.get("resource"),
    )
