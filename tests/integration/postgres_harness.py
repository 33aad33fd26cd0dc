"""A Frazil of real processes whose catalog is a database of a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from committer.catalog.catalog_properties import CatalogProperties
from committer.service.process.redis_server import private_server_url
from tests.integration.real_harness import CATALOG, RealHarness, living_in
from tests.support.servers.postgres_server import USER, PostgresServer
from workers.worker_settings import WorkerSettings


@dataclass(slots=True, kw_only=True)
class PostgresRealHarness(RealHarness):
    """As `RealHarness`; `jdbc_uri` is the catalog's address as all of Frazil gets it."""

    postgres: PostgresServer
    database: str

    @property
    def jdbc_uri(self) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.postgres.port}/{self.database}"

    @property
    def settings(self) -> WorkerSettings:
        properties = {"uri": self.jdbc_uri, "jdbc.user": USER}
        return WorkerSettings(
            catalog=CatalogProperties(CATALOG, properties),
            inbox=f"file://{self.folder}/requests",
            queue_url=private_server_url(self.folder / "queue"),
        )

    def environment(self) -> dict[str, str]:
        return {
            **RealHarness.environment(self),
            "FRAZIL_CATALOG__URI": self.jdbc_uri,
            "FRAZIL_CATALOG__JDBC__USER": USER,
            "FRAZIL_CATALOG__WAREHOUSE": self.warehouse_location,
            **self.variables,
        }


@contextmanager
def postgres_real_harness(
    postgres: PostgresServer, **variables: str
) -> Iterator[PostgresRealHarness]:
    """Start a harness with a queue server and no committer yet. `variables`: more settings."""
    database = postgres.new_database()

    def build(folder: Path) -> PostgresRealHarness:
        return PostgresRealHarness(folder, variables, postgres=postgres, database=database)

    with living_in(build) as harness:
        yield harness
