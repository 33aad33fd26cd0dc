"""How this project talks to a Redis or Valkey server, whatever it says: connections and errors.

* No resending: redis-py repeats whole commands by default, which runs writes twice.
* RESP2 and raw answers for the stream commands: their parsed shapes differ between versions of
  redis-py and with its settings, so `redis_stream` reads the wire shapes itself.
* A call that blocks has a connection of its own while it blocks, so it never delays another call.
  Every call is bounded in time: a half-open link must not hang for ever.

Messages name the server without its password.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any
from urllib.parse import urlsplit

from redis.asyncio import BlockingConnectionPool, ConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, NoPermissionError, RedisError, ResponseError

from committer.errors import AccessError, QueueUnavailableError, SettingsError
from committer.together import Together

_COMMAND_CONNECTIONS_MAX = 8
_WAITING_CONNECTIONS_MAX = 1_024
_RAW = ("XREADGROUP", "XREAD", "XPENDING", "XAUTOCLAIM", "XCLAIM")
_DENIED = ("NOAUTH", "WRONGPASS", "NOPERM", "username-password", "uthentica")
_VERSION_MIN = (7, 0)
_Command = tuple[Any, ...]


class RedisConnection:
    """Two pools to one server: one for commands, one for calls that block there."""

    def __init__(self, url: str, *, answer_s_max: float) -> None:
        self.server = _without_secrets(url)
        self._answer_s_max = answer_s_max
        options: dict[str, Any] = {
            "protocol": 2,
            "decode_responses": False,
            "retry": Retry(NoBackoff(), 0),
            "socket_connect_timeout": answer_s_max,
            # Each call is bounded here instead. With its own bound redis-py sends by
            # `asyncio.wait_for`, which in Python 3.11 may swallow the caller's cancellation.
            "socket_timeout": None,
        }
        try:
            self._commands = _client(
                BlockingConnectionPool.from_url(
                    url,
                    max_connections=_COMMAND_CONNECTIONS_MAX,
                    timeout=answer_s_max,
                    **options,
                )
            )
            self._waiting = _client(
                ConnectionPool.from_url(url, max_connections=_WAITING_CONNECTIONS_MAX, **options)
            )
        except ValueError as error:
            raise SettingsError(f"the URL of the queue, {self.server}: {error}") from None
        self._pipelines = Together[tuple[_Command, ...], list[Any]](self._send)

    async def command(self, *words: Any) -> Any:
        async with asyncio.timeout(self._answer_s_max):
            return await self._commands.execute_command(*words)

    async def commands(self, commands: Iterable[_Command]) -> list[Any]:
        """Send all at once, with those of other callers; an answer that is an error is returned,
        not raised.
        """
        return await self._pipelines.call(tuple(commands))

    async def _send(self, groups: Sequence[tuple[_Command, ...]]) -> list[list[Any] | Exception]:
        pipeline = self._commands.pipeline(transaction=False)
        for words in chain.from_iterable(groups):
            pipeline.execute_command(*words)
        async with asyncio.timeout(self._answer_s_max):
            answers = iter(await pipeline.execute(raise_on_error=False))
        return [list(islice(answers, len(group))) for group in groups]

    async def block(self, wait_s: float, *words: Any) -> Any:
        """A command that may wait at the server for `wait_s`."""
        async with asyncio.timeout(wait_s + self._answer_s_max):
            return await self._waiting.execute_command(*words)

    async def probe(self) -> None:
        """Refuse a server that may forget streams, or that lacks commands that we use."""
        async with asyncio.timeout(self._answer_s_max):
            info = await self._commands.info()
        version = str(info.get("redis_version", "unknown"))
        if _parse_version(version) < _VERSION_MIN:
            raise SettingsError(
                f"the queue server {self.server} is version {version},"
                " expected Redis 7.0 or later, or Valkey 8 or later"
            )
        if (policy := info.get("maxmemory_policy")) != "noeviction":
            raise SettingsError(
                f"the queue server {self.server} has maxmemory-policy `{policy}`: it may drop"
                " whole streams without an error. Expected `noeviction`: run `CONFIG SET"
                " maxmemory-policy noeviction` and write the same into its configuration"
            )
        if info.get("cluster_enabled"):
            raise SettingsError(
                f"the queue server {self.server} runs in cluster mode: expected a single primary"
                " (with replicas, if you like)"
            )

    async def close(self) -> None:
        await self._commands.aclose()
        await self._waiting.aclose()

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn errors of the server and of the way to it into ours."""
        try:
            yield
        except (RedisError, OSError, TimeoutError) as error:
            message = f"the queue server {self.server}: {_what_happened(error)}"
            if _is_denied(error):
                raise AccessError(message) from error
            if str(error).startswith("WRONGTYPE"):
                raise SettingsError(f"{message}: a key of ours is in another's use") from error
            raise QueueUnavailableError(message) from error


def raise_first(answers: Iterable[Any]) -> None:
    """Raise the first error of a pipeline's answers."""
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer


def is_group_gone(error: ResponseError) -> bool:
    """The stream or its group was deleted, perhaps while we were blocked on it (FLUSHALL)."""
    return str(error).startswith(("NOGROUP", "UNBLOCKED"))


def _client(pool: ConnectionPool) -> Any:
    """Not typed, because the types of redis-py promise parsed answers, and these are raw."""
    client: Any = Redis.from_pool(pool)
    for name in _RAW:
        client.set_response_callback(name, _raw)
    return client


def _raw(answer: Any, **_: Any) -> Any:
    return answer


def _parse_version(text: str) -> tuple[int, ...]:
    """Valkey tells the version of Redis that it is compatible with."""
    return tuple(int(part) for part in text.split(".")[:2] if part.isdecimal())


def _is_denied(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, (AuthenticationError, NoPermissionError)):
            return True
        if isinstance(error, RedisError) and any(text in str(error) for text in _DENIED):
            return True
        error = error.__cause__ or error.__context__
    return False


def _what_happened(error: BaseException) -> str:
    """Of a connection that was not made, what the system says: the library tells it twice, and
    with a number."""
    cause = error.__cause__ or error.__context__
    if isinstance(error, RedisError) and isinstance(cause, OSError):
        if isinstance(cause, (ssl.SSLError, socket.gaierror)) or not cause.errno:
            return str(cause.strerror or cause)
        return os.strerror(cause.errno)
    return str(error) or type(error).__name__


def _without_secrets(url: str) -> str:
    """`redis://host:6379/0` of `redis://user:password@host:6379/0?option=…`."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "(unreadable)"
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"
