"""Connections to the endpoints: how many, for how long, and what is said of those that fail.

A client has a fixed time for each step. While all places are taken, a new connection takes the
place of the client that was answered least lately, so clients that only hold connections keep no
probe out. Bytes of a client are never in an answer, and only as ASCII in the log.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Self

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from committer.errors import InvariantError
from committer.service.telemetry.log import log

_SHOWN_MAX = 200
_LOGGED_EVERY_S = 1.0
_CLOSE_S_MAX = 1.0
_LATE = "it sent no whole request in time"


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """`connections_max` at once. `request_s_max`: for the head of a request, from the first byte
    (of the first request: from the connection) on, and for taking the answer. `idle_s_max`: between
    an answer and the next request.
    """

    connections_max: int = 64
    request_s_max: float = 10.0
    idle_s_max: float = 75.0


USUAL_LIMITS = ConnectionLimits()


@dataclass(frozen=True, slots=True)
class Listener:
    """A server that listens."""

    runner: web.AppRunner
    server: asyncio.Server
    connections: OpenConnections

    @classmethod
    async def open(
        cls,
        application: web.Application,
        *,
        host: str,
        port: int,
        limits: ConnectionLimits = USUAL_LIMITS,
    ) -> Self:
        """Listen on an address. Errors: `OSError` where it cannot be listened on."""
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=_CLOSE_S_MAX)
        await runner.setup()
        if runner.server is None:
            raise InvariantError("the runner of the endpoints is not set up")
        connections = OpenConnections(limits)
        accept = partial(Connection, runner.server, connections)
        loop = asyncio.get_running_loop()
        try:
            server = await loop.create_server(accept, host, port, reuse_address=True)
        except OSError:
            await runner.cleanup()
            raise
        return cls(runner, server, connections)

    @property
    def port(self) -> int:
        port: int = self.server.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        """Take no new connection, and end those that are open."""
        self.server.close()
        await self.runner.cleanup()


class OpenConnections:
    """All that are open, the one that was answered least lately first."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._open: dict[Connection, None] = {}
        self._logged_s = float("-inf")
        self._unlogged = 0

    def __len__(self) -> int:
        return len(self._open)

    def opened(self, connection: Connection) -> None:
        while len(self._open) >= self.limits.connections_max:
            oldest = next(iter(self._open))
            self.closed(oldest)
            oldest.end("its place was needed")
        self._open[connection] = None

    def answered(self, connection: Connection) -> None:
        if self._open.pop(connection, connection) is None:
            self._open[connection] = None

    def closed(self, connection: Connection) -> None:
        self._open.pop(connection, None)

    def unlogged(self) -> int | None:
        """Return how many client errors were not logged since the last one; None: do not log this
        one either. One a second is logged at most: a client must not fill the log.
        """
        now_s = asyncio.get_running_loop().time()
        if now_s - self._logged_s < _LOGGED_EVERY_S:
            self._unlogged += 1
            return None
        self._logged_s, unlogged, self._unlogged = now_s, self._unlogged, 0
        return unlogged


class Connection(web.RequestHandler):
    """One connection, with a deadline for each of its steps."""

    def __init__(self, server: web.Server, all_open: OpenConnections) -> None:
        limits = all_open.limits
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]  # its own default says that None is right
            # No request has a body: what follows its head is not waited for.
            lingering_time=0.0,
            keepalive_timeout=limits.idle_s_max,
        )
        self._all, self._limits = all_open, limits
        self._deadline: asyncio.TimerHandle | None = None
        self._is_idle = True
        self._is_half_closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._all.opened(self)
        self._allow(self._limits.request_s_max, _LATE)

    def data_received(self, data: bytes) -> None:
        if self._is_idle:
            self._is_idle = False
            self._allow(self._limits.request_s_max, _LATE)
        super().data_received(data)

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        self._allow(self._limits.request_s_max, "it did not take its answer in time")
        if self._is_half_closed:
            resp.force_close()
        if isinstance(resp, web.HTTPException):
            resp.text = f"{resp.status}\n"
        finished = await super().finish_response(request, resp, start_time)
        self._all.answered(self)
        self._is_idle = True
        self._allow(self._limits.idle_s_max, "")
        return finished

    def eof_received(self) -> bool:  # type: ignore[override]  # asyncio asks for it
        """Return whether the connection stays open:
        a client that sends no more may wait for an answer."""
        self._is_half_closed = True
        return not self._is_idle

    def connection_lost(self, exc: BaseException | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._all.closed(self)
        super().connection_lost(exc)

    def _allow(self, limit_s: float, why: str) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = asyncio.get_running_loop().call_later(limit_s, self.end, why)

    def end(self, why: str) -> None:
        """Close at once, and drop what is not sent. An empty `why` is not worth a line."""
        if why and (unlogged := self._all.unlogged()) is not None:
            log.info("http.closed", client=str(self.peername), problem=why, unlogged=unlogged)
        if isinstance(self.transport, asyncio.Transport):
            self.transport.abort()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Log one line, and answer without a word of the request: `message` has some."""
        if isinstance(exc, HttpProcessingError):
            status, problem = exc.code, ascii(exc.message)[:_SHOWN_MAX]
            if (unlogged := self._all.unlogged()) is not None:
                client = str(self.peername)
                log.info("http.refused", client=client, problem=problem, unlogged=unlogged)
        elif exc is not None:
            self.log_exception(exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionError("a part of the answer was sent already")
        answer = web.Response(status=status, text=f"{status}\n")
        answer.force_close()
        return answer

    def log_exception(
        self, *_: object, exc_info: BaseException | None = None, **__: object
    ) -> None:
        """Log an internal error as an event like all others."""
        log.error("http.crashed", exc_info=exc_info)
