"""The part of a vended credential that travels with the tasks of a write. Runs on the driver only.

Decision: docs/decisions/25-short-lived-credentials-travel.md.
"""

from __future__ import annotations

from dataclasses import replace

from committer.ports.table_credentials import VendedCredential
from workers.s3_files import S3Access, VendedKeys


def access_of_tasks(own: S3Access, vended: VendedCredential | None) -> S3Access:
    """Return the access to S3 that tasks get: where it is, as the catalog says or else the driver;
    and keys only if they are temporary. Without, each executor finds its own.
    """
    if vended is None:
        return own
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
