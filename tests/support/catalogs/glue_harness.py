"""The Glue catalog with its back end, able to meet each fault, for the contract suite."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from committer.catalog.glue.glue_catalog import GlueCatalog
from committer.ports.catalog import Catalog
from committer.real_world import RealWorld
from tests.support.catalogs.http_faults import HTTP_FAULTS
from tests.support.catalogs.interfered_storage import InterferedStorage
from tests.support.catalogs.plain_namespaces import PlainNamespaces
from tests.support.faults.faulty_catalog import Fault
from tests.support.servers.http_proxy import HttpProxy
from tests.support.servers.moto_server import MotoServer


class GlueHarness(PlainNamespaces):
    """An account of its own, behind a proxy that only this client goes through."""

    def __init__(self, *, proxy: HttpProxy, server: MotoServer) -> None:
        self.proxy = proxy
        self.options = server.new_account()
        self.storage = InterferedStorage()
        self.catalog: GlueCatalog
        self._others: list[Catalog] = []

    @classmethod
    async def open(cls, server: MotoServer) -> GlueHarness:
        proxy = await HttpProxy(server.url).__aenter__()
        harness = cls(proxy=proxy, server=server)
        harness.catalog = await harness.client(proxy.url)
        return harness

    async def client(self, url: str, *, read_timeout_s: float = 20.0) -> GlueCatalog:
        """Open a client of the account at this address."""
        options = replace(self.options, endpoint_url=url, read_timeout_s=read_timeout_s)
        return await GlueCatalog.open(storage=self.storage, options=options, world=RealWorld())

    @contextmanager
    def befall(self, fault: Fault) -> Iterator[None]:
        self.proxy.plan(b"AWSGlue.UpdateTable", HTTP_FAULTS[fault])
        yield
        assert not self.proxy.is_planned, "the fault met no swap"

    async def land_late(self) -> None:
        await self.proxy.land_late()

    async def another(self) -> GlueCatalog:
        other = await self.client(self.options.endpoint_url)
        self._others.append(other)
        return other

    async def impatient(self) -> GlueCatalog:
        """Open a client behind the proxy with a short read timeout."""
        other = await self.client(self.proxy.url, read_timeout_s=0.5)
        self._others.append(other)
        return other

    async def close(self) -> None:
        for catalog in (*self._others, self.catalog):
            await catalog.close()
        await self.proxy.__aexit__(None, None, None)
        await self.storage.close()
