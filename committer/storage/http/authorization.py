"""Authorizes requests to object stores: not at all, or by tokens that are renewed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from committer.errors import AccessError, TransientError
from committer.ports.world import World
from committer.storage.http.http_client import HttpRequest

_RENEWED_BEFORE_MS = 300_000


class Authorization(Protocol):
    """Signs requests; nothing is renewed unless a kind of it says so."""

    async def sign(self, request: HttpRequest) -> HttpRequest:
        """Return the request as it is sent.

        Errors: `AccessError`; `StorageUnavailableError` where a token cannot be had now.
        """

    def forget(self, refused: HttpRequest) -> bool:
        """Forget what the store has refused with 401. False where there is nothing else to send."""
        return False


class Anonymous(Authorization):
    """Requests as they are, for public buckets and for emulators."""

    async def sign(self, request: HttpRequest) -> HttpRequest:
        return request


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token. `ends_ms`: when it ends; None if that is not known."""

    text: str = field(repr=False)
    ends_ms: int | None


class StaticToken(Authorization):
    """A token that was given, and cannot be renewed here. `name`: the property that holds it."""

    def __init__(self, token: Token, name: str, world: World) -> None:
        self._token = token
        self._name = name
        self._world = world

    async def sign(self, request: HttpRequest) -> HttpRequest:
        if self._token.ends_ms is not None and self._token.ends_ms <= self._world.now_ms():
            raise AccessError(f"the token of `{self._name}` has expired: give a fresh one")
        return with_bearer(request, self._token)


class RenewedToken(Authorization):
    """A token that is fetched when it is needed, and again 5 minutes before it ends.

    While a token is still valid, a renewal without an answer only means that it is tried again.
    """

    def __init__(self, fetch: Callable[[], Awaitable[Token]], world: World) -> None:
        self._fetch = fetch
        self._world = world
        self._token: Token | None = None
        self._fetching: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

    async def sign(self, request: HttpRequest) -> HttpRequest:
        return with_bearer(request, await self._current())

    def forget(self, refused: HttpRequest) -> bool:
        # Of many calls with one token the first drops it, and the others take its successor.
        if self._token is not None and _bearer(self._token) == refused.headers.get("Authorization"):
            self._token = None
        return True

    async def _current(self) -> Token:
        async with self._lock():
            if self._token is None or self._ends_within(_RENEWED_BEFORE_MS):
                try:
                    self._token = await self._fetch()
                except TransientError:
                    if self._token is None or self._ends_within(0):
                        raise
            return self._token

    def _ends_within(self, duration_ms: int) -> bool:
        ends_ms = None if self._token is None else self._token.ends_ms
        return ends_ms is not None and ends_ms - duration_ms <= self._world.now_ms()

    def _lock(self) -> asyncio.Lock:
        loop = asyncio.get_running_loop()
        if self._fetching is None or self._fetching[0] is not loop:
            self._fetching = (loop, asyncio.Lock())
        return self._fetching[1]


def with_bearer(request: HttpRequest, token: Token) -> HttpRequest:
    """Return the request with the token."""
    return replace(request, headers={**request.headers, "Authorization": _bearer(token)})


def _bearer(token: Token) -> str:
    return f"Bearer {token.text}"
