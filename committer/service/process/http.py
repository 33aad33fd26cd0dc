"""The endpoints for operators: health, metrics, and what `frazil status` shows.

Liveness is the loop's heartbeat; readiness is that of `Health`, and `/status` has all conditions.
The loop that does the work answers here too: one that is stuck does not answer at all, so the
probe times out. So an answer that grows with the number of tables is made in slices, between which
the loop continues, and clients that ask at once share it.
"""

from __future__ import annotations

import asyncio
import json
import re
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler

from committer.errors import SettingsError
from committer.service.process.http_connections import Listener
from committer.service.process.status_collector import StatusCollector
from committer.service.telemetry.instruments import CONTENT_TYPE
from committer.settings.setting_names import setting_text
from committer.url_text import is_address, is_loopback

_JSON = "application/json"
# For how long after it was made an answer is given to further clients.
ANSWER_KEPT_S = 1.0
# A page of metrics repeats itself: the fastest level makes it ten times smaller, a higher one only
# a little more so, in three times the time.
_GZIP_LEVEL = 1
_GZIP_FORMAT = 31  # of zlib: a window of 15 bits, and 16 for gzip's header
# A smaller answer is sent as it is.
_GZIP_BYTES_MIN = 1_024
_NO_WEIGHT = re.compile(r"q=0(\.0*)?")
_OTHER_NAME = (
    "403: not served by the name in the header `Host`; use localhost or an IP address, or add the"
    f" name to {setting_text('service.http_names')}\n"
)


@asynccontextmanager
async def serving(
    status_collector: StatusCollector, *, host: str, port: int, names: str = ""
) -> AsyncIterator[None]:
    """Serve `/livez`, `/readyz`, `/metrics` and `/status` while inside. Port 0 serves nothing.
    `names`: as of `ServedNames.from_settings`.

    Errors: `SettingsError` if the address cannot be listened on.
    """
    if port == 0:
        yield
        return
    served = application(status_collector, ServedNames.from_settings(host, names))
    try:
        listener = await Listener.open(served, host=host, port=port)
    except OSError as error:
        raise SettingsError(
            f"cannot listen on {host}:{port}: {error.strerror or error}; name another port by"
            " FRAZIL_SERVICE__HTTP_PORT or `frazil serve --port` (0: no endpoints), another address"
            " by FRAZIL_SERVICE__HTTP_HOST"
        ) from error
    try:
        yield
    finally:
        await listener.close()


@dataclass(frozen=True, slots=True)
class ServedNames:
    """The names by which clients may address the endpoints, in the header `Host`.

    A page in a browser on this machine can make a name of its own mean 127.0.0.1 (DNS rebinding),
    and then read what is served there. It cannot do so with an address, or with `localhost`: these
    are always served. `names`: the others; None: any.
    """

    names: frozenset[str] | None = None

    @classmethod
    def from_settings(cls, host: str, names: str) -> ServedNames:
        """Return the names for an address to listen on. `names`: those that an operator lists,
        separated by commas. Without any, an address that other machines reach is served by all
        names: there it has many, of services, containers and proxies.
        """
        listed = frozenset(name.strip().lower() for name in names.split(",") if name.strip())
        if listed or is_loopback(host):
            return cls(listed | {host.lower()})
        return cls()

    def serves(self, host: str | None) -> bool:
        """Return whether to answer a request with this header. One without it is no browser's."""
        if self.names is None or host is None:
            return True
        try:
            name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
        except ValueError:
            return False
        return name == "localhost" or name in self.names or is_address(name)


ANY_NAME = ServedNames()


def application(
    status_collector: StatusCollector, served_names: ServedNames = ANY_NAME
) -> web.Application:
    """Build the endpoints, not listening yet."""
    health = status_collector.health
    metrics_page = _SharedAnswer(status_collector.page_parts, CONTENT_TYPE)
    status_page = _SharedAnswer(status_collector.status_parts, _JSON)

    async def live(_: web.Request) -> web.Response:
        return _health(health.is_alive, {})

    async def ready(_: web.Request) -> web.Response:
        return _health(health.is_ready, {"phase": health.phase, "conditions": health.unreachable})

    @web.middleware
    async def refuse_other_names(request: web.Request, handler: Handler) -> web.StreamResponse:
        if served_names.serves(request.headers.get("Host")):
            return await handler(request)
        return web.Response(status=403, text=_OTHER_NAME)

    served = web.Application(middlewares=[refuse_other_names])
    served.on_cleanup.extend([metrics_page.close, status_page.close])
    served.add_routes(
        [
            web.get("/livez", live),
            web.get("/readyz", ready),
            web.get("/metrics", metrics_page.respond),
            web.get("/status", status_page.respond),
        ]
    )
    return served


def _health(is_healthy: bool, more: dict[str, object]) -> web.Response:
    body = json.dumps({"status": "ok" if is_healthy else "unavailable", **more})
    return web.Response(text=body, status=200 if is_healthy else 503, content_type=_JSON)


@dataclass(frozen=True, slots=True)
class _Body:
    """An answer as it is, and compressed."""

    plain: bytes
    gzipped: bytes


class _SharedAnswer:
    """An answer for all clients that ask while it is made, and for a moment longer.

    `parts` makes it: the loop continues after each part.
    """

    def __init__(self, parts: Callable[[], Iterator[bytes]], content_type: str) -> None:
        self._parts = parts
        self._content_type = content_type
        self._making: asyncio.Task[_Body] | None = None
        self._kept_until_s = 0.0

    async def respond(self, request: web.Request) -> web.Response:
        body = await self._body()
        headers = {"Content-Type": self._content_type, "Vary": "Accept-Encoding"}
        if len(body.plain) < _GZIP_BYTES_MIN or not _takes_gzip(request):
            return web.Response(body=body.plain, headers=headers)
        return web.Response(body=body.gzipped, headers={**headers, "Content-Encoding": "gzip"})

    async def close(self, _: web.Application) -> None:
        if self._making is not None:
            self._making.cancel()

    async def _body(self) -> _Body:
        making, now_s = self._making, asyncio.get_running_loop().time()
        if making is None or (making.done() and self._kept_until_s <= now_s):
            making = self._making = asyncio.create_task(self._make())
        # A client that goes away must not end it for the others.
        return await asyncio.shield(making)

    async def _make(self) -> _Body:
        packer = zlib.compressobj(_GZIP_LEVEL, wbits=_GZIP_FORMAT)
        plain, gzipped = bytearray(), bytearray()
        for part in self._parts():
            plain += part
            gzipped += packer.compress(part)
            await asyncio.sleep(0)
        gzipped += packer.flush()
        self._kept_until_s = asyncio.get_running_loop().time() + ANSWER_KEPT_S
        return _Body(bytes(plain), bytes(gzipped))


def _takes_gzip(request: web.Request) -> bool:
    for coding in ",".join(request.headers.getall("Accept-Encoding", ())).lower().split(","):
        name, _, weight = coding.partition(";")
        if name.strip() == "gzip":
            return not _NO_WEIGHT.fullmatch(weight.strip())
    return False
