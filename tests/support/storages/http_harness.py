"""Storage on an emulator of Google Cloud Storage or of Azure behind a proxy, which counts and
spoils its calls.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from committer.real_world import RealWorld
from committer.storage.adls.open_adls import open_adls
from committer.storage.gcs.open_gcs import open_gcs
from committer.storage.http.http_client import HttpLimits
from committer.storage.object_storage import ObjectStorage
from committer.storage.repeated_calls import CallLimits
from tests.support.servers.azurite import Azurite
from tests.support.servers.gcs_server import GcsServer
from tests.support.servers.http_proxy import Answer, HttpProxy, Request
from tests.support.storages.s3_harness import MeddlingWorld


@dataclass(slots=True)
class HttpHarness:
    """`storage` goes through the proxy, `rival` is another client and goes straight."""

    proxy: HttpProxy
    world: MeddlingWorld
    rival: ObjectStorage
    root: str
    put_match: bytes
    """What a request holds that writes an object."""
    get_match: bytes
    """What a request holds that reads one, and not one that describes it."""
    missing_root: str
    """A folder in a bucket that there is not."""
    refuse: Callable[[int, str], Answer]
    failed_condition: Answer
    _open: Callable[[CallLimits, HttpLimits], ObjectStorage]
    storage: ObjectStorage = field(init=False)
    _more: list[ObjectStorage] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.storage = self.another()

    def at(self, name: str) -> str:
        return f"{self.root}/{name}"

    def another(
        self, limits: CallLimits | None = None, http_limits: HttpLimits | None = None
    ) -> ObjectStorage:
        """Open a storage through the proxy with other limits."""
        self._more.append(self._open(limits or CallLimits(), http_limits or HttpLimits()))
        return self._more[-1]

    @property
    def calls(self) -> list[str]:
        """Return and clear the calls that the proxy has received."""
        calls = [name_of(request) for request in self.proxy.received]
        self.proxy.received.clear()
        return calls

    async def close(self) -> None:
        for storage in (self.rival, *self._more):
            await storage.close()


@asynccontextmanager
async def gcs_harness(server: GcsServer) -> AsyncIterator[HttpHarness]:
    async with HttpProxy(server.url) as proxy:
        world = MeddlingWorld()

        def open_storage(limits: CallLimits, http_limits: HttpLimits) -> ObjectStorage:
            options = replace(server.options, host=proxy.url, http_limits=http_limits)
            return open_gcs(options, world=world, limits=limits)

        harness = HttpHarness(
            proxy,
            world,
            open_gcs(server.options, world=RealWorld()),
            server.new_root(),
            b"uploadType=multipart",
            b"alt=media",
            "gs://no-such-bucket/folder",
            gcs_refusal,
            gcs_refusal(412, "conditionNotMet"),
            open_storage,
        )
        try:
            yield harness
        finally:
            await harness.close()


@asynccontextmanager
async def adls_harness(server: Azurite) -> AsyncIterator[HttpHarness]:
    async with HttpProxy(server.url) as proxy:
        world = MeddlingWorld()

        def open_storage(limits: CallLimits, http_limits: HttpLimits) -> ObjectStorage:
            places = replace(server.options.places, authority=proxy.url.removeprefix("http://"))
            options = replace(server.options, places=places, http_limits=http_limits)
            return open_adls(options, world=world, limits=limits)

        root = server.new_root()
        harness = HttpHarness(
            proxy,
            world,
            open_adls(server.options, world=RealWorld()),
            root,
            b"PUT ",
            b"GET ",
            root.replace("abfss://frazil@", "abfss://no-such@"),
            adls_refusal,
            adls_refusal(409, "BlobAlreadyExists"),
            open_storage,
        )
        try:
            yield harness
        finally:
            await harness.close()


def gcs_refusal(status: int, code: str) -> Answer:
    """Return an error as Google words it."""
    error = {"code": status, "message": "said by the test", "errors": [{"reason": code}]}
    return Answer(status, json.dumps({"error": error}).encode(), "application/json")


def adls_refusal(status: int, code: str) -> Answer:
    """Return an error as Azure words it."""
    return Answer(status, b"", "application/xml", (("x-ms-error-code", code),))


def name_of(request: Request) -> str:
    """Return `PUT`, `GET`, `HEAD`, `LIST` or `DELETE`, whatever the protocol."""
    path, _, query = request.path.partition("?")
    if request.method == "POST":
        return "PUT"
    if "comp=list" in query or path.endswith("/o"):
        return "LIST"
    return "HEAD" if request.method == "GET" and "fields=" in query else request.method
