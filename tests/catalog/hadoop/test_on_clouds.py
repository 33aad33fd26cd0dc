"""File system tables on Google Cloud Storage and on Azure: the condition of the create decides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from committer.catalog.hadoop.hadoop_catalog import HadoopCatalog
from committer.ports.pointer_swap import Committed, Conflict
from committer.ports.storage import Storage
from committer.real_world import RealWorld
from committer.request.table_identifier import TableIdentifier
from committer.storage.adls.open_adls import open_adls
from committer.storage.gcs.open_gcs import open_gcs
from tests.support.builders.table_builders import build_swap, build_table
from tests.support.servers.azurite import TEST_S_MAX

pytestmark = [pytest.mark.server, pytest.mark.timeout(TEST_S_MAX)]
FLIGHTS = TableIdentifier(("db",), "flights")
RACES = 20
SWAPPERS = 8


@pytest.fixture(params=["gcs", "adls"])
async def place(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Storage, str]]:
    storage: Storage
    if request.param == "gcs":
        server = request.getfixturevalue("gcs_server")
        storage = open_gcs(server.options, world=RealWorld())
    else:
        server = request.getfixturevalue("azurite")
        storage = open_adls(server.options, world=RealWorld())
    yield storage, server.new_root()
    await storage.close()


async def test_of_eight_swappers_exactly_one_wins_each_of_twenty_races(
    place: tuple[Storage, str],
) -> None:
    storage, warehouse = place

    def client() -> HadoopCatalog:
        return HadoopCatalog(warehouse=warehouse, storage=storage, no_other_writers=True)

    catalog = client()
    await catalog.probe()
    await catalog.create_namespace(("db",))
    await catalog.create_table(build_table(warehouse=warehouse))
    clients = [client() for _ in range(SWAPPERS)]
    for number in range(RACES):
        base = await catalog.load(FLIGHTS)
        swaps = [build_swap(base, properties={f"race-{number}": str(n)}) for n in range(SWAPPERS)]
        answers = await asyncio.gather(
            *(one.swap(swap) for one, swap in zip(clients, swaps, strict=True))
        )
        [winner] = [answer for answer in answers if isinstance(answer, Committed)]
        assert sum(isinstance(answer, Conflict) for answer in answers) == SWAPPERS - 1
        assert await catalog.load(FLIGHTS) == winner.table
    folder = f"{warehouse}/db/flights/metadata"
    assert await catalog.current_location(FLIGHTS) == f"{folder}/v{RACES + 1}.metadata.json"
    assert await storage.get(f"{folder}/version-hint.text") == str(RACES + 1).encode()
    assert await catalog.list_tables(("db",)) == [FLIGHTS]
    assert await catalog.list_namespaces() == [("db",)]
