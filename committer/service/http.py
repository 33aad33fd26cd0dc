"""The health endpoints: liveness is the loop's heartbeat, readiness says what is wrong."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from committer.errors import SettingsError
from committer.service.health import Health


@asynccontextmanager
async def serving(health: Health, *, host: str, port: int) -> AsyncIterator[None]:
    """Serve `/livez` and `/readyz` while inside. Port 0 serves nothing.

    Errors: `SettingsError` if the address cannot be listened on.
    """
    if port == 0:
        yield
        return
    runner = web.AppRunner(_application(health), access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as error:
        await runner.cleanup()
        raise SettingsError(
            f"cannot listen on {host}:{port} (service.http_host, service.http_port):"
            f" {error.strerror or error}"
        ) from error
    try:
        yield
    finally:
        await runner.cleanup()


def _application(health: Health) -> web.Application:
    async def live(_: web.Request) -> web.Response:
        return _answer(health.is_alive, {})

    async def ready(_: web.Request) -> web.Response:
        return _answer(health.is_ready, health.troubles)

    application = web.Application()
    application.add_routes([web.get("/livez", live), web.get("/readyz", ready)])
    return application


def _answer(is_well: bool, troubles: dict[str, str]) -> web.Response:
    body = json.dumps({"status": "ok" if is_well else "unavailable", "troubles": troubles})
    return web.Response(text=body, status=200 if is_well else 503, content_type="application/json")
