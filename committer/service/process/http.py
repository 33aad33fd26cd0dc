"""The endpoints for operators: health, metrics, and what `frazil status` shows.

Liveness is the loop's heartbeat; readiness is that of `Health`, and `/status` has all conditions.
The loop that does the work answers here too: one that is stuck does not answer at all, so the
probe times out.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from committer.errors import SettingsError
from committer.service.process.http_connections import Listener
from committer.service.process.status_collector import StatusCollector
from committer.service.telemetry.instruments import CONTENT_TYPE


@asynccontextmanager
async def serving(
    status_collector: StatusCollector, *, host: str, port: int
) -> AsyncIterator[None]:
    """Serve `/livez`, `/readyz`, `/metrics` and `/status` while inside. Port 0 serves nothing.

    Errors: `SettingsError` if the address cannot be listened on.
    """
    if port == 0:
        yield
        return
    try:
        listener = await Listener.open(application(status_collector), host=host, port=port)
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


def application(status_collector: StatusCollector) -> web.Application:
    """Build the endpoints, not listening yet."""
    health = status_collector.health

    async def live(_: web.Request) -> web.Response:
        return _health(health.is_alive, {})

    async def ready(_: web.Request) -> web.Response:
        return _health(health.is_ready, {"phase": health.phase, "conditions": health.unreachable})

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=status_collector.page(), headers={"Content-Type": CONTENT_TYPE})

    async def status(_: web.Request) -> web.Response:
        said = status_collector.status().model_dump_json()
        return web.Response(text=said, content_type="application/json")

    served = web.Application()
    served.add_routes(
        [
            web.get("/livez", live),
            web.get("/readyz", ready),
            web.get("/metrics", metrics),
            web.get("/status", status),
        ]
    )
    return served


def _health(is_healthy: bool, more: dict[str, object]) -> web.Response:
    body = json.dumps({"status": "ok" if is_healthy else "unavailable", **more})
    return web.Response(
        text=body, status=200 if is_healthy else 503, content_type="application/json"
    )
