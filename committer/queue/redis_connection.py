"""Connections to a Redis or Valkey server, and the meaning of its errors.

* No resending: redis-py repeats whole commands by default, which runs writes twice.
* RESP2 and raw answers: their parsed shapes differ between versions of redis-py and with its
  settings, so `redis_stream` reads the wire shapes itself.
* A call has a connection of its own, so one that blocks never delays another. Every call is
  bounded in time: a half-open link must not hang for ever.

Messages name the server without its password.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import chain, islice
from typing import Any
from urllib.parse import parse_qs, urlsplit

from hiredis import pack_command
from redis.asyncio import ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, NoPermissionError, RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from committer.errors import (
    AccessError,
    QueueKeyTakenError,
    QueueUnavailableError,
    SettingsError,
)
from committer.group_commit import GroupCommit
from committer.url_text import without_secrets

_DENIED = ("NOAUTH", "WRONGPASS", "NOPERM", "username-password", "uthentica")
_VERSION_MIN = (7, 0)
# The option of redis-py that names the file of a private CA.
_CA_FILE = "ssl_ca_certs"
# Of OpenSSL: the certificate, or one that it rests on, was signed by a CA that is not trusted.
_UNTRUSTED = frozenset({18, 19, 20, 21})
_TIMEOUTS = (TimeoutError, RedisTimeoutError)
_PLAIN_PORT = "name a port that speaks TLS, or begin the URL with `redis://`"
_NO_HANDSHAKE = (
    f"it accepts no TLS connection in time; if the port speaks Redis without TLS, {_PLAIN_PORT}"
)
Command = tuple[Any, ...]


class RedisConnection:
    """As many connections to one server as there are calls at a time."""

    def __init__(self, url: str, *, answer_s_max: float) -> None:
        self.server = without_secrets(url)
        self._answer_s_max = answer_s_max
        try:
            parts = urlsplit(url)
            # Only makes connections: lending them out costs it more than a command does.
            self._maker: Any = ConnectionPool.from_url(
                url,
                protocol=2,
                decode_responses=False,
                retry=Retry(NoBackoff(), 0),
                socket_connect_timeout=answer_s_max,
                # Each call is bounded here instead. With its own bound redis-py sends by
                # `asyncio.wait_for`, which in Python 3.11 may swallow the caller's cancellation.
                socket_timeout=None,
            )
        except ValueError as error:
            raise SettingsError(f"the URL of the queue, {self.server}: {error}") from None
        self._is_tls = parts.scheme == "rediss"
        for file in parse_qs(parts.query).get(_CA_FILE, ()):
            self._check_ca_file(file)
        self._idle: list[Any] = []
        self._busy: set[Any] = set()
        self._pipelines = GroupCommit[tuple[Command, ...], list[Any]](self._send)

    def _check_ca_file(self, file: str) -> None:
        """Refuse a file of certificates that cannot be read: each connection would fail."""
        try:
            ssl.create_default_context(cafile=file)
        except (OSError, ValueError) as error:
            raise SettingsError(
                f"the URL of the queue, {self.server}: `{_CA_FILE}` names `{file}`, which cannot be"
                f" read ({error}); expected a file of the CA's certificates in PEM format"
            ) from None

    async def commands(self, commands: Iterable[Command]) -> list[Any]:
        """Send all at once, with those of other callers;
        an answer that is an error is returned, not raised.
        """
        return await self._pipelines.call(tuple(commands))

    async def results(self, commands: Iterable[Command]) -> list[Any]:
        """Send all at once, as `commands`; the first error is raised."""
        answers = await self.commands(commands)
        raise_first(answers)
        return answers

    async def _send(self, groups: Sequence[tuple[Command, ...]]) -> list[list[Any] | Exception]:
        packed = b"".join(map(pack_command, chain.from_iterable(groups)))
        answers = iter(await self._exchange(self._answer_s_max, packed, sum(map(len, groups))))
        return [list(islice(answers, len(group))) for group in groups]

    async def block(self, wait_s: float, *commands: Command) -> Any:
        """Send all at once; the last may wait at the server for `wait_s`, and its answer is
        returned. The first error is raised.
        """
        packed = b"".join(map(_pack_kept, commands))
        answers = await self._exchange(wait_s + self._answer_s_max, packed, len(commands))
        raise_first(answers)
        return answers[-1]

    async def _exchange(self, bound_s: float, packed: bytes, answers_count: int) -> list[Any]:
        connection = self._idle.pop() if self._idle else self._maker.make_connection()
        self._busy.add(connection)
        is_ready = False
        try:
            async with asyncio.timeout(bound_s):
                await _make_ready(connection)
                is_ready = True
                await connection.send_packed_command(packed, check_health=False)
                answers = [await _answer(connection) for _ in range(answers_count)]
        except BaseException as error:
            # A late answer would be taken for the answer to the next command.
            await connection.disconnect(nowait=True)
            if self._is_tls and not is_ready and isinstance(error, _TIMEOUTS):
                raise TimeoutError(_NO_HANDSHAKE) from error
            raise
        finally:
            self._busy.discard(connection)
        self._idle.append(connection)
        return answers

    async def probe(self) -> None:
        """Refuse a server that may evict streams, or that lacks a needed command."""
        (info,) = await self.results([("INFO",)])
        told = dict(line.split(":", 1) for line in info.decode().split() if ":" in line)
        version = told.get("redis_version", "unknown")
        if _parse_version(version) < _VERSION_MIN:
            raise SettingsError(
                f"the queue server {self.server} is version {version},"
                " expected Redis 7.0 or later, or Valkey 8 or later"
            )
        if (policy := told.get("maxmemory_policy")) != "noeviction":
            raise SettingsError(
                f"the queue server {self.server} has maxmemory-policy `{policy}`: it may drop"
                " whole streams without an error. Expected `noeviction`: run `CONFIG SET"
                " maxmemory-policy noeviction` and write the same into its configuration"
            )
        if told.get("cluster_enabled") == "1":
            raise SettingsError(
                f"the queue server {self.server} runs in cluster mode: expected a single primary"
                " (with replicas, if you like)"
            )

    async def taken(self, expected: Mapping[str, str]) -> dict[str, str]:
        """Return the keys that hold something of another type than expected,
        and what to do about each."""
        answers = await self.results(("TYPE", key) for key in expected)
        found = zip(expected.items(), (answer.decode() for answer in answers), strict=True)
        return {
            key: f"the key `{key}` of the queue server {self.server} holds a {kind}, expected a"
            f" {wanted}: its writer is not Frazil; delete it (`DEL {key}`), and the queue recovers"
            for (key, wanted), kind in found
            if kind not in ("none", wanted)
        }

    async def close(self) -> None:
        """Close all connections; calls that are under way fail."""
        connections = [*self._idle, *self._busy]
        self._idle.clear()
        for connection in connections:
            await connection.disconnect()

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Translate errors of the server and of the network."""
        try:
            yield
        except (RedisError, OSError, TimeoutError) as error:
            message = f"the queue server {self.server}: {_what_happened(error)}"
            if _is_denied(error):
                raise AccessError(message) from error
            if is_key_taken(error):
                raise QueueKeyTakenError(f"{message}: a key of ours is in another's use") from error
            raise QueueUnavailableError(message) from error


