"""Clients that are slow, many, or speak no HTTP: over real sockets, in real but short times."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from structlog.testing import capture_logs

from committer.service.process.http import application
from committer.service.process.http_connections import ConnectionLimits, Listener
from tests.support.service.service_harness import ServiceHarness

SHORT = ConnectionLimits(connections_max=4, request_s_max=0.2, idle_s_max=0.4)
# No test waits for it: a connection that ought to be closed and is not.
PATIENCE_S = 20.0
ASK = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Client:
    """A socket that sends what it likes."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, content: bytes) -> None:
        self.writer.write(content)
        await self.writer.drain()

    async def rest(self) -> bytes:
        """Read until the server closes the connection."""
        async with asyncio.timeout(PATIENCE_S):
            try:
                return await self.reader.read()
            except ConnectionResetError:
                return b""

    async def answer(self) -> tuple[int, bytes]:
        """Read status and body of the next answer."""
        async with asyncio.timeout(PATIENCE_S):
            head = await self.reader.readuntil(b"\r\n\r\n")
            lines = head.lower().split(b"\r\n")
            sizes = [int(line[15:]) for line in lines if line.startswith(b"content-length:")]
            return int(head.split()[1]), await self.reader.readexactly(*sizes)


@dataclass(frozen=True, slots=True)
class Served:
    """The endpoints on a port of their own, and the connected clients."""

    listener: Listener
    clients: list[Client] = field(default_factory=list)

    async def connect(self) -> Client:
        client = Client(*await asyncio.open_connection("127.0.0.1", self.listener.port))
        self.clients.append(client)
        return client

    async def is_answered(self) -> bool:
        client = await self.connect()
        await client.send(ASK)
        status, body = await client.answer()
        return status == 200 and json.loads(body) == {"status": "ok"}


@asynccontextmanager
async def listening(limits: ConnectionLimits = SHORT) -> AsyncIterator[Served]:
    listener = await Listener.open(
        application(ServiceHarness().status_collector), host="127.0.0.1", port=0, limits=limits
    )
    served = Served(listener)
    try:
        yield served
    finally:
        await listener.close()
        for client in served.clients:
            client.writer.transport.abort()


# --- Slow clients --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "start", [b"", b"GET /livez HT", b"GET /livez HTTP/1.1\r\nHost: x\r\nA: b"]
)
async def test_a_client_that_sends_no_whole_head_in_time_is_cut_off(start: bytes) -> None:
    async with listening(ConnectionLimits(request_s_max=0.2, idle_s_max=3_600.0)) as served:
        client = await served.connect()
        await client.send(start)
        assert await client.rest() == b""


async def test_a_head_that_comes_byte_by_byte_has_no_longer() -> None:
    async with listening(ConnectionLimits(request_s_max=0.2, idle_s_max=3_600.0)) as served:
        client = await served.connect()
        await client.send(b"GET /livez HTTP/1.1\r\nA: ")
        dripping = asyncio.create_task(_drip(client))
        assert await client.rest() == b""
        dripping.cancel()


async def _drip(client: Client) -> None:
    while True:
        client.writer.write(b"a")
        await asyncio.sleep(0.02)


async def test_the_next_head_on_a_connection_has_no_longer_either() -> None:
    async with listening() as served:
        client = await served.connect()
        await client.send(ASK)
        assert (await client.answer())[0] == 200
        await client.send(b"GET /li")
        assert await client.rest() == b""


async def test_a_client_that_asks_no_more_is_cut_off_after_a_while() -> None:
    async with listening() as served:
        client = await served.connect()
        await client.send(ASK)
        assert (await client.answer())[0] == 200
        assert await client.rest() == b""


@pytest.mark.thorough
async def test_a_client_that_does_not_take_its_answers_is_cut_off() -> None:
    async with listening(ConnectionLimits(request_s_max=0.5)) as served:
        client = await served.connect()
        client.reader._transport.pause_reading()  # type: ignore[attr-defined]  # no public way
        with pytest.raises(ConnectionError):
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    await client.send(ASK.replace(b"livez", b"metrics") * 100)


# --- Many clients --------------------------------------------------------------------------------


async def test_four_hundred_silent_connections_keep_no_probe_out() -> None:
    patient = ConnectionLimits(connections_max=16, request_s_max=60.0)
    async with listening(patient) as served:
        silent = [await served.connect() for _ in range(400)]
        assert await served.is_answered()
        assert len(served.listener.connections) <= 16
        for client in silent[:-16]:
            assert await client.rest() == b""


