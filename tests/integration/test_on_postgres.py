"""A whole Frazil on PostgreSQL, beside PyIceberg, and while the server dies."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

from tests.integration.ids_seen import ids_by_pyiceberg
from tests.support.integration.catalog_real_harness import CatalogRealHarness, catalog_real_harness
from tests.support.integration.real_harness import CATALOG, until
from tests.support.integration.traffic import all_ids, producers
from tests.support.servers.postgres_server import USER, PostgresServer, running_postgres

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.timeout(180)]
APPENDS = 5
EPOCHS = 20


@pytest.fixture
def mortal() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


def harness_on(postgres: PostgresServer) -> AbstractContextManager[CatalogRealHarness]:
    """Start a harness with a database of its own, whose address is written as Java writes it."""
    uri = f"jdbc:postgresql://127.0.0.1:{postgres.port}/{postgres.new_database()}"
    return catalog_real_harness({"uri": uri, "jdbc.user": USER})


def foreign_properties(harness: CatalogRealHarness) -> dict[str, str]:
    """Return the same catalog in PyIceberg's words."""
    address = harness.properties["uri"].removeprefix("jdbc:postgresql://")
    uri = f"postgresql+psycopg://{USER}@{address}"
    return {"type": "sql", "uri": uri, "warehouse": harness.warehouse_location}


def append_by_pyiceberg(harness: CatalogRealHarness, name: str) -> list[int]:
    """Append one row at a time; return the ids."""
    ids = [-number for number in range(1, APPENDS + 1)]
    with closing(load_catalog(CATALOG, **foreign_properties(harness))) as catalog:
        for each in ids:
            table = catalog.load_table(name)
            table.append(pa.table({"id": pa.array([each], pa.int64()), "carrier": ["ZZ"]}))
    return ids


@pytest.mark.heavy
async def test_rows_of_producers_and_of_pyiceberg_are_all_there_once(
    postgres_server: PostgresServer,
) -> None:
    name = "db.flights"
    with harness_on(postgres_server) as harness:
        await harness.start()
        table = await harness.create_table(name)
        async with producers(harness, table, 2, waiting=1) as published:
            theirs = asyncio.create_task(asyncio.to_thread(append_by_pyiceberg, harness, name))
            await asyncio.gather(*(producer.publish(EPOCHS) for producer in published))
            foreign = await theirs
            await until(harness.is_settled, "an empty inbox")
        assert ids_by_pyiceberg(foreign_properties(harness), name) == sorted(
            all_ids(published) + foreign
        )
        status = await asyncio.to_thread(harness.command, "status")
        assert status.returncode == 0, status.stderr
        assert harness.properties["uri"] in status.stdout


async def test_rows_are_there_once_although_the_server_was_killed_again_and_again(
    mortal: PostgresServer,
) -> None:
    name = "db.flights"
    with harness_on(mortal) as harness:
        await harness.start()
        table = await harness.create_table(name)
        async with producers(harness, table, 2) as published:
            for _ in range(3):
                publishing = [asyncio.create_task(each.publish(EPOCHS)) for each in published]
                await until(harness.is_committing(), "a commit")
                await asyncio.to_thread(mortal.kill)
                await asyncio.gather(*publishing)
                await asyncio.to_thread(mortal.start)
            await until(harness.is_settled, "an empty inbox")
        assert ids_by_pyiceberg(foreign_properties(harness), name) == sorted(all_ids(published))
