"""The client of a REST catalog: its configuration, its tokens, and when a request is sent again.

A request is sent once, but for two cases in which nothing can be applied twice: its token was
refused (nothing was applied), or its answer was lost and it has an idempotency key, by which the
server knows it. Three errors tell how far a request came: `CatalogUnavailableError` (no connection,
so nothing was sent), `LostAnswerError` (sent, perhaps in part, and no answer), and an `Answer` of
any status, which the caller judges.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from urllib.parse import urlencode
from uuid import UUID

import orjson

from committer.catalog.rest.client.rest_answer import (
    UNAUTHORIZED,
    Answer,
    AnswerTooLargeError,
    LostAnswerError,
)
from committer.catalog.rest.client.rest_auth import Auth, FixedAuth, OAuth2Auth, OutgoingRequest
from committer.catalog.rest.client.rest_configuration import configuration_of, first_configuration
from committer.catalog.rest.client.rest_options import BasicOptions, OAuth2Options, RestOptions
from committer.catalog.rest.client.rest_paths import Paths
from committer.catalog.rest.client.rest_transport import RestTransport
from committer.errors import (
    AccessError,
    CatalogUnavailableError,
    FrazilError,
    ObjectTooLargeError,
    SettingsError,
)
from committer.ports.world import World
from committer.url_text import without_secrets

PAGES_MAX = 100_000
_PAGE_TOKEN_CHARS_MAX = 8_192
# A gateway says that it has lost the server's answer.
_LOST_BEHIND = frozenset((502, 504))


class RestClient:
    """A configured client."""

    def __init__(
        self, options: RestOptions, transport: RestTransport, auth: Auth, world: World
    ) -> None:
        self._options = options
        self._transport = transport
        self._auth = auth
        self._world = world
        self._configuration = first_configuration(options)

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
        base = first_configuration(options).base
        transport = await RestTransport.open(options)
        try:
            client = cls(options, transport, _auth_of(auth, base, transport, world), world)
            await client._configure(properties or {})
        except BaseException:
            await transport.close()
            raise
        return client

    @property
    def paths(self) -> Paths:
        return self._configuration.paths

    @property
    def properties(self) -> Mapping[str, str]:
        """The server's configuration and ours, as they hold together; it may hold secrets."""
        return self._configuration.properties

    async def close(self) -> None:
        """Release connections. Idempotent."""
        await self._transport.close()

    # --- Configuration ---

    async def _configure(self, own: Mapping[str, str]) -> None:
        query = {"warehouse": self._options.warehouse} if self._options.warehouse else {}
        try:
            answer = await self.send("GET", "v1/config", query=query)
        except LostAnswerError as error:
            raise CatalogUnavailableError(f"{error}{self._hint_of_tls}") from error
        if not answer.is_success:
            raise self._no_configuration(answer)
        self._configuration = configuration_of(answer.json(), self._options, own)

    @property
    def _hint_of_tls(self) -> str:
        """A server that wants a certificate of ours ends the connection, and does not say why."""
        options = self._options
        is_without = options.uri.startswith("https:") and not options.tls.client_certificate
        return "; a server may want a certificate, `ssl.client.cert`" if is_without else ""

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

    async def read_table(
        self,
        path: str,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Ask for a table. Errors: as `read`; `ObjectTooLargeError` where its metadata has too many
        bytes, which stops that table alone.
        """
        try:
            return await self.send("GET", path, query=query, headers=headers)
        except AnswerTooLargeError as error:
            raise ObjectTooLargeError(
                f"{self._configuration.base}/{path}",
                error.size_bytes,
                self._options.answer_bytes_max,
                advice=self._options.large_table_advice,
            ) from error
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
        own = {"accept": "application/json", "accept-encoding": "identity"}
        body = b""
        if json is not None:
            body = orjson.dumps(json)
            own["content-type"] = "application/json"
        has_key = method != "GET" and self._configuration.takes_idempotency_keys
        if has_key:
            own["idempotency-key"] = _uuid7(self._world)
        known = self._configuration
        url = f"{known.base}/{path}" + (f"?{urlencode(query)}" if query else "")
        request = OutgoingRequest(method, url, {**known.headers, **own, **(headers or {})}, body)
        return await (self._send_by_key(request) if has_key else self._send(request))

    async def _send(self, request: OutgoingRequest) -> Answer:
        """Send a request, with a new token once more if its token is refused."""
        proof, sent_ms = await self._auth.headers(request), self._world.now_ms()
        answer = await self._transport.send(request, proof)
        if answer.status in UNAUTHORIZED and await self._auth.renew(proof):
            proof, sent_ms = await self._auth.headers(request), self._world.now_ms()
            answer = await self._transport.send(request, proof)
        return replace(answer, sent_ms=sent_ms)

    async def _send_by_key(self, request: OutgoingRequest) -> Answer:
        """Send a request, and the same once more if its answer is lost: by its key the server
        returns the answer to the first. Errors: as `send`; after the first, `LostAnswerError` only.
        """
        try:
            answer = await self._send(request)
            if answer.status not in _LOST_BEHIND:
                return answer
            lost = LostAnswerError(str(answer))
        except LostAnswerError as error:
            lost = error
        try:
            return replace(await self._send(request), is_resent=True)
        except (CatalogUnavailableError, AccessError, LostAnswerError) as error:
            raise LostAnswerError(f"{lost}; once more with its key: {error}") from error

    async def change(
        self, method: str, path: str, json: object = None, query: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a change that may be repeated or looked up. Errors: `CatalogUnavailableError`, also
        where it may have been applied; `AccessError`.
        """
        try:
            answer = await self.send(method, path, json, query=query)
        except LostAnswerError as error:
            raise _in_doubt(str(error)) from error
        if answer.is_resent and not answer.is_success:
            raise _in_doubt(str(answer))
        return answer

    async def pages(self, path: str, query: str = "") -> AsyncIterator[Answer]:
        """Read a list page by page. `query`: encoded already. Errors: as `read`;
        `CatalogUnavailableError` for a list that has no end.
        """
        asked: dict[str, str] = {}
        if size := self._configuration.page_size:
            asked = {"pageSize": str(size), "pageToken": ""}
        seen: set[str] = set()
        for _ in range(PAGES_MAX):
            full = "&".join(filter(None, (query, urlencode(asked))))
            answer = await self.read(f"{path}?{full}" if full else path)
            yield answer
            token = answer.json().get("next-page-token") if answer.is_success else None
            if not token:
                return
            if not _is_page_token(token) or token in seen:
                break
            seen.add(token)
            asked["pageToken"] = token
        raise CatalogUnavailableError(
            f"{answer.what}: the list has no end: its `next-page-token` repeats, is none, or more"
            f" than {PAGES_MAX:,} pages came"
        )


def _auth_of(
    auth: Auth | OAuth2Options | BasicOptions | None,
    catalog_uri: str,
    transport: RestTransport,
    world: World,
) -> Auth:
    match auth:
        case None:
            return FixedAuth({})
        case BasicOptions():
            return FixedAuth.basic(auth)
        case OAuth2Options():
            ask = transport.ask_for_token
            return OAuth2Auth(auth, catalog_uri=catalog_uri, post_form=ask, world=world)
        case _:
            return auth


def _is_page_token(found: object) -> bool:
    return isinstance(found, str) and len(found) <= _PAGE_TOKEN_CHARS_MAX


def _in_doubt(text: str) -> CatalogUnavailableError:
    return CatalogUnavailableError(
        f"{text}; it is unknown whether it was applied: look before it is repeated"
    )


def _uuid7(world: World) -> str:
    """Return a fresh uuid of version 7: its time, then chance."""
    random = world.uuid().int
    time = (world.now_ms() & ((1 << 48) - 1)) << 80
    version, variant = 7 << 76, 2 << 62
    chance = ((random >> 64) & 0xFFF) << 64 | random & ((1 << 62) - 1)
    return str(UUID(int=time | version | chance | variant))
