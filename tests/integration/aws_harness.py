"""A Frazil of real processes on DynamoDB and S3, as the tests have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from pyarrow import fs

from committer.catalog.catalog_properties import CatalogProperties
from committer.service.process.redis_server import private_server_url
from committer.settings.setting_names import variable_of
from tests.support.builders.jars import iceberg_aws_jars
from tests.support.integration.java_engine import JavaCatalog
from tests.support.integration.real_harness import CATALOG, RealHarness, living_in
from tests.support.servers.dynamodb_server import CREDENTIALS, REGION, DynamoDbServer
from tests.support.servers.s3_server import S3Server
from workers.files.s3_files import S3Access, s3_path
from workers.files.store_access import StoreAccess
from workers.settings.worker_settings import WorkerSettings


@dataclass(frozen=True, slots=True)
class AwsPlaces:
    """Where a harness keeps things: a DynamoDB table and a folder of a bucket, by their servers."""

    dynamodb_url: str
    table_name: str
    s3_url: str
    root: str

    @classmethod
    def new(cls, dynamodb: DynamoDbServer, s3: S3Server) -> AwsPlaces:
        """Return places that were never used."""
        return cls(dynamodb.url, dynamodb.new_table_name(), s3.url, s3.new_root())


@dataclass(slots=True, kw_only=True)
class AwsHarness(RealHarness):
    """As `RealHarness`; locally there are the queue's server and the logs only."""

    places: AwsPlaces

    @property
    def warehouse_location(self) -> str:
        return f"{self.places.root}/warehouse"

    @property
    def settings(self) -> WorkerSettings:
        places = self.places
        return WorkerSettings(
            catalog=CatalogProperties(CATALOG, self._properties()),
            inbox=f"{places.root}/requests",
            queue_url=private_server_url(self.folder / "queue"),
            access=StoreAccess(S3Access(REGION, places.s3_url)),
        )

    def _properties(self) -> dict[str, str]:
        return {
            "uri": f"dynamodb://{self.places.table_name}",
            "client.region": REGION,
            "s3.endpoint": self.places.s3_url,
            "s3.path-style-access": "true",
            "dynamodb.endpoint": self.places.dynamodb_url,
        }

    def environment(self) -> dict[str, str]:
        settings = self.settings
        return {
            **RealHarness.environment(self),
            **CREDENTIALS,
            **{variable_of(f"catalog.{name}"): text for name, text in self._properties().items()},
            "FRAZIL_CATALOG__WAREHOUSE": self.warehouse_location,
            "FRAZIL_INBOX": settings.inbox,
            # Some write more than appends, and none signs.
            "FRAZIL_SECURITY__UNSIGNED_OPERATIONS": "all",
            **self.variables,
        }

    def java_catalog(self) -> JavaCatalog:
        """Return the same places for Iceberg Java's catalog and storage, which resend calls too."""
        places = self.places
        options = {
            "catalog-impl": "org.apache.iceberg.aws.dynamodb.DynamoDbCatalog",
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "warehouse": self.warehouse_location,
            "client.region": REGION,
            "dynamodb.endpoint": places.dynamodb_url,
            "dynamodb.table-name": places.table_name,
            "s3.endpoint": places.s3_url,
            "s3.path-style-access": "true",
        }
        return JavaCatalog(iceberg_aws_jars(), options)

    def files(self) -> fs.S3FileSystem:
        """Open the objects with pyarrow."""
        host = self.places.s3_url.partition("://")[2]
        return fs.S3FileSystem(region=REGION, scheme="http", endpoint_override=host)

    def read(self, location: str) -> bytes:
        with self.files().open_input_stream(s3_path(location)) as stream:
            return bytes(stream.read())


@contextmanager
def aws_harness(
    dynamodb: DynamoDbServer, s3: S3Server, variables: Mapping[str, str] | None = None
) -> Iterator[AwsHarness]:
    """Start a harness with a queue server and no committer yet. `variables`: more settings."""
    places = AwsPlaces.new(dynamodb, s3)
    with living_in(lambda folder: AwsHarness(folder, variables or {}, places=places)) as harness:
        yield harness
