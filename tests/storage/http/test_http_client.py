"""The HTTP client of object stores, beside a server that answers as a test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from committer.errors import AccessError, NotFoundError
from committer.storage.gcs.gcs_api import GcsApi, judge_gcs, refusal_of
from committer.storage.http.authorization import RenewedToken, Token
from committer.storage.http.http_calls import HttpCalls
from committer.storage.http.http_client import HttpClient, HttpLimits, HttpRequest, NoAnswerError
from committer.storage.object_storage import ObjectStorage
from committer.storage.repeated_calls import CallLimits
from tests.support.clock.worlds import ManualWorld

ABSENT = b'{"error": {"message": "absent", "errors": [{"reason": "notFound"}]}}'


class Server:
    """Refuses tokens that are not in `tokens`, and knows one bucket without objects."""

    def __init__(self) -> None:
        self.url = ""
        self.tokens = {"Bearer token-2"}
        self.asked: list[str] = []

    async def turns(self) -> None:
        """Let the client read a piece before the next: both run on one loop."""
        for _ in range(20):
            await asyncio.sleep(0)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.headers["Authorization"])
        if self.asked[-1] not in self.tokens:
            return web.json_response({"error": {"message": "who are you"}}, status=401)
        if request.path.endswith("/o"):
            return web.json_response({})
        answer = web.StreamResponse(status=404)
        await answer.prepare(request)
        for place in range(0, len(ABSENT), 9):
            await answer.write(ABSENT[place : place + 9])
            await self.turns()
        await answer.write_eof()
        return answer


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", made.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield made
    await runner.cleanup()


@pytest.fixture
async def storage(server: Server) -> AsyncIterator[ObjectStorage]:
    world = ManualWorld()
    texts = iter(("token-1", "token-2", "token-3"))

    async def fetch() -> Token:
        return Token(next(texts), None)

    calls = HttpCalls(
        RenewedToken(fetch, world),
        world,
        CallLimits(),
        HttpLimits(),
        refusal=refusal_of,
        judge=judge_gcs,
    )
    storage = ObjectStorage(GcsApi(calls, server.url), calls, world)
    yield storage
    await storage.close()


async def test_a_refused_token_is_renewed_once_and_the_call_sent_again(
    server: Server, storage: ObjectStorage
) -> None:
    for _ in range(2):
        assert [found async for found in storage.list("gs://bucket/a")] == []
    assert server.asked == ["Bearer token-1", "Bearer token-2", "Bearer token-2"]
    server.tokens = set()
    with pytest.raises(AccessError, match="renew them"):
        await storage.head("gs://bucket/a")
    assert server.asked[3:] == ["Bearer token-2", "Bearer token-3"]


async def test_a_refusal_is_read_to_its_end_though_it_comes_in_pieces(
    storage: ObjectStorage,
) -> None:
    with pytest.raises(NotFoundError):
        await storage.head("gs://bucket/a")


async def test_a_body_that_trickles_without_end_has_a_time_that_its_size_allows() -> None:
    async def trickle(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Length": "10000"})
        await answer.prepare(request)
        while not request.transport.is_closing():  # type: ignore[union-attr]  # it is connected
            await answer.write(b".")
            await asyncio.sleep(0.01)
        return answer

    app = web.Application()
    app.router.add_get("/", trickle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    client = HttpClient(HttpLimits(read_timeout_s=1.0))
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
    # Between two bytes there is always less than the limit: only that of the whole ends it.
    with pytest.raises(NoAnswerError, match="TimeoutError"):
        await asyncio.wait_for(client.send(HttpRequest("GET", url)), 600.0)
    await client.close()
    await runner.cleanup()


async def test_a_url_that_is_not_valid_is_not_shown() -> None:
    client = HttpClient(HttpLimits())
    with pytest.raises(NoAnswerError, match="not valid") as caught:
        await client.send(HttpRequest("GET", "relative?sig=secret"))
    assert "secret" not in str(caught.value)
    await client.close()
