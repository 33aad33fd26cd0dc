"""Sends one HTTP request once to a REST catalog, and reads the answer to its end, within bounds.

aiohttp by itself sends "repeatable" methods again when a kept-alive connection breaks, and follows
redirects, also to another host: both are off here, and so are cookies. No answer takes more memory
or time than the options say.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from committer.catalog.rest.client.rest_answer import (
    Answer,
    AnswerTooLargeError,
    LostAnswerError,
    address_text,
)
from committer.catalog.rest.client.rest_auth import OutgoingRequest
from committer.catalog.rest.client.rest_options import RestOptions, TlsOptions
from committer.errors import CatalogUnavailableError, SettingsError
from committer.http_proxies import HttpProxies

# Servers close idle connections, and a request that meets such a one is lost: ours end first.
_KEEP_ALIVE_S = 10.0
_CONNECTIONS_MAX = 64
_CHUNK_BYTES = 1 << 20
# Of an error: Java's servers may add a stack trace to theirs, and half of one is none.
_REFUSAL_BYTES_MAX = 4 << 20
# An answer may come slowly, though not for ever: this many times the limit between two bytes.
_READS_MAX = 5
# Surely before anything was sent.
_NOT_SENT = (
    aiohttp.ClientConnectorError,
    aiohttp.ClientHttpProxyError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
)


class RestTransport:
    """The connections to one catalog, and to its token endpoint."""

    def __init__(self, options: RestOptions, session: aiohttp.ClientSession) -> None:
        self._options = options
        self._session = session
        self._proxies = HttpProxies()

    @classmethod
    async def open(cls, options: RestOptions) -> RestTransport:
        """Make a session; nothing is sent yet. Errors: `SettingsError` for a certificate."""
        context = await asyncio.to_thread(_tls, options.tls)
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                ssl=context, limit=_CONNECTIONS_MAX, keepalive_timeout=_KEEP_ALIVE_S
            ),
            timeout=aiohttp.ClientTimeout(
                total=options.connect_timeout_s + _READS_MAX * options.read_timeout_s,
                sock_connect=options.connect_timeout_s,
                sock_read=options.read_timeout_s,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        session._retry_connection = False
        return cls(options, session)

    async def send(self, request: OutgoingRequest, proof: Mapping[str, str]) -> Answer:
        """Send the request once. `proof`: headers that say who asks.

        Errors: `CatalogUnavailableError` where nothing was sent; `LostAnswerError`.
        """
        what = f"{request.method} {address_text(request.url)}"
        proven = {name.lower() for name in proof}
        own = {name: text for name, text in request.headers.items() if name.lower() not in proven}
        try:
            async with self._session.request(
                request.method,
                URL(request.url, encoded=True),
                headers={**own, **proof},
                data=request.body or None,
                allow_redirects=False,
                proxy=self._proxies.of(request.url),
                skip_auto_headers=("Content-Type",),
            ) as response:
                content = await self._content(response)
                named = {name.lower(): text for name, text in response.headers.items()}
                return Answer(what, response.status, named, content)
        except _TooLargeError as error:
            raise AnswerTooLargeError(
                f"{what}: the answer is lost ({error})", error.size_bytes
            ) from error
        except _NOT_SENT as error:
            raise CatalogUnavailableError(f"{what}: no connection: {_words(error)}") from error
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise LostAnswerError(f"{what}: the answer is lost ({_words(error)})") from error

    async def ask_for_token(self, url: str, form: Mapping[str, str]) -> Answer:
        """Send a form once, with none of the catalog's headers.

        Errors: `CatalogUnavailableError`, also where the answer is lost.
        """
        headers = {
            "accept": "application/json",
            "content-type": "application/x-www-form-urlencoded",
        }
        request = OutgoingRequest("POST", url, headers, urlencode(form).encode())
        try:
            return await self.send(request, {})
        except LostAnswerError as error:
            raise CatalogUnavailableError(f"{error}: no token") from error

    async def _content(self, response: aiohttp.ClientResponse) -> bytes:
        """Read the body, unpacked where the server has packed it although it should not. Of an
        error the beginning is enough.
        """
        is_error = response.status >= 300
        limit = _REFUSAL_BYTES_MAX if is_error else self._options.answer_bytes_max
        chunks: list[bytes] = []
        size_bytes = response.content_length or 0
        if size_bytes > limit and not is_error:
            raise _TooLargeError(limit, size_bytes)
        size_bytes = 0
        async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
            chunks.append(chunk)
            size_bytes += len(chunk)
            if size_bytes > limit and is_error:
                break
            if size_bytes > limit:
                raise _TooLargeError(limit, size_bytes)
        return b"".join(chunks)

    async def close(self) -> None:
        """Release connections. Idempotent."""
        await self._session.close()


class _TooLargeError(aiohttp.ClientPayloadError):
    """An answer that does not fit."""

    def __init__(self, bytes_max: int, size_bytes: int) -> None:
        super().__init__(f"it has more than {bytes_max:,} bytes")
        self.size_bytes = size_bytes


def _words(error: Exception) -> str:
    """Return what a message may say of it: the text of others may hold a password or a URL."""
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy refuses it: HTTP {error.status}"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"{error.certificate_error}; check `ssl.cabundle`"
    if isinstance(error, aiohttp.ClientOSError) and "SSL" in str(error):
        return f"{error.strerror or error}; check `ssl.cabundle` and `ssl.client.cert`"
    if isinstance(error, aiohttp.ClientConnectorError):
        return str(error)
    return type(error).__name__


def _tls(options: TlsOptions) -> ssl.SSLContext:
    """Return what a connection trusts. Errors: `SettingsError` for a file that cannot be used."""
    context = ssl.create_default_context()
    if options.ca_bundle:
        try:
            context.load_verify_locations(cafile=options.ca_bundle)
        except (OSError, ValueError) as error:
            raise SettingsError(f"`ssl.cabundle` {options.ca_bundle}: {error}") from error
    if options.client_certificate:
        _show_certificate(context, options)
    return context


def _show_certificate(context: ssl.SSLContext, options: TlsOptions) -> None:
    asked: list[bool] = []

    def no_passphrase() -> str:
        """Answer in place of a question on the terminal, which would wait for ever."""
        asked.append(True)
        return ""

    certificate, key = options.client_certificate, options.client_key or None
    try:
        context.load_cert_chain(certificate, key, no_passphrase)
    except (OSError, ValueError) as error:
        why = "its key has a passphrase; expected one without" if asked else str(error)
        raise SettingsError(f"`ssl.client.cert` {certificate}: {why}") from error
