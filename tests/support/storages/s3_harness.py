"""Storage on a real S3 server behind a proxy, which counts and spoils its calls."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from committer.aws.client import close_client, open_client
from committer.real_world import RealWorld
from committer.storage.s3.s3_calls import S3Limits
from committer.storage.s3.s3_storage import S3Storage
from tests.support.clock.worlds import ManualWorld
from tests.support.servers.http_proxy import HttpProxy, Request
from tests.support.servers.s3_server import S3Server

if TYPE_CHECKING:
    from types_aiobotocore_s3 import S3Client

MEBIBYTE = 1024 * 1024
# The smallest parts that every server takes.
SMALL_PARTS = S3Limits(multipart_bytes_min=6 * MEBIBYTE, part_bytes=5 * MEBIBYTE)


class MeddlingWorld(ManualWorld):
    """A world in which something may happen while others wait."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], Awaitable[object]] | None = None

    async def sleep(self, delay_s: float) -> None:
        act, self.meanwhile = self.meanwhile, None
        if act is not None:
            await act()
        await super().sleep(delay_s)


@dataclass(slots=True)
class S3Harness:
    """`storage` goes through the proxy, `rival` is another client and goes straight."""

    server: S3Server
    proxy: HttpProxy
    world: MeddlingWorld
    storage: S3Storage
    rival: S3Storage
    client: S3Client
    root: str
    _more: list[S3Storage] = field(default_factory=list)

    def at(self, name: str) -> str:
        return f"{self.root}/{name}"

    def another(self, limits: S3Limits, *, connections_max: int = 64) -> S3Storage:
        """Open a storage through the proxy with other limits."""
        options = replace(
            self.server.options, endpoint_url=self.proxy.url, connections_max=connections_max
        )
        self._more.append(S3Storage(options, world=self.world, limits=limits))
        return self._more[-1]

    @property
    def calls(self) -> list[str]:
        """Return and clear the calls that the proxy has received."""
        calls = [name_of(request) for request in self.proxy.received]
        self.proxy.received.clear()
        return calls

    async def unfinished_uploads(self) -> int:
        """Return how many uploads in parts were neither completed nor aborted."""
        prefix = self.root.removeprefix(f"s3://{self.server.bucket}/")
        found = await self.client.list_multipart_uploads(Bucket=self.server.bucket, Prefix=prefix)
        return len(found.get("Uploads", ()))

    async def close(self) -> None:
        for storage in (self.storage, self.rival, *self._more):
            await storage.close()


@asynccontextmanager
async def s3_harness(server: S3Server) -> AsyncIterator[S3Harness]:
    async with HttpProxy(server.url) as proxy:
        world = MeddlingWorld()
        storage = S3Storage(replace(server.options, endpoint_url=proxy.url), world=world)
        rival = S3Storage(server.options, world=RealWorld())
        client = await open_client("s3", server.options)
        root = server.new_root()
        harness = S3Harness(server, proxy, world, storage, rival, client, root)
        try:
            yield harness
        finally:
            await harness.close()
            await close_client(client)


_QUERIES = {
    "list-type": "LIST",
    "delete": "DELETE",
    "uploads": "BEGIN",
    "partNumber": "PART",
}


def name_of(request: Request) -> str:
    """Return `PUT`, `GET`, `HEAD`, `LIST` or `DELETE`; of a multipart upload `BEGIN`, `PART`,
    `COMPLETE` or `ABORT`.
    """
    _, _, query = request.path.partition("?")
    names = set(re.findall(r"(?:^|&)([A-Za-z-]+)", query))
    for name, meaning in _QUERIES.items():
        if name in names:
            return meaning
    if "uploadId" in names:
        return "COMPLETE" if request.method == "POST" else "ABORT"
    return request.method
