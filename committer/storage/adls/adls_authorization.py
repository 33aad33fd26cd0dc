"""Authorizes requests to Azure's blob service by the account's key or a SAS token. Bearer tokens
are fetched in `entra_tokens`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import replace
from email.utils import formatdate
from urllib.parse import parse_qsl, urlsplit

from committer.errors import SettingsError
from committer.ports.world import World
from committer.storage.http.authorization import Authorization
from committer.storage.http.http_client import HttpRequest

# In this order in what is signed, after the method.
_SIGNED = (
    *("content-encoding", "content-language", "content-length", "content-md5", "content-type"),
    *("date", "if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"),
)


class SharedKey(Authorization):
    """Signs with the key of the account. Errors: `SettingsError` for one that is not base64."""

    def __init__(self, account: str, key: str, world: World) -> None:
        self._account = account
        self._world = world
        try:
            self._key = base64.b64decode(key, validate=True)
        except binascii.Error as error:
            raise SettingsError(
                "`adls.account-key`: expected the base64 of a key of the account"
            ) from error

    async def sign(self, request: HttpRequest) -> HttpRequest:
        dated = {
            **request.headers,
            "x-ms-date": formatdate(self._world.now_ms() / 1000, usegmt=True),
        }
        text = _signed_text(self._account, replace(request, headers=dated))
        digest = hmac.new(self._key, text.encode(), hashlib.sha256).digest()
        signature = base64.b64encode(digest).decode()
        dated["Authorization"] = f"SharedKey {self._account}:{signature}"
        return replace(request, headers=dated)


class SasToken(Authorization):
    """Appends a shared access signature to the query."""

    def __init__(self, token: str) -> None:
        self._token = token.removeprefix("?")

    async def sign(self, request: HttpRequest) -> HttpRequest:
        separator = "&" if "?" in request.url else "?"
        return replace(request, url=f"{request.url}{separator}{self._token}")


def _signed_text(account: str, request: HttpRequest) -> str:
    """Return what is signed.
    Source: "Authorize with Shared Key" of Azure's reference, for blobs since 2015-02-21."""
    headers = {name.lower(): text for name, text in request.headers.items()}
    if request.body:
        headers["content-length"] = str(len(request.body))
    own = "".join(
        f"{name}:{headers[name]}\n" for name in sorted(headers) if name.startswith("x-ms-")
    )
    lines = "\n".join((request.method, *(headers.get(name, "") for name in _SIGNED)))
    return f"{lines}\n{own}{_resource(account, request.url)}"


def _resource(account: str, url: str) -> str:
    parts = urlsplit(url)
    query: Mapping[str, str] = dict(parse_qsl(parts.query, keep_blank_values=True))
    ordered = sorted((name.lower(), text) for name, text in query.items())
    return f"/{account}{parts.path}" + "".join(f"\n{name}:{text}" for name, text in ordered)
