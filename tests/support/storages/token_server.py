"""A small server for the tokens of Google and of Microsoft, of which none can be had here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

ROUTES = ("/token", "/tenant/oauth2/v2.0/token")


@dataclass
class TokenServer:
    """Answers with `answers`, the last one for ever; keeps what it was asked."""

    url: str
    answers: list[tuple[int, dict[str, object]]] = field(default_factory=list)
    forms: list[Mapping[str, str]] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.Response:
        self.forms.append({name: str(text) for name, text in (await request.post()).items()})
        status, body = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return web.json_response(body, status=status)


@asynccontextmanager
async def token_server() -> AsyncIterator[TokenServer]:
    """Run one until the block is left."""
    made = TokenServer("")
    app = web.Application()
    for route in ROUTES:
        app.router.add_post(route, made.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield made
    await runner.cleanup()
