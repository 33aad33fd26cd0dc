"""One Trino for all of these tests, with each catalog that it shares with Frazil.

Its catalog files are those of its how-to page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from tests.first_hour.blocks import code_blocks
from tests.support.servers.dynamodb_server import CREDENTIALS
from tests.support.servers.hive_server import HiveServer
from tests.support.servers.postgres_server import USER, PostgresServer
from tests.support.servers.rest_server import RestServer
from tests.support.servers.s3_server import S3Server
from tests.support.servers.trino_server import TrinoServer, running_trino
from tests.trino.shared_catalog import SharedCatalog, shared_catalog

PAGE = "docs/how-to/use-trino.md"
# Of all tests; a test may ask for the catalog `s3`, on PostgreSQL with tables on S3.
CATALOGS = ("rest", "jdbc", "hive")


@pytest.fixture(scope="session")
def properties(
    rest_server: RestServer,
    postgres_server: PostgresServer,
    hive_server: HiveServer,
    s3_server: S3Server,
) -> dict[str, dict[str, str]]:
    """Return the properties of each catalog as Frazil has them."""
    port = postgres_server.port
    jdbc, other = (
        {"uri": f"jdbc:postgresql://127.0.0.1:{port}/{database}", "jdbc.user": USER}
        for database in (postgres_server.new_database(), postgres_server.new_database())
    )
    on_s3 = {
        "warehouse": s3_server.new_root(),
        "s3.endpoint": s3_server.url,
        "s3.region": s3_server.region,
        "s3.access-key-id": CREDENTIALS["AWS_ACCESS_KEY_ID"],
        "s3.secret-access-key": CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
    }
    return {
        "rest": {"uri": rest_server.url},
        "jdbc": jdbc,
        "hive": {"uri": hive_server.uri},
        "s3": {**other, **on_s3},
    }


@pytest.fixture(scope="session")
def trino_server(
    properties: dict[str, dict[str, str]], rest_server: RestServer, s3_server: S3Server
) -> Iterator[TrinoServer]:
    rest, jdbc, hive, s3 = (one.text for one in code_blocks(PAGE) if one.language == "ini")
    here = {
        "https://HOST/PATH": properties["rest"]["uri"],
        "jdbc:postgresql://HOST:5432/DATABASE": properties["jdbc"]["uri"],
        "USER": USER,
        "PASSWORD": USER,
        "WAREHOUSE": rest_server.warehouse,
        "thrift://HOST:9083": properties["hive"]["uri"],
    }
    on_s3 = {
        "jdbc:postgresql://HOST:5432/DATABASE": properties["s3"]["uri"],
        "WAREHOUSE": properties["s3"]["warehouse"],
        "https://S3_HOST": s3_server.url,
        "REGION": s3_server.region,
        "KEY": CREDENTIALS["AWS_ACCESS_KEY_ID"],
        "SECRET": CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
    }
    catalogs = {
        "rest": as_written(rest, here),
        "jdbc": as_written(jdbc, here),
        "hive": as_written(hive, here),
        "s3": as_written(f"{jdbc}\n{s3}", {**here, **on_s3}),
    }
    with running_trino(catalogs) as server:
        yield server


def as_written(text: str, here: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a page's block, with the addresses of the servers here."""
    pairs = (line.split("=", 1) for line in text.splitlines() if line)
    return {name: here.get(value, value) for name, value in pairs}


@pytest.fixture(scope="session", params=CATALOGS)
def shared(
    request: pytest.FixtureRequest,
    trino_server: TrinoServer,
    properties: dict[str, dict[str, str]],
) -> Iterator[SharedCatalog]:
    """Yield a running Frazil and Trino on one catalog of each kind."""
    client = trino_server.client(request.param)
    with shared_catalog(properties[request.param], client) as catalog:
        yield catalog
