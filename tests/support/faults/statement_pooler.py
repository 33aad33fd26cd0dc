"""A pooler in statement mode, as PgBouncer answers there: it refuses to begin a transaction."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

_FIELDS = (
    "SFATAL",
    "VFATAL",
    "C08P01",
    "Mtransaction blocks not allowed in statement pooling mode",
)
_REFUSAL = b"".join(field.encode() + b"\0" for field in _FIELDS) + b"\0"
_CHUNK_BYTES_MAX = 1 << 16


class StatementPooler:
    """Listens on a free port of this machine, before the server at this address."""

    def __init__(self, upstream: tuple[str, int]) -> None:
        self._upstream = upstream
        self._server: asyncio.Server
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection(*self._upstream)
        answers = asyncio.create_task(_pump(up_reader, writer))
        while chunk := await reader.read(_CHUNK_BYTES_MAX):
            if b"BEGIN" in chunk:
                writer.write(b"E" + (len(_REFUSAL) + 4).to_bytes(4, "big") + _REFUSAL)
                await writer.drain()
                break
            up_writer.write(chunk)
            await up_writer.drain()
        up_writer.close()
        await answers
        writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(_CHUNK_BYTES_MAX):
        writer.write(chunk)
        await writer.drain()
