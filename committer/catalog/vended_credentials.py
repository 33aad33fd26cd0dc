"""Reads the credentials for a table's files out of what a REST catalog answers.

`storage-credentials` go before `config`: what that says beside holds for each of them. Only
properties of storages are taken; a catalog configures nothing else here.

Source: the REST catalog's OpenAPI description (`LoadTableResult`, `StorageCredential`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from committer.errors import AccessError
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.values.locations import data_folder, metadata_folder
from committer.ports.table_credentials import VendedCredential
from committer.request.table_identifier import TableIdentifier

DELEGATION_HEADER = "X-Iceberg-Access-Delegation"
VENDED = "vended-credentials"
_STORES = ("s3.", "gcs.", "adls.")
_OTHERS = frozenset({"client.region"})
_REMOTE_SIGNING = "s3.remote-signing-enabled"
# By store: what the names of its secrets begin with.
_SECRETS = {
    "s3.": ("s3.access-key-id", "s3.secret-access-key", "s3.session-token"),
    "gcs.": ("gcs.oauth2.token",),
    "adls.": (
        *("adls.sas-token", "adls.account-key", "adls.token", "adls.connection-string"),
        "adls.client-",
    ),
}
_ALL = tuple(secret for secrets in _SECRETS.values() for secret in secrets)
# Further properties that name a principal, by store.
_WITHOUT = {
    "s3.": (),
    "gcs.": ("gcs.no-auth",),
    "adls.": ("adls.tenant-id", "adls.account-name", "adls.anon"),
}
# Stores that get a secret itself in a request, and not a signature made with it.
_BEARERS = ("gcs.", "adls.")
# A catalog does not choose among the profiles of this machine.
_NEVER = frozenset({_REMOTE_SIGNING, "s3.profile-name"})
_SAS_OF = "adls.sas-token."
_ENDS = (
    "s3.session-token-expires-at-ms",
    "gcs.oauth2.token-expires-at",
    "adls.sas-token-expires-at-ms",
)
_OTHER_FOLDERS = ("write.object-storage.path", "write.folder-storage.path")


def read_credentials(
    table: TableIdentifier,
    config: Mapping[str, Any],
    storage_credentials: Iterable[Mapping[str, Any]],
) -> tuple[VendedCredential, ...]:
    """Return what was vended, the whole table's first; nothing where nothing was.

    Errors: `AccessError` where the catalog wants to sign each request itself, and vends no key.
    """
    general = _storage_properties(config)
    named: list[tuple[str, object]] = [
        (str(one.get("prefix") or ""), one.get("config")) for one in storage_credentials
    ]
    found = [
        VendedCredential(prefix, properties, _expires_ms(properties))
        for prefix, own in (("", None), *named)
        if (properties := _of_one_account(_laid_over(general, _storage_properties(own)), prefix))
    ]
    if _wants_to_sign(config) and not any(_has_secret(one.properties, _ALL) for one in found):
        raise AccessError(
            f"table {table}: the catalog wants each request to the store signed by itself"
            f" (`{_REMOTE_SIGNING}`), which takes a round trip an object and is not supported: let"
            f" it vend credentials (header `{DELEGATION_HEADER}: {VENDED}`), or none"
        )
    return tuple(found)


def table_folders(metadata: TableMetadata) -> tuple[str, ...]:
    """Return where the files of a table lie: its location, and folders elsewhere."""
    properties, location = metadata.properties, metadata.location
    named = (properties.get(name, "") for name in _OTHER_FOLDERS)
    folders = (
        location,
        data_folder(location, properties),
        metadata_folder(location, properties),
        *named,
    )
    return tuple(dict.fromkeys(folder for folder in folders if folder))


def without_secrets_of(vended: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Return our own properties without the secrets of each store that secrets were vended for:
    half of one set and half of another would be no credentials at all.
    """
    replaced = [
        (*secrets, *_WITHOUT[store])
        for store, secrets in _SECRETS.items()
        if _has_secret(vended, secrets)
    ]
    regions = ("s3.region",) if "client.region" in vended else ()
    dropped = (*(secret for secrets in replaced for secret in secrets), *regions)
    return {name: text for name, text in own.items() if not name.startswith(dropped)}


def without_secrets(config: Mapping[str, str]) -> dict[str, str]:
    """Return a configuration without the secrets of stores: it still holds when those are over."""
    return {name: text for name, text in config.items() if not name.startswith(_ALL)}


def _storage_properties(config: object) -> dict[str, str]:
    if not isinstance(config, Mapping):
        return {}
    return {
        name: text
        for name, text in config.items()
        if isinstance(name, str)
        and isinstance(text, str)
        and text
        and (name.startswith(_STORES) or name in _OTHERS)
        and name not in _NEVER
        and not (name.startswith(_ENDS) and not _is_time(text))
    }


def _laid_over(general: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Return both, of which `own` wins. Our own tokens are sent to no address that a catalog names:
    what it says of such a store counts with a secret for it only.
    """
    both = {**without_secrets_of(own, general), **own}
    unsafe = tuple(store for store in _BEARERS if not _has_secret(both, _SECRETS[store]))
    return {name: text for name, text in both.items() if not name.startswith(unsafe)}


def _expires_ms(properties: Mapping[str, str]) -> int | None:
    """Return the first end that is named; None where there is none."""
    ends = (int(text) for name, text in properties.items() if name.startswith(_ENDS))
    return min(ends, default=None)


def _is_time(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19


def _of_one_account(properties: dict[str, str], prefix: str) -> dict[str, str]:
    """Return the properties with the signature of the prefix's account on Azure as the only one:
    names of signatures end with their host or account, `adls.sas-token.account.dfs.…`.
    """
    hosts = [name.removeprefix(_SAS_OF) for name in properties if name.startswith(_SAS_OF)]
    if not hosts:
        return properties
    host = next((one for one in hosts if f"@{one.partition('.')[0]}." in prefix), hosts[0])
    left = {name: text for name, text in properties.items() if not name.startswith(_SAS_OF)}
    account = host.partition(".")[0]
    return {**left, "adls.sas-token": properties[_SAS_OF + host], "adls.account-name": account}


def _wants_to_sign(config: Mapping[str, Any]) -> bool:
    return str(config.get(_REMOTE_SIGNING, "")).lower() == "true"


def _has_secret(properties: Mapping[str, str], secrets: tuple[str, ...]) -> bool:
    return any(name.startswith(secrets) for name in properties)
