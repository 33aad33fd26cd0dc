"""The Glue catalog with its back end, able to meet each fault, for the contract suite."""

from __future__ import annotations

from dataclasses import replace

from committer.catalog.glue.glue_catalog import GlueCatalog
from committer.real_world import RealWorld
from tests.support.catalogs.http_faults import ProxiedHarness
from tests.support.catalogs.interfered_storage import InterferedStorage
from tests.support.catalogs.plain_namespaces import PlainNamespaces
from tests.support.servers.http_proxy import HttpProxy
from tests.support.servers.moto_server import MotoServer


class GlueHarness(PlainNamespaces, ProxiedHarness[GlueCatalog, InterferedStorage]):
    """An account of its own."""

    swap_mark = b"AWSGlue.UpdateTable"

    def __init__(self, *, proxy: HttpProxy, server: MotoServer) -> None:
        self.options = server.new_account()
        super().__init__(url=self.options.endpoint_url, proxy=proxy, storage=InterferedStorage())

    @classmethod
    async def open(cls, server: MotoServer) -> GlueHarness:
        proxy = await HttpProxy(server.url).__aenter__()
        harness = cls(proxy=proxy, server=server)
        harness.catalog = await harness.client(proxy.url)
        return harness

    async def client(self, url: str, *, read_timeout_s: float = 20.0) -> GlueCatalog:
        options = replace(self.options, endpoint_url=url, read_timeout_s=read_timeout_s)
        return await GlueCatalog.open(storage=self.storage, options=options, world=RealWorld())
