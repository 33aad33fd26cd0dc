"""One Trino for all of these tests, with each catalog that it shares with Frazil.

Its catalog files are those of its how-to page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from tests.first_hour.blocks import code_blocks
from tests.support.servers.hive_server import HiveServer
from tests.support.servers.postgres_server import USER, PostgresServer
from tests.support.servers.rest_server import RestServer
from tests.support.servers.trino_server import TrinoServer, running_trino
from tests.trino.shared_catalog import SharedCatalog, shared_catalog

# The order of the blocks on the page.
CATALOGS = ("rest", "jdbc", "hive")
PAGE = "docs/how-to/use-trino.md"


@pytest.fixture(scope="session")
def jdbc_address(postgres_server: PostgresServer) -> str:
    return f"jdbc:postgresql://127.0.0.1:{postgres_server.port}/{postgres_server.new_database()}"


@pytest.fixture(scope="session")
def trino_server(
    rest_server: RestServer, jdbc_address: str, hive_server: HiveServer
) -> Iterator[TrinoServer]:
    here = {
        "https://HOST/PATH": rest_server.url,
        "jdbc:postgresql://HOST:5432/DATABASE": jdbc_address,
        "USER": USER,
        "PASSWORD": USER,
        "WAREHOUSE": rest_server.warehouse,
        "thrift://HOST:9083": hive_server.uri,
    }
    blocks = [block for block in code_blocks(PAGE) if block.language == "ini"]
    catalogs = {
        name: properties_of(block.text, here) for name, block in zip(CATALOGS, blocks, strict=True)
    }
    with running_trino(catalogs) as server:
        yield server


def properties_of(text: str, here: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a page's block, with the addresses of the servers here."""
    pairs = (line.split("=", 1) for line in text.splitlines())
    return {name: here.get(value, value) for name, value in pairs}


@pytest.fixture(scope="session", params=CATALOGS)
def shared(
    request: pytest.FixtureRequest,
    trino_server: TrinoServer,
    rest_server: RestServer,
    jdbc_address: str,
    hive_server: HiveServer,
) -> Iterator[SharedCatalog]:
    """Yield a running Frazil and Trino on one catalog of each kind."""
    properties = {
        "rest": {"uri": rest_server.url},
        "jdbc": {"uri": jdbc_address, "jdbc.user": USER},
        "hive": {"uri": hive_server.uri},
    }
    client = trino_server.client(request.param)
    with shared_catalog(properties[request.param], client) as catalog:
        yield catalog
