"""The part of a vended credential that travels with the tasks of a write. Runs on the driver only.

Decision: docs/decisions/25-short-lived-credentials-travel.md.
"""

from __future__ import annotations

from dataclasses import replace

from committer.ports.table_credentials import VendedCredential
from workers.files.adls_files import AdlsAccess, VendedSignature
from workers.files.gcs_files import GcsAccess, VendedToken
from workers.files.s3_files import S3Access, VendedKeys
from workers.files.store_access import StoreAccess


def access_of_tasks(own: StoreAccess, vended: VendedCredential | None) -> StoreAccess:
    """Return the access to the stores that tasks get: where they are, as the catalog says or else
    the driver; and secrets only if they end. Without, each executor finds its own.
    """
    if vended is None:
        return own
    return StoreAccess(
        s3=_s3_access(own.s3, vended),
        gcs=_gcs_access(own.gcs, vended),
        adls=_adls_access(own.adls, vended),
    )


def _s3_access(own: S3Access, vended: VendedCredential) -> S3Access:
    named = vended.properties
    is_path = named.get("s3.path-style-access", "").lower() == "true"
    is_virtual = named.get("s3.force-virtual-addressing", "").lower() == "true"
    return replace(
        own,
        region=named.get("s3.region") or named.get("client.region") or own.region,
        endpoint_url=named.get("s3.endpoint") or own.endpoint_url,
        is_virtual=is_virtual or (own.is_virtual and not is_path),
        keys=_temporary_keys(vended),
    )


def _temporary_keys(vended: VendedCredential) -> VendedKeys | None:
    key, secret, token = (
        vended.properties.get(f"s3.{name}", "")
        for name in ("access-key-id", "secret-access-key", "session-token")
    )
    if not (key and secret and token) or vended.expires_ms is None:
        return None
    return VendedKeys(key, secret, token, vended.expires_ms)


def _gcs_access(own: GcsAccess, vended: VendedCredential) -> GcsAccess:
    token, ends_ms = vended.properties.get("gcs.oauth2.token", ""), vended.expires_ms
    if not token or ends_ms is None:
        return own
    host = vended.properties.get("gcs.service.host") or own.host
    return GcsAccess(host, own.is_anonymous, VendedToken(token, ends_ms))


def _adls_access(own: AdlsAccess, vended: VendedCredential) -> AdlsAccess:
    named = vended.properties
    token, account = named.get("adls.sas-token", ""), named.get("adls.account-name", "")
    if not (token and account) or vended.expires_ms is None:
        return own
    return AdlsAccess(
        account=account,
        authority=named.get("adls.blob-storage-authority") or own.authority,
        scheme=named.get("adls.blob-storage-scheme") or own.scheme,
        signature=VendedSignature(account, token, vended.expires_ms),
    )
