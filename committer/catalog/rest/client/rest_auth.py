"""Authentication of a client: headers for each request, renewed before they expire.

OAuth2: client credentials are sent to the token endpoint; the answer's token goes into each
request. A token is renewed by the credential, never by itself, and always before its end. Nothing
here is ever logged or part of an error.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import orjson

from committer.catalog.rest.client.rest_answer import Answer
from committer.catalog.rest.client.rest_options import BasicOptions, OAuth2Options
from committer.errors import AccessError, CatalogUnavailableError, FrazilError
from committer.ports.world import World

TOKEN_PATH = "v1/oauth/tokens"  # noqa: S105  # a path
LIFETIME_S = 3_600.0
"""Of a token whose end nothing says."""
_EARLY_S_MAX = 300.0
_EARLY_SHARE = 0.1
# Behind a renewal that failed while the token is still good.
_PAUSE_S = 10.0


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """The parts of a request that a signature covers."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes


class Auth(Protocol):
    """Says who asks; nothing is renewed unless a kind of it says so."""

    async def headers(self, request: OutgoingRequest) -> Mapping[str, str]:
        """Return the headers that this request needs beside its own.

        Errors: `AccessError`; `CatalogUnavailableError` where the token endpoint does not answer.
        """

    async def renew(self, refused: Mapping[str, str]) -> bool:
        """Renew what the server has just refused, by the headers that it was sent. False: there is
        nothing to renew. Errors: as `headers`.
        """
        return False


class FixedAuth(Auth):
    """The same headers for each request: none, a user's name and password, a token."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = headers

    @classmethod
    def basic(cls, options: BasicOptions) -> FixedAuth:
        pair = f"{options.username}:{options.password}".encode()
        return cls({"Authorization": f"Basic {base64.b64encode(pair).decode()}"})

    async def headers(self, request: OutgoingRequest) -> Mapping[str, str]:
        return self._headers


Sign = Callable[[str, str, Mapping[str, str], bytes], Awaitable[Mapping[str, str]]]


class SignedAuth(Auth):
    """A signature for each request. `sign`: see `committer.aws.request_signer`."""

    def __init__(self, sign: Sign) -> None:
        self._sign = sign

    async def headers(self, request: OutgoingRequest) -> Mapping[str, str]:
        return await self._sign(request.method, request.url, request.headers, request.body)


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token. Times are those of the loop's clock."""

    text: str = field(repr=False)
    renew_at_s: float
    ends_at_s: float

    @property
    def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self.text}"}


PostForm = Callable[[str, Mapping[str, str]], Awaitable[Answer]]


class OAuth2Auth(Auth):
    """Fetches tokens by client credentials. `post_form` sends a form to a URL, once."""

    def __init__(
        self, options: OAuth2Options, *, catalog_uri: str, post_form: PostForm, world: World
    ) -> None:
        self._options = options
        self._url = options.server_uri or f"{catalog_uri.rstrip('/')}/{TOKEN_PATH}"
        self._post_form = post_form
        self._world = world
        self._renewing = asyncio.Lock()
        self._token: Token | None = None
        self._is_static = bool(options.token)

    async def headers(self, request: OutgoingRequest) -> Mapping[str, str]:
        token = self._token
        if token is None or self._now_s() >= token.renew_at_s:
            async with self._renewing:
                token = await self._current()
        return token.headers

    async def renew(self, refused: Mapping[str, str]) -> bool:
        if not self._options.credential:
            return False
        async with self._renewing:
            # Another request may have renewed it in the meantime.
            if self._token is not None and self._token.headers == refused:
                self._token = await self._fetch()
        return True

    async def _current(self) -> Token:
        """Return a token that is good, a new one if it is time. One renewal at a time."""
        token, now_s = self._token, self._now_s()
        if token is None and self._is_static:
            token = self._token = self._given(now_s)
        if token is not None and (now_s < token.renew_at_s or not self._options.credential):
            return token
        try:
            self._token = await self._fetch()
        except CatalogUnavailableError:
            if token is None or now_s >= token.ends_at_s:
                raise
            self._token = Token(token.text, now_s + _PAUSE_S, token.ends_at_s)
        return self._token

    def _given(self, now_s: float) -> Token:
        """Return the token of the configuration. Without a credential it is used to its end."""
        text = self._options.token
        left_s = _lifetime_by_claim(text, self._world.now_ms())
        return _token(text, float("inf") if left_s is None else left_s, now_s)

    async def _fetch(self) -> Token:
        client_id, separator, secret = self._options.credential.partition(":")
        if not separator:
            client_id, secret = "", client_id
        form = {
            "grant_type": "client_credentials",
            "client_id": client_id,
            "client_secret": secret,
            "scope": self._options.scope,
            "audience": self._options.audience,
            "resource": self._options.resource,
        }
        asked_s = self._now_s()
        answer = await self._post_form(self._url, {key: text for key, text in form.items() if text})
        if not answer.is_success:
            raise self._refused(answer)
        found = answer.json()
        text, lifetime_s = found.get("access_token"), found.get("expires_in")
        if not isinstance(text, str) or not is_header_text(text):
            raise AccessError(f"{answer.what}: the answer has no usable `access_token`")
        if not isinstance(lifetime_s, int | float) or isinstance(lifetime_s, bool):
            lifetime_s = _lifetime_by_claim(text, self._world.now_ms())
        return _token(text, LIFETIME_S if lifetime_s is None else float(lifetime_s), asked_s)

    def _refused(self, answer: Answer) -> FrazilError:
        """Name the code of OAuth2's own errors, which have another form."""
        if answer.status >= 500 or answer.status == 429:
            return CatalogUnavailableError(f"{answer.what}: HTTP {answer.status}: no token")
        code = ""
        try:
            told = orjson.loads(answer.content).get("error")
            code = told if isinstance(told, str) else ""
        except (orjson.JSONDecodeError, AttributeError):
            code = ""
        shown = f" {code[:60]}" if code.isprintable() and code else ""
        return AccessError(
            f"{answer.what}: HTTP {answer.status}{shown}: no token is given; check `credential`"
            " (`id:secret`), `scope` and `oauth2-server-uri`"
        )

    def _now_s(self) -> float:
        return self._world.monotonic_s()


def is_header_text(text: str) -> bool:
    """Return whether a text can stand in a header: a line break would begin another one."""
    return bool(text) and text.isascii() and text.isprintable()


def _token(text: str, lifetime_s: float, now_s: float) -> Token:
    early_s = min(lifetime_s * _EARLY_SHARE, _EARLY_S_MAX)
    return Token(text, now_s + lifetime_s - early_s, now_s + lifetime_s)


def _lifetime_by_claim(token: str, now_ms: int) -> float | None:
    """Return how long a JSON web token is good by its claim `exp`; None where it has none."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    padded = parts[1] + "=" * (-len(parts[1]) % 4)
    try:
        ends_s = orjson.loads(base64.urlsafe_b64decode(padded))["exp"]
        return float(ends_s) - now_ms / 1000
    except (binascii.Error, ValueError, KeyError, TypeError):
        return None
