"""A proxy before a real HTTP server: counts what passes, and spoils chosen requests.

    async with HttpProxy("http://127.0.0.1:8000") as proxy:
        proxy.plan(b"UpdateItem", Fault.CUT_ANSWER)
        ... talk to the server at proxy.url ...
        await proxy.land_late()

A plan strikes the first request whose head or body contains `match`. Requests reach the server as
they were sent, with the `Host` that was signed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from io import BytesIO
from types import TracebackType
from typing import Any, Self

from aiohttp import ClientSession, web
from yarl import URL

_BODY_BYTES_MAX = 1 << 28
# These are of one connection, or said anew for the bytes that are passed on.
_NOT_PASSED_ON = frozenset({"connection", "content-length", "keep-alive", "transfer-encoding"})


class Fault(Enum):
    """A fault of a request, or of its answer."""

    CUT_REQUEST = auto()  # the server never sees it; the connection breaks
    CUT_ANSWER = auto()  # the server does it; the connection breaks instead of the answer
    SENT_TWICE = auto()  # the server gets it twice; the client gets the second answer
    HOLD_ANSWER = auto()  # the server does it; the answer never comes
    LANDS_LATE = auto()  # the connection breaks; the server gets the request at `land_late`
    CUT_IN_ANSWER = auto()  # the connection breaks in the middle of the answer
    DAMAGE_ANSWER = auto()  # the last byte of the answer is another one
    DELAY_ANSWER = auto()  # the server does it; the answer comes `DELAY_S` later


DELAY_S = 0.5


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer in the server's place. The server never sees the request."""

    status: int
    body: bytes = b""
    content_type: str = "application/x-amz-json-1.0"
    headers: tuple[tuple[str, str], ...] = ()

    @classmethod
    def aws_error(cls, status: int, code: str, **more: Any) -> Answer:
        """Return an error as DynamoDB words it."""
        error = {"__type": f"aws#{code}", "message": "said by the test", **more}
        return cls(status, json.dumps(error).encode())

    @classmethod
    def s3_error(cls, status: int, code: str, **headers: str) -> Answer:
        """Return an error as S3 words it; `_` in names of headers stands for `-`."""
        body = f"<Error><Code>{code}</Code><Message>said by the test</Message></Error>"
        named = tuple((name.replace("_", "-"), text) for name, text in headers.items())
        return cls(status, body.encode(), "application/xml", named)


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it came in; `path` with its query, both as they were sent."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def holds(self, match: bytes) -> bool:
        first = f"{self.method} {self.path}"
        head = "\n".join((first, *(f"{name}: {text}" for name, text in self.headers)))
        return match in head.encode() or match in self.body

    def header(self, name: str) -> str | None:
        """Return the value of a header, named in any case."""
        return next((text for known, text in self.headers if known.lower() == name), None)


class HttpProxy:
    """Listens on a free port of this machine. `requests` names what came in, oldest first,
    and `statuses` what the server has answered.

    Of requests that contain a key of `leaves_out` the headers that it names, in lower case, do not
    reach the server. `struck` is set when a plan has struck.
    """

    def __init__(
        self, upstream: str, *, leaves_out: Mapping[bytes, Iterable[str]] | None = None
    ) -> None:
        self._upstream = upstream
        self._leaves_out = dict(leaves_out or {})
        self._plans: list[tuple[bytes, Fault | Answer]] = []
        self._held: list[Request] = []
        self._closing = asyncio.Event()
        self.struck = asyncio.Event()
        self._session: ClientSession
        self._runner: web.AppRunner
        self.requests: list[str] = []
        self.received: list[Request] = []
        self.statuses: list[int] = []
        self.at_once = 0
        self.at_once_most = 0
        self.url = ""

    async def __aenter__(self) -> Self:
        self._session = ClientSession(auto_decompress=False)
        app = web.Application(client_max_size=_BODY_BYTES_MAX)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing.set()
        await self._runner.cleanup()
        await self._session.close()

    def plan(self, match: bytes, *outcomes: Fault | Answer) -> None:
        """Answer the next requests that contain `match` with these outcomes, in order."""
        self._plans.extend((match, outcome) for outcome in outcomes)

    @property
    def is_planned(self) -> bool:
        """Whether a plan has not struck yet."""
        return bool(self._plans)

    async def land_late(self) -> list[int]:
        """Deliver the requests that were held back to the server; return its statuses."""
        held, self._held = self._held, []
        return [(await self._forward(request)).status for request in held]

    async def _handle(self, received: web.Request) -> web.StreamResponse:
        self.at_once += 1
        self.at_once_most = max(self.at_once_most, self.at_once)
        try:
            return await self._answer(received)
        finally:
            self.at_once -= 1

    async def _answer(self, received: web.Request) -> web.StreamResponse:
        request = Request(
            received.method,
            received.raw_path,
            tuple(received.headers.items()),
            await received.read(),
        )
        self.requests.append(_name(request))
        self.received.append(request)
        match self._strike(request):
            case None:
                return await self._forward(request)
            case Answer(status, body, content_type, more):
                headers = {"Content-Type": content_type, **dict(more)}
                return web.Response(status=status, body=body, headers=headers)
            case Fault.DAMAGE_ANSWER:
                answer = await self._forward(request)
                assert isinstance(answer.body, bytes)
                answer.body = answer.body[:-1] + bytes([answer.body[-1] ^ 1])
                return answer
            case Fault.CUT_IN_ANSWER:
                answer = await self._forward(request)
                assert isinstance(answer.body, bytes)
                half = web.StreamResponse(status=answer.status, headers=answer.headers)
                half.content_length = len(answer.body)
                await half.prepare(received)
                await half.write(answer.body[: len(answer.body) // 2])
            case Fault.SENT_TWICE:
                await self._forward(request)
                return await self._forward(request)
            case Fault.DELAY_ANSWER:
                answer = await self._forward(request)
                await asyncio.sleep(DELAY_S)
                return answer
            case Fault.HOLD_ANSWER:
                await self._forward(request)
                await self._closing.wait()
            case Fault.CUT_ANSWER:
                await self._forward(request)
            case Fault.LANDS_LATE:
                self._held.append(request)
            case Fault.CUT_REQUEST:
                pass
        if received.transport:
            received.transport.abort()
        return web.Response()

    def _strike(self, request: Request) -> Fault | Answer | None:
        for place, (match, outcome) in enumerate(self._plans):
            if request.holds(match):
                del self._plans[place]
                self.struck.set()
                return outcome
        return None

    async def _forward(self, request: Request) -> web.Response:
        left_out = {*_NOT_PASSED_ON}
        for match, names in self._leaves_out.items():
            left_out.update(names if request.holds(match) else ())
        headers = [(name, text) for name, text in request.headers if name.lower() not in left_out]
        async with self._session.request(
            request.method,
            URL(self._upstream + request.path, encoded=True),
            headers=headers,
            data=BytesIO(request.body),
            skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
            allow_redirects=False,
        ) as answer:
            body = await answer.read()
            self.statuses.append(answer.status)
            response = web.Response(status=answer.status, body=body)
            response.headers.clear()
            for name, text in answer.headers.items():
                if name.lower() not in _NOT_PASSED_ON:
                    response.headers.add(name, text)
            if request.method == "HEAD" and "Content-Length" in answer.headers:
                response.headers["Content-Length"] = answer.headers["Content-Length"]
            return response


def _name(request: Request) -> str:
    """Return the operation where a header names it, as for DynamoDB; else method and path."""
    for name, text in request.headers:
        if name.lower() == "x-amz-target":
            return text.rpartition(".")[2]
    return f"{request.method} {request.path}"