def raise_first(answers: Iterable[Any]) -> None:
    """Raise the first error of a pipeline's answers."""
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer


def is_group_gone(error: ResponseError) -> bool:
    """Return whether the stream or its group was deleted,
    perhaps during a blocking read (FLUSHALL).
    """
    return str(error).startswith(("NOGROUP", "UNBLOCKED"))


def is_key_taken(error: object) -> bool:
    """Return whether another program has put another type of value under a key of Frazil."""
    return isinstance(error, ResponseError) and str(error).startswith("WRONGTYPE")


async def _make_ready(connection: Any) -> None:
    """Connect if need be, and leave no answer of an earlier call:
    the server may have closed the connection since."""
    if connection.is_connected:
        with suppress(OSError, RedisError):
            if not await connection.can_read():
                return
        await connection.disconnect(nowait=True)
    await connection.connect()


async def _answer(connection: Any) -> Any:
    try:
        return await connection.read_response()
    except ResponseError as error:
        return error


# Reading new doorbells names 64 streams, always the same.
_pack_kept = lru_cache(maxsize=16)(pack_command)


def _parse_version(text: str) -> tuple[int, ...]:
    """Parse a version; Valkey reports that of Redis with which it is compatible."""
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
    """Return the system's reason for a failed connection: the library repeats it, with a number."""
    cause = error.__cause__ or error.__context__
    if isinstance(error, RedisError) and isinstance(cause, OSError):
        if isinstance(cause, ssl.SSLError):
            return _tls_problem(cause)
        if isinstance(cause, socket.gaierror) or not cause.errno:
            return str(cause.strerror or cause)
        return os.strerror(cause.errno)
    return str(error) or type(error).__name__


def _tls_problem(error: ssl.SSLError) -> str:
    """Return why a TLS connection failed, and what to do about what is usual."""
    said = str(error.strerror or error)
    if error.reason == "WRONG_VERSION_NUMBER":
        return f"its answer is no TLS ({said}): {_PLAIN_PORT}"
    if isinstance(error, ssl.SSLCertVerificationError) and error.verify_code in _UNTRUSTED:
        return (
            f"{said}: name the file of its CA's certificates in the URL, by"
            f" `rediss://…?{_CA_FILE}=/…/ca.pem`"
        )
    return said
