"""Opens Azure's blob service: where the account is, and how its requests are authorized."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from committer.errors import SettingsError
from committer.ports.world import World
from committer.storage.adls.adls_api import AdlsApi, refusal_of
from committer.storage.adls.adls_authorization import SasToken, SharedKey
from committer.storage.adls.adls_location import AdlsPlaces
from committer.storage.adls.entra_tokens import EntraOptions, EntraTokens
from committer.storage.http.authorization import (
    Anonymous,
    Authorization,
    RenewedToken,
    StaticToken,
    Token,
)
from committer.storage.http.http_calls import HttpCalls
from committer.storage.http.http_client import HttpLimits, judge
from committer.storage.object_storage import ObjectStorage
from committer.storage.repeated_calls import CallLimits


@dataclass(frozen=True, slots=True)
class AdlsOptions:
    """An account and its credentials, by the names of the properties; the first that is set wins,
    in this order. Without any it is an identity of the environment, or of the machine."""

    places: AdlsPlaces = field(default_factory=AdlsPlaces)
    connection_string: str = field(default="", repr=False)
    account_key: str = field(default="", repr=False)
    sas_token: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    is_anonymous: bool = False
    entra: EntraOptions = field(default_factory=EntraOptions)
    http_limits: HttpLimits = field(default_factory=HttpLimits)


def open_adls(
    options: AdlsOptions, *, world: World, limits: CallLimits | None = None
) -> ObjectStorage:
    """Open a storage for `abfss://container@account…/key`; nothing is asked yet.

    Errors: `SettingsError` for credentials that are half or malformed.
    """
    if options.connection_string:
        options = _with_connection(options)
    calls = HttpCalls(
        _authorization(options, world),
        world,
        limits or CallLimits(),
        options.http_limits,
        refusal=refusal_of,
        judge=judge,
    )
    return ObjectStorage(AdlsApi(calls, options.places), calls, world)


def _authorization(options: AdlsOptions, world: World) -> Authorization:
    if options.account_key:
        if not options.places.account:
            raise SettingsError("`adls.account-key` needs `adls.account-name`: whose key it is")
        return SharedKey(options.places.account, options.account_key, world)
    if options.sas_token:
        if not options.places.account:
            raise SettingsError("`adls.sas-token` needs `adls.account-name`: whose token it is")
        return SasToken(options.sas_token)
    if options.token:
        return StaticToken(Token(options.token, None), "adls.token", world)
    if options.is_anonymous:
        return Anonymous()
    return RenewedToken(EntraTokens(_entra(options.entra, os.environ), world).fetch, world)


def _entra(options: EntraOptions, environment: Mapping[str, str]) -> EntraOptions:
    """Add what the environment says, by the names that every tool of Azure reads.

    Errors: `SettingsError` for half of a service principal.
    """
    own = (options.tenant_id, options.client_id, options.client_secret)
    if any(own) and not all(own):
        raise SettingsError(
            "`adls.tenant-id`, `adls.client-id` and `adls.client-secret` need one another: one of"
            " them is missing"
        )
    authority = environment.get("AZURE_AUTHORITY_HOST") or options.authority_url
    if all(own):
        return replace(options, authority_url=authority)
    secret = environment.get("AZURE_CLIENT_SECRET", "")
    token_file = environment.get("AZURE_FEDERATED_TOKEN_FILE", "")
    has_proof = bool(secret or token_file)
    return EntraOptions(
        environment.get("AZURE_TENANT_ID", "") if has_proof else "",
        environment.get("AZURE_CLIENT_ID", ""),
        secret,
        token_file,
        authority,
    )


def _with_connection(options: AdlsOptions) -> AdlsOptions:
    """Read `AccountName=…;AccountKey=…;…`. Errors: `SettingsError`."""
    pairs = [part.partition("=") for part in options.connection_string.split(";") if part.strip()]
    found = {name.strip().lower(): value.strip() for name, _, value in pairs}
    scheme = found.get("defaultendpointsprotocol", "https")
    authority = f".blob.{found['endpointsuffix']}" if "endpointsuffix" in found else ""
    account = found.get("accountname", "")
    if endpoint := found.get("blobendpoint", ""):
        parts = urlsplit(endpoint)
        scheme, authority = parts.scheme, _authority(parts.netloc, account)
        account = account or parts.path.strip("/") or parts.netloc.partition(".")[0]
    if not account or not (found.get("accountkey") or found.get("sharedaccesssignature")):
        raise SettingsError(
            "`adls.connection-string`: expected AccountName=…;AccountKey=… or"
            " BlobEndpoint=…;SharedAccessSignature=…"
        )
    return replace(
        options,
        places=AdlsPlaces(account, authority, scheme),
        account_key=found.get("accountkey", ""),
        sas_token=found.get("sharedaccesssignature", ""),
    )


def _authority(host: str, account: str) -> str:
    """Return the authority of a blob endpoint: with the account before it, or in its path."""
    name, dot, rest = host.partition(".")
    return f"{dot}{rest}" if name == account or rest.startswith("blob.") else host
