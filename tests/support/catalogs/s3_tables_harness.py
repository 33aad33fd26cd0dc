"""The catalog of S3 Tables with its back end, able to meet each fault, for the contract suite."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from committer.aws.client import AwsOptions
from committer.catalog.s3_tables.s3_tables_catalog import S3TablesCatalog
from committer.real_world import RealWorld
from tests.support.catalogs.http_faults import HTTP_FAULTS
from tests.support.catalogs.interfered_storage import InterferedStorage
from tests.support.catalogs.plain_namespaces import PlainNamespaces
from tests.support.faults.faulty_catalog import Fault
from tests.support.servers.http_proxy import HttpProxy
from tests.support.servers.moto_server import MotoServer, TableBucket

# The service chooses a bucket of S3 for each table, so this is where none is.
ELSEWHERE = "s3://elsewhere"


class S3TablesHarness(PlainNamespaces):
    """A table bucket of its own, behind a proxy that `catalog` alone goes through."""

    warehouse = ELSEWHERE

    def __init__(self, *, proxy: HttpProxy, bucket: TableBucket) -> None:
        self.proxy = proxy
        self.bucket = bucket
        self.storage = InterferedStorage(ELSEWHERE)
        self.catalog: S3TablesCatalog
        self._others: list[S3TablesCatalog] = []

    @classmethod
    async def open(cls, server: MotoServer) -> S3TablesHarness:
        bucket = await server.new_table_bucket()
        proxy = await HttpProxy(server.url).__aenter__()
        harness = cls(proxy=proxy, bucket=bucket)
        harness.catalog = await harness.client(proxy.url)
        return harness

    @property
    def options(self) -> AwsOptions:
        return self.bucket.options

    async def client(self, url: str) -> S3TablesCatalog:
        """Open a client of the table bucket at this address."""
        return await S3TablesCatalog.open(
            bucket=self.bucket.arn,
            storage=self.storage,
            options=replace(self.options, endpoint_url=url),
            world=RealWorld(),
        )

    @contextmanager
    def befall(self, fault: Fault) -> Iterator[None]:
        self.proxy.plan(b"/metadata-location", HTTP_FAULTS[fault])
        yield
        assert not self.proxy.is_planned, "the fault met no swap"

    async def land_late(self) -> None:
        await self.proxy.land_late()

    async def another(self) -> S3TablesCatalog:
        other = await self.client(self.options.endpoint_url)
        self._others.append(other)
        return other

    async def close(self) -> None:
        for catalog in (*self._others, self.catalog):
            await catalog.close()
        await self.proxy.__aexit__(None, None, None)
        await self.storage.close()
