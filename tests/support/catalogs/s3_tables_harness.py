"""The catalog of S3 Tables with its back end, able to meet each fault, for the contract suite."""

from __future__ import annotations

from dataclasses import replace

from committer.aws.client import AwsOptions
from committer.catalog.s3_tables.s3_tables_catalog import S3TablesCatalog
from committer.real_world import RealWorld
from tests.support.catalogs.http_faults import ProxiedHarness
from tests.support.catalogs.interfered_storage import InterferedStorage
from tests.support.catalogs.plain_namespaces import PlainNamespaces
from tests.support.servers.http_proxy import HttpProxy
from tests.support.servers.moto_server import MotoServer, TableBucket

# The service chooses a bucket of S3 for each table, so this is where none is.
ELSEWHERE = "s3://elsewhere"


class S3TablesHarness(PlainNamespaces, ProxiedHarness[S3TablesCatalog, InterferedStorage]):
    """A table bucket of its own."""

    warehouse = ELSEWHERE
    swap_mark = b"/metadata-location"

    def __init__(self, *, proxy: HttpProxy, bucket: TableBucket) -> None:
        self.bucket = bucket
        super().__init__(
            url=bucket.options.endpoint_url, proxy=proxy, storage=InterferedStorage(ELSEWHERE)
        )

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

    async def client(self, url: str, *, read_timeout_s: float = 20.0) -> S3TablesCatalog:
        return await S3TablesCatalog.open(
            bucket=self.bucket.arn,
            storage=self.storage,
            options=replace(self.options, endpoint_url=url, read_timeout_s=read_timeout_s),
            world=RealWorld(),
        )
