"""Google's tokens, from where every Google tool finds its credentials: a key file or another one
that `GOOGLE_APPLICATION_CREDENTIALS` names, `gcloud auth application-default login`, the metadata
server of a machine or pod.

The library is synchronous and asks about once an hour: it runs in a thread.
"""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from collections.abc import Mapping
from datetime import UTC
from email.message import Message
from typing import Any

import google.auth
from google.auth import exceptions, transport

from committer.errors import AccessError, StorageUnavailableError
from committer.storage.http.authorization import Token

_SCOPES = ("https://www.googleapis.com/auth/devstorage.read_write",)
_TIMEOUT_S = 20


class GoogleTokens:
    """Fetches tokens of the usual credentials, which are found once."""

    def __init__(self) -> None:
        self._credentials: Any = None

    async def fetch(self) -> Token:
        """Fetch a token. Errors: `AccessError`; `StorageUnavailableError` without an answer."""
        return await asyncio.to_thread(self._fetch)

    def _fetch(self) -> Token:
        try:
            if self._credentials is None:
                self._credentials, _ = google.auth.default(_SCOPES, request=_Transport())
            self._credentials.refresh(_Transport())
        except exceptions.DefaultCredentialsError as error:
            raise AccessError(
                f"no Google credentials: {error} Set GOOGLE_APPLICATION_CREDENTIALS or"
                " `gcs.oauth2.token`; `gcs.no-auth` for an emulator or a public bucket"
            ) from error
        except exceptions.GoogleAuthError as error:
            if error.retryable or isinstance(error, exceptions.TransportError):
                raise StorageUnavailableError(f"no token of Google: {error}") from error
            raise AccessError(f"the Google credentials give no token: {error}") from error
        expiry = self._credentials.expiry
        ends_ms = None if expiry is None else int(expiry.replace(tzinfo=UTC).timestamp() * 1000)
        return Token(self._credentials.token, ends_ms)


class _Answer(transport.Response):
    def __init__(self, status: int, headers: Message, data: bytes) -> None:
        self._status, self._headers, self._data = status, headers, data

    @property
    def status(self) -> int:
        return self._status

    @property
    def headers(self) -> Message:
        return self._headers

    @property
    def data(self) -> bytes:
        return self._data


class _Transport(transport.Request):
    """Requests of the library, by the standard library."""

    def __call__(
        self,
        url: str,
        method: str = "GET",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        **_: object,
    ) -> transport.Response:
        request = urllib.request.Request(url, body, dict(headers or {}), method=method)  # noqa: S310  # the credentials name the URL
        try:
            with urllib.request.urlopen(request, timeout=timeout or _TIMEOUT_S) as answer:  # noqa: S310
                return _Answer(answer.status, answer.headers, answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return _Answer(error.code, error.headers, error.read())
        except OSError as error:
            raise exceptions.TransportError(str(error)) from error  # type: ignore[no-untyped-call]  # its __init__ has no annotations