async def test_the_place_of_whoever_was_answered_lately_is_the_last_to_be_taken() -> None:
    patient = ConnectionLimits(connections_max=4, request_s_max=60.0)
    async with listening(patient) as served:
        scraper = await served.connect()
        for _ in range(3):
            await served.connect()
        for _ in range(20):
            await scraper.send(ASK)
            assert (await scraper.answer())[0] == 200
            await served.connect()


async def test_whoever_fills_the_log_fills_one_line_a_second_of_it() -> None:
    async with listening(ConnectionLimits(connections_max=1, request_s_max=60.0)) as served:
        with capture_logs() as lines:
            for _ in range(50):
                client = await served.connect()
                await client.send(b"\0\r\n\r\n")
                await client.rest()
    assert 1 <= len(lines) < 25


# --- Clients that speak something else -----------------------------------------------------------

_ODD = {
    "bytes": bytes(range(256)),
    "TLS": bytes.fromhex("16030100c8010000c40303") + bytes(200),
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "colors": b"GET /\x1b[31mred HTTP/1.1\r\nHost: x\r\n\r\n",
    "a broken header": b"GET /livez HTTP/1.1\r\n\x1b[31mred\r\n\r\n",
    "a huge header": b"GET /livez HTTP/1.1\r\nA: " + b"a" * 100_000 + b"\r\n\r\n",
    "a huge path": b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    "many headers": b"GET /livez HTTP/1.1\r\n" + b"A: b\r\n" * 10_000 + b"\r\n",
    "an unknown method": b"R\xc3\xa9D /livez HTTP/1.1\r\nHost: x\r\n\r\n",
    "two lengths": b"GET /livez HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    "an unknown expectation": b"GET /livez HTTP/1.1\r\nHost: x\r\nExpect: <b>red\r\n\r\n",
    "an unknown page": b"GET /<script>red HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
}


@pytest.mark.parametrize("name", _ODD)
async def test_whatever_a_client_sends_nothing_of_it_comes_back_and_one_line_is_logged(
    name: str,
) -> None:
    async with listening() as served:
        with capture_logs() as lines:
            client = await served.connect()
            await client.send(_ODD[name])
            answer = await client.rest()
        assert answer.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4"))
        assert b"red" not in answer and b"aaaa" not in answer and b"\x1b" not in answer
        assert len(lines) <= 1
        for line in lines:
            assert str(line["problem"]).isascii() and "\x1b" not in str(line["problem"])
            assert "exc_info" not in line
        assert await served.is_answered()


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /livez HTTP/1.0\r\n\r\n", 200),
        (b"POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", 405),
        (b"POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999\r\n\r\nhalf", 405),
        (b"GET /livez HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n", 200),
        (b"HEAD /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 200),
    ],
)
async def test_odd_but_right_requests_are_answered_and_their_connection_ends(
    request_: bytes, status: int
) -> None:
    async with listening() as served:
        client = await served.connect()
        await client.send(request_)
        answer = await client.rest()
        assert int(answer.split()[1]) == status
        if request_.startswith(b"HEAD"):
            assert answer.endswith(b"\r\n\r\n")


async def test_requests_one_behind_another_are_answered_in_turn() -> None:
    async with listening() as served:
        client = await served.connect()
        await client.send(ASK * 50)
        for _ in range(50):
            assert (await client.answer())[0] == 200


async def test_a_client_that_shuts_its_half_down_is_answered_all_the_same() -> None:
    async with listening() as served:
        client = await served.connect()
        await client.send(ASK)
        client.writer.write_eof()
        assert (await client.rest()).endswith(b'{"status": "ok"}')


async def test_a_client_that_only_connects_is_not_worth_a_line() -> None:
    patient = ConnectionLimits(request_s_max=3_600.0)
    async with listening(patient) as served:
        with capture_logs() as lines:
            client = await served.connect()
            client.writer.write_eof()
            assert await client.rest() == b""
    assert lines == []


async def test_an_end_of_the_service_waits_for_no_client() -> None:
    patient = ConnectionLimits(request_s_max=3_600.0, idle_s_max=3_600.0)
    async with asyncio.timeout(PATIENCE_S), listening(patient) as served:
        silent = [await served.connect() for _ in range(8)]
        await silent[0].send(ASK)
        await silent[0].answer()
