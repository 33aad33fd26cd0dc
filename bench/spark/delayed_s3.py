"""Streams on one table of a real S3 server that answers each request later: `--parts delay`.

The server is SeaweedFS behind a proxy that holds every request, Frazil's and Iceberg's alike. The
catalog is the SQLite file that both share elsewhere, and checkpoints are local: neither is delayed.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from queue import Queue

from aiohttp import web
from pyarrow import fs

from bench.frazil import USUAL_VARIABLES
from bench.spark.micro_batches import Streams, measure_together
from bench.spark.systems import open_systems
from committer.catalog.catalog_properties import CatalogProperties
from committer.settings.setting_names import variable_of
from tests.support.builders.jars import AWS_BUNDLE, fetch_jars
from tests.support.integration.java_engine import JavaCatalog, jdbc_catalog
from tests.support.integration.real_harness import CATALOG, RealHarness, living_in
from tests.support.servers.http_proxy import HttpProxy
from tests.support.servers.s3_server import S3Server, running_s3_server
from workers.files.s3_files import S3Access, s3_path
from workers.files.store_access import StoreAccess
from workers.settings.worker_settings import WorkerSettings

DELAY_MS = 50


@dataclass(slots=True, kw_only=True)
class S3Harness(RealHarness):
    """As `RealHarness`, but tables and inbox are below `root` in S3, at the address `url`."""

    s3: S3Server
    url: str
    root: str

    @property
    def warehouse_location(self) -> str:
        return f"{self.root}/warehouse"

    @property
    def settings(self) -> WorkerSettings:
        local = super(S3Harness, self).settings
        return WorkerSettings(
            catalog=CatalogProperties(CATALOG, self._properties()),
            inbox=f"{self.root}/requests",
            queue_url=local.queue_url,
            access=StoreAccess(S3Access(self.s3.region, self.url)),
        )

    def _properties(self) -> dict[str, str]:
        return {
            "uri": f"sqlite:///{self.catalog_file}",
            "client.region": self.s3.region,
            "s3.endpoint": self.url,
            "s3.path-style-access": "true",
        }

    def environment(self) -> dict[str, str]:
        return {
            **RealHarness.environment(self),
            **{variable_of(f"catalog.{name}"): text for name, text in self._properties().items()},
            "FRAZIL_CATALOG__WAREHOUSE": self.warehouse_location,
            "FRAZIL_INBOX": self.settings.inbox,
            "FRAZIL_SECURITY__UNSIGNED_OPERATIONS": "all",
        }

    def java_catalog(self) -> JavaCatalog:
        local = jdbc_catalog(self)
        options = {
            **local.options,
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "client.region": self.s3.region,
            "s3.endpoint": self.url,
            "s3.path-style-access": "true",
        }
        return JavaCatalog([*local.jars, *fetch_jars((AWS_BUNDLE,))], options)

    def read(self, location: str) -> bytes:
        """Return an object, not by the proxy."""
        host = self.s3.url.partition("://")[2]
        files = fs.S3FileSystem(region=self.s3.region, scheme="http", endpoint_override=host)
        with files.open_input_stream(s3_path(location)) as stream:
            return bytes(stream.read())


def measure_delayed(count: int, window_s: float) -> Sequence[Streams]:
    """Return what so many streams of Frazil and of Iceberg come to, each on one table."""
    with running_s3_server() as s3, _delayed(s3.url) as url:
        root = s3.new_root()
        with living_in(
            lambda folder: S3Harness(folder, USUAL_VARIABLES, s3=s3, url=url, root=root)
        ) as harness:
            asyncio.run(harness.start())
            with open_systems(harness, harness.java_catalog()) as (spark, systems):
                tables = [system for system in systems if system.name in ("frazil", "iceberg")]
                folder = harness.folder / "checkpoints"
                return list(measure_together(spark, tables, folder, count, window_s))


class _DelayingProxy(HttpProxy):
    """Holds each request before the server gets it, and remembers none."""

    async def _answer(self, received: web.Request) -> web.StreamResponse:
        await asyncio.sleep(DELAY_MS / 1000)
        self.received.clear()
        return await super()._answer(received)


@contextmanager
def _delayed(url: str) -> Iterator[str]:
    """Run the proxy in a thread and yield its address."""
    urls, ended = Queue[str](), threading.Event()

    async def serve() -> None:
        async with _DelayingProxy(url) as proxy:
            urls.put(proxy.url)
            await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        yield urls.get(timeout=30.0)
    finally:
        ended.set()
        thread.join()
