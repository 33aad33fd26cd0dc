"""Connections to the metastores of one catalog, for calls from worker threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from committer.catalog.hive.thrift_connection import Connection, LostAnswerError, MetastoreError
from committer.catalog.hive.thrift_values import Struct, text, texts
from committer.errors import CatalogUnavailableError, SettingsError
from committer.place_threads import NoAnswerError, PlaceThreads

_PORT = 9083
_CONNECTIONS_MAX = 8
_CONNECT_S_MAX = 10.0
# Names of servers are looked up by the system, which has limits of its own.
_LOOK_UP_S_MAX = 30.0


class ConnectionPool:
    """Asks the first metastore of the list that can be reached. All serve one database, so each
    answers for the others.
    """

    def __init__(self, uris: str, *, ugi: str = "", answer_s_max: float) -> None:
        """Parse the addresses, `thrift://host:port` and several by commas; connect later.

        `ugi`: user, or `user:group,group`. `answer_s_max`: how long to wait for an answer. Errors:
        `SettingsError`.
        """
        self._uris = uris
        self._servers = parse_uris(uris)
        self._ugi = ugi
        self._answer_s_max = answer_s_max
        self._idle: list[Connection] = []
        self._lock = threading.Lock()
        call_s_max = 2 * answer_s_max + (_CONNECT_S_MAX + _LOOK_UP_S_MAX) * len(self._servers)
        self._threads = PlaceThreads(
            "metastore of the catalog", threads_max=_CONNECTIONS_MAX, answer_s=call_s_max
        )

    async def call(self, name: str, arguments: Struct, *, fresh: bool = False) -> Struct:
        """Send a call once. `fresh`: on a connection of its own.

        Errors: `CatalogUnavailableError` where no metastore can be reached, so that nothing was
        sent; `MetastoreError`; `LostAnswerError`.
        """
        try:
            return await self._threads.run(name, lambda: self._call(name, arguments, fresh))
        except NoAnswerError as error:
            if error.is_begun:
                raise LostAnswerError(str(error)) from error
            raise CatalogUnavailableError(str(error)) from error

    async def close(self) -> None:
        await asyncio.to_thread(self._threads.shutdown)
        while self._idle:
            self._idle.pop().close()

    def _call(self, name: str, arguments: Struct, fresh: bool) -> Struct:
        with self._connection(fresh) as connection:
            return connection.call(name, arguments)

    @contextmanager
    def _connection(self, fresh: bool) -> Iterator[Connection]:
        connection = (None if fresh else self._take()) or self._connect()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        with self._lock:
            self._idle.append(connection)

    def _take(self) -> Connection | None:
        """Return an idle connection that its server has not closed in the meantime."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            if connection.is_idle():
                return connection
            connection.close()

    def _connect(self) -> Connection:
        causes = []
        for place, (host, port) in enumerate(self._servers):
            try:
                connection = self._open(host, port)
            except (OSError, LostAnswerError, MetastoreError) as error:
                causes.append(f"{host}:{port}: {error}")
                continue
            # The next connection begins with the one that answered.
            self._servers = (*self._servers[place:], *self._servers[:place])
            return connection
        raise CatalogUnavailableError(
            f"catalog uri `{self._uris}`: no Hive metastore can be reached ({'; '.join(causes)})"
        )

    def _open(self, host: str, port: int) -> Connection:
        connection = Connection(
            host, port, connect_timeout_s=_CONNECT_S_MAX, read_timeout_s=self._answer_s_max
        )
        if self._ugi:
            user, _, groups = self._ugi.partition(":")
            members = [group for group in groups.split(",") if group]
            try:
                connection.call("set_ugi", {1: text(user), 2: texts(members)})
            except BaseException:
                connection.close()
                raise
        return connection


def parse_uris(uris: str) -> tuple[tuple[str, int], ...]:
    """Parse `thrift://host:port`, several by commas. Errors: `SettingsError`."""
    servers = []
    for uri in uris.split(","):
        parts = urlsplit(uri.strip())
        try:
            port = parts.port or _PORT
        except ValueError:
            port = 0
        extra = parts.path.rstrip("/") or parts.query or parts.username
        if parts.scheme != "thrift" or not parts.hostname or not port or extra:
            raise SettingsError(
                f"catalog uri `{uris}`: expected `thrift://HOST:PORT`, several of one metastore by"
                " commas"
            )
        servers.append((parts.hostname, port))
    return tuple(servers)
