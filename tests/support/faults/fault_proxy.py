"""A TCP proxy that spoils chosen answers of a real server: Redis, HTTP, anything with requests.

    async with FaultProxy(upstream) as proxy:
        spoiled = proxy.spoil(b"XADD", Fault.CUT_ANSWER)
        ... talk to the server at proxy.host, proxy.port ...
        await spoiled.wait()

A fault strikes the first chunk of bytes from a client that contains `match`; requests that share
the chunk (a pipeline) share its fate. Chunks are what the client sends at once.

The proxy may also stand for a network: `hold` keeps back whatever servers say, and `turn_to` leads
all clients to another server, whose connections to the old one break.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from types import TracebackType
from typing import Self

_CHUNK_BYTES_MAX = 1 << 20


class Fault(Enum):
    """The fault of the matching request, or of its answer."""

    CUT_REQUEST = auto()  # the server never sees it; the connection breaks
    CUT_ANSWER = auto()  # the server does it; the connection breaks instead of the answer
    HOLD_ANSWER = auto()  # the server does it; the answer waits for `release`, or for ever
    TRUNCATE_ANSWER = (
        auto()
    )  # the server does it; the connection breaks in the middle of the answer
    DELAY_ANSWER = auto()  # the server does it; the answer comes `DELAY_S` later
    SENT_TWICE = auto()  # the server does it twice; the client gets the second answer
    LANDS_LATE = auto()  # the connection breaks; the server gets the request at `land_late`


DELAY_S = 0.5
_BREAKS = (Fault.CUT_REQUEST, Fault.LANDS_LATE)


@dataclass(slots=True)
class Spoiled:
    """One planned fault. It has struck when the server has answered, or will never be asked."""

    match: bytes
    fault: Fault
    times: int
    struck: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self) -> None:
        await self.struck.wait()

    def release(self) -> None:
        """Release the answers that were held."""
        self.released.set()


class FaultProxy:
    """Listens on a free port of this machine. `upstream`: a unix socket, or host and port.
    `requests`: how many chunks clients have sent.
    """

    def __init__(self, upstream: Path | tuple[str, int]) -> None:
        self._upstream = upstream
        self._plans: list[Spoiled] = []
        self._held: list[bytes] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.requests = 0
        self.flows = asyncio.Event()
        self.flows.set()
        self.host = "127.0.0.1"
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, self.host, 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._server:
            self._server.close()
        while self._tasks:  # one may have come while others broke
            await self._break_all()

    async def _break_all(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def hold(self) -> None:
        """Hold all answers of the server, on any connection, until `turn_to`."""
        self.flows.clear()

    async def turn_to(self, upstream: Path | tuple[str, int]) -> None:
        """Lead clients to another server; open connections break."""
        self._upstream = upstream
        await self._break_all()
        self.flows.set()

    async def land_late(self) -> int:
        """Deliver the requests that were held back to the server; return how many they are."""
        held, self._held = self._held, []
        for chunk in held:
            await self.send_aside(chunk)
        return len(held)

    async def send_aside(self, chunk: bytes) -> None:
        """Send a request to the server, and drop the answer. Return when it has answered."""
        reader, writer = await self._connect()
        writer.write(chunk)
        await writer.drain()
        await reader.read(_CHUNK_BYTES_MAX)
        await _close(writer)

    def keep(self, chunk: bytes) -> None:
        """Keep a request for `land_late`."""
        self._held.append(chunk)

    def spoil(self, match: bytes, fault: Fault, *, times: int = 1) -> Spoiled:
        """Plan a fault for the next `times` chunks that contain `match`."""
        planned = Spoiled(match, fault, times)
        self._plans.append(planned)
        return planned

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # A task that is canceled before it starts does not run the end of `_serve`.
        task.add_done_callback(lambda _: writer.close())

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._pass_on(reader, writer)
        finally:
            await _close(writer)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            up_reader, up_writer = await self._connect()
        except OSError:
            return
        link = _Link(self, writer, up_writer)
        pumps = [
            asyncio.create_task(link.pump_requests(reader)),
            asyncio.create_task(link.pump_answers(up_reader)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            up_writer.close()  # before anything that a second cancellation would cut short
            await asyncio.gather(*pumps, return_exceptions=True)
            await _close(up_writer)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self._upstream, Path):
            return await asyncio.open_unix_connection(str(self._upstream))
        return await asyncio.open_connection(*self._upstream)

    def strike(self, chunk: bytes) -> Spoiled | None:
        """Return the first plan that matches, and use it up once."""
        for planned in self._plans:
            if planned.times and planned.match in chunk:
                planned.times -= 1
                return planned
        return None


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


class _Link:
    """One client's connection. Each pump ends when the connection is to break."""

    def __init__(
        self, proxy: FaultProxy, client: asyncio.StreamWriter, server: asyncio.StreamWriter
    ) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._plan: Spoiled | None = None

    async def pump_requests(self, reader: asyncio.StreamReader) -> None:
        while chunk := await reader.read(_CHUNK_BYTES_MAX):
            self._proxy.requests += 1
            planned = self._proxy.strike(chunk)
            if planned and planned.fault is Fault.LANDS_LATE:
                self._proxy.keep(chunk)
            if planned and planned.fault in _BREAKS:
                planned.struck.set()
                return
            if planned and planned.fault is Fault.SENT_TWICE:
                await self._proxy.send_aside(chunk)
            self._plan = planned or self._plan
            self._server.write(chunk)
            await self._server.drain()

    async def pump_answers(self, reader: asyncio.StreamReader) -> None:
        while chunk := await reader.read(_CHUNK_BYTES_MAX):
            await self._proxy.flows.wait()
            if planned := self._plan:
                self._plan = None
                planned.struck.set()
                if planned.fault is Fault.CUT_ANSWER:
                    return
                if planned.fault is Fault.TRUNCATE_ANSWER:
                    self._client.write(chunk[: len(chunk) // 2])
                    await self._client.drain()
                    return
                if planned.fault is Fault.HOLD_ANSWER:
                    await planned.released.wait()
                if planned.fault is Fault.DELAY_ANSWER:
                    await asyncio.sleep(DELAY_S)
            self._client.write(chunk)
            await self._client.drain()
