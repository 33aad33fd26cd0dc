"""The HTTP client of a REST catalog: its configuration, and requests that are sent once.

A request is sent once. Only what was refused for its token is sent again with a new one: nothing
was applied. Three errors tell how far a request came: `CatalogUnavailableError` (no connection, so
nothing was sent), `LostAnswerError` (sent, perhaps in part, and no answer), and an `Answer` of any
status, which the caller judges.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode, urlsplit

import aiohttp
import orjson
from yarl import URL

from committer.catalog.rest.rest_answer import UNAUTHORIZED, Answer, LostAnswerError
from committer.catalog.rest.rest_auth import (
    Auth,
    FixedAuth,
    OAuth2Auth,
    OutgoingRequest,
    is_header_text,
)
from committer.catalog.rest.rest_options import (
    BasicOptions,
    OAuth2Options,
    RestOptions,
    TlsOptions,
)
from committer.catalog.rest.rest_paths import DEFAULT_ENDPOINTS, UNIT_SEPARATOR, Paths
from committer.errors import CatalogUnavailableError, FrazilError, SettingsError
from committer.ports.world import World
from committer.url_text import without_secrets

_HEADER_PREFIX = "header."
# Servers close idle connections, and a request that meets such a one is lost: ours end first.
_KEEP_ALIVE_S = 10.0
_CONNECTIONS_MAX = 64
_PAGES_MAX = 100_000
_ANSWER_BYTES_MAX = 1 << 30
_CHUNK_BYTES = 1 << 20
# Surely before anything was sent.
_NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)


class RestClient:
    """A configured client. `properties`: what the server's configuration and ours amount to, with
    the server's overrides; it may hold secrets.
    """

    def __init__(
        self, options: RestOptions, session: aiohttp.ClientSession, auth: Auth, world: World
    ) -> None:
        self._options = options
        self._session = session
        self._auth = auth
        self._world = world
        self._base = options.uri.rstrip("/")
        self._headers: Mapping[str, str] = options.headers
        self.paths = Paths(options.prefix)
        self.properties: Mapping[str, str] = {}
        self.takes_idempotency_keys = False

    @classmethod
    async def open(
        cls,
        options: RestOptions,
        *,
        world: World,
        auth: Auth | OAuth2Options | BasicOptions | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> RestClient:
        """Connect, and take over the server's configuration. `properties`: our own, which stand
        between the server's defaults and its overrides.

        Errors: `SettingsError` for a wrong address, warehouse or certificate; `AccessError`;
        `CatalogUnavailableError`.
        """
        _check(options)
        context = await asyncio.to_thread(_tls, options.tls)
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                ssl=context, limit=_CONNECTIONS_MAX, keepalive_timeout=_KEEP_ALIVE_S
            ),
            timeout=aiohttp.ClientTimeout(
                total=options.connect_timeout_s + 5 * options.read_timeout_s,
                sock_connect=options.connect_timeout_s,
                sock_read=options.read_timeout_s,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        # It would send a DELETE again whose connection breaks.
        session._retry_connection = False
        client = cls(options, session, FixedAuth({}), world)
        try:
            client._auth = client._auth_of(auth)
            await client._configure(properties or {})
        except BaseException:
            await client.close()
            raise
        return client

    def _auth_of(self, auth: Auth | OAuth2Options | BasicOptions | None) -> Auth:
        match auth:
            case None:
                return FixedAuth({})
            case BasicOptions():
                return FixedAuth.basic(auth)
            case OAuth2Options():
                return OAuth2Auth(
                    auth,
                    catalog_uri=self._base,
                    post_form=self._post_form,
                    world=self._world,
                )
            case _:
                return auth

    async def close(self) -> None:
        """Release connections. Idempotent."""
        await self._session.close()

    # --- Configuration ---

    async def _configure(self, own: Mapping[str, str]) -> None:
        query = {"warehouse": self._options.warehouse} if self._options.warehouse else {}
        answer = await self.read("v1/config", query)
        if not answer.is_success:
            raise self._no_configuration(answer)
        found = answer.json()
        defaults, overrides = _texts(found.get("defaults")), _texts(found.get("overrides"))
        self.properties = {**defaults, **own, **overrides}
        self._base = self.properties.get("uri", self._base).rstrip("/")
        self._headers = {
            **_headers(defaults),
            **self._options.headers,
            **_headers(overrides),
        }
        own_prefix = {"prefix": self._options.prefix} if self._options.prefix else {}
        named = {**defaults, **own_prefix, **overrides}
        self.paths = Paths(
            named.get("prefix", ""),
            named.get("namespace-separator", UNIT_SEPARATOR),
            _endpoints(found.get("endpoints")),
        )
        self._options = replace(self._options, page_size=_page_size(named, self._options))
        self.takes_idempotency_keys = found.get("idempotency-key-lifetime") is not None

    def _no_configuration(self, answer: Answer) -> FrazilError:
        """Return why there is no configuration, by the setting to correct."""
        if answer.status in (400, 404) and answer.error is not None and self._options.warehouse:
            return SettingsError(
                f"`warehouse` {self._options.warehouse}: the catalog refuses it: {answer}"
            )
        if answer.status in (400, 404, 405) or 300 <= answer.status < 400:
            return SettingsError(
                f"`uri` {without_secrets(self._options.uri)}: there is no REST catalog; expected"
                f" the address before `/v1/config`: {answer}"
            )
        return answer.as_error()

    # --- Requests ---

    async def read(
        self,
        path: str,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Ask for something. Errors: `CatalogUnavailableError`, `AccessError` of the token."""
        try:
            return await self.send("GET", path, query=query, headers=headers)
        except LostAnswerError as error:
            raise CatalogUnavailableError(str(error)) from error

    async def send(
        self,
        method: str,
        path: str,
        json: object = None,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send one request. A change gets an idempotency key where the server takes them.

        Errors: `CatalogUnavailableError` and `AccessError` where nothing was applied;
        `LostAnswerError`.
        """
        # Compressed answers have another ETag on some servers, which then never matches again.
        own = {"Accept": "application/json", "Accept-Encoding": "identity"}
        body = b""
        if json is not None:
            body = orjson.dumps(json)
            own["Content-Type"] = "application/json"
        if method != "GET" and self.takes_idempotency_keys:
            own["Idempotency-Key"] = _uuid7(self._world)
        url = f"{self._base}/{path}" + (f"?{urlencode(query)}" if query else "")
        request = OutgoingRequest(method, url, {**self._headers, **own, **(headers or {})}, body)
        proof = await self._auth.headers(request)
        answer = await self._send_once(request, proof)
        if answer.status in UNAUTHORIZED and await self._auth.renew(proof):
            proof = await self._auth.headers(request)
            answer = await self._send_once(request, proof)
        return answer

    async def change(
        self, method: str, path: str, json: object = None, query: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a change that may be repeated or looked up. Errors: `CatalogUnavailableError`, also
        where it may have been applied; `AccessError`.
        """
        try:
            return await self.send(method, path, json, query=query)
        except LostAnswerError as error:
            raise CatalogUnavailableError(
                f"{error}; it is unknown whether it was applied: look before it is repeated"
            ) from error

    async def pages(self, path: str, query: str = "") -> AsyncIterator[Answer]:
        """Read a list page by page. `query`: encoded already. Errors: as `read`."""
        asked: dict[str, str] = {}
        if self._options.page_size:
            asked = {"pageSize": str(self._options.page_size), "pageToken": ""}
        for _ in range(_PAGES_MAX):
            full = "&".join(filter(None, (query, urlencode(asked))))
            answer = await self.read(f"{path}?{full}" if full else path)
            yield answer
            token = answer.json().get("next-page-token") if answer.is_success else None
            if not token or token == asked.get("pageToken"):
                return
            asked["pageToken"] = str(token)

    async def _send_once(self, request: OutgoingRequest, proof: Mapping[str, str]) -> Answer:
        what = f"{request.method} {request.url}"
        try:
            async with self._session.request(
                request.method,
                URL(request.url, encoded=True),
                headers={**request.headers, **proof},
                data=request.body or None,
                allow_redirects=False,
                skip_auto_headers=("Content-Type",),
            ) as response:
                content = await _content(response)
                headers = {name.lower(): text for name, text in response.headers.items()}
                return Answer(what, response.status, headers, content)
        except _NOT_SENT as error:
            raise CatalogUnavailableError(f"{what}: no connection: {error}") from error
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            # Its text may hold an object's address: the class says enough.
            raise LostAnswerError(f"{what}: the answer is lost ({type(error).__name__})") from error

    async def _post_form(self, url: str, form: Mapping[str, str]) -> Answer:
        """Ask for a token: without ours, and without the catalog's headers."""
        headers = {
            "Accept": "application/json",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        request = OutgoingRequest("POST", url, headers, urlencode(form).encode())
        try:
            return await self._send_once(request, {})
        except LostAnswerError as error:
            raise CatalogUnavailableError(str(error)) from error


async def _content(response: aiohttp.ClientResponse) -> bytes:
    """Read the body, which no server makes larger than we can hold."""
    chunks: list[bytes] = []
    size_bytes = 0
    async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
        chunks.append(chunk)
        size_bytes += len(chunk)
        if size_bytes > _ANSWER_BYTES_MAX:
            raise aiohttp.ClientPayloadError(f"the answer has more than {_ANSWER_BYTES_MAX} bytes")
    return b"".join(chunks)


def _check(options: RestOptions) -> None:
    """Check that requests can be made of the options. Errors: `SettingsError`."""
    try:
        is_address = URL(options.uri).host and urlsplit(options.uri).scheme in ("http", "https")
    except ValueError:
        is_address = False
    if not is_address or "?" in options.uri or "@" in options.uri:
        raise SettingsError(
            f"`uri` {without_secrets(options.uri)}: expected http://HOST or https://HOST, perhaps"
            " with a path, and no user, password or query"
        )
    for name, text in options.headers.items():
        if not (is_header_text(name) and is_header_text(text)):
            raise SettingsError(f"`header.{name}`: expected printable ASCII text on one line")


def _tls(options: TlsOptions) -> ssl.SSLContext:
    """Return what a connection trusts. Errors: `SettingsError` for a file that cannot be used."""
    context = ssl.create_default_context()
    if options.ca_bundle:
        try:
            context.load_verify_locations(cafile=options.ca_bundle)
        except (OSError, ValueError) as error:
            raise SettingsError(f"`ssl.cabundle` {options.ca_bundle}: {error}") from error
    if options.client_certificate:
        try:
            context.load_cert_chain(options.client_certificate, options.client_key or None)
        except (OSError, ValueError) as error:
            raise SettingsError(
                f"`ssl.client.cert` {options.client_certificate}: {error}"
            ) from error
    return context


def _texts(found: Any) -> dict[str, str]:
    """Return the properties of a configuration; what is no text is left out."""
    if not isinstance(found, dict):
        return {}
    return {key: text for key, text in found.items() if isinstance(text, str)}


def _headers(properties: Mapping[str, str]) -> dict[str, str]:
    return {
        name.removeprefix(_HEADER_PREFIX): text
        for name, text in properties.items()
        if name.startswith(_HEADER_PREFIX)
    }


def _endpoints(found: Any) -> frozenset[str]:
    """Return what the server offers. None said: what the protocol began with."""
    if not isinstance(found, list) or not found:
        return DEFAULT_ENDPOINTS
    return frozenset(" ".join(one.split()) for one in found if isinstance(one, str))


def _page_size(named: Mapping[str, str], options: RestOptions) -> int | None:
    text = named.get("rest-page-size", "")
    if options.page_size is not None or not text.isascii() or not text.isdigit():
        return options.page_size
    return int(text) if 0 < len(text) < 9 else None


def _uuid7(world: World) -> str:
    """Return a fresh uuid of version 7: its time, then chance."""
    random = world.uuid().int
    time = (world.now_ms() & ((1 << 48) - 1)) << 80
    version, variant = 7 << 76, 2 << 62
    chance = ((random >> 64) & 0xFFF) << 64 | random & ((1 << 62) - 1)
    value = f"{time | version | chance | variant:032x}"
    return "-".join((value[:8], value[8:12], value[12:16], value[16:20], value[20:]))
