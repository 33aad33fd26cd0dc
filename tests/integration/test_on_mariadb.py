"""A whole Frazil on MariaDB, while the server dies, checked by PyIceberg."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.integration.ids_seen import ids_by_pyiceberg
from tests.support.integration.catalog_real_harness import catalog_real_harness
from tests.support.integration.real_harness import until
from tests.support.integration.traffic import all_ids, producers
from tests.support.servers.mariadb_server import MariaDbServer, running_mariadb

pytestmark = [pytest.mark.server, pytest.mark.heavy, pytest.mark.timeout(180)]
EPOCHS = 10
NAME = "db.flights"


@pytest.fixture
def mortal() -> Iterator[MariaDbServer]:
    with running_mariadb() as server:
        yield server


async def test_rows_are_there_once_although_the_server_was_killed(mortal: MariaDbServer) -> None:
    uri = mortal.uri(mortal.new_database())
    with catalog_real_harness({"uri": uri}) as harness:
        await harness.start()
        table = await harness.create_table(NAME)
        async with producers(harness, table, 2) as published:
            for _ in range(2):
                publishing = [asyncio.create_task(each.publish(EPOCHS)) for each in published]
                await until(harness.is_committing(), "a commit")
                await asyncio.to_thread(mortal.kill)
                await asyncio.gather(*publishing)
                await asyncio.to_thread(mortal.start)
            await until(harness.is_settled, "an empty inbox", timeout_s=90)
        theirs = {
            "type": "sql",
            "uri": uri.replace("mariadb:", "mysql+pymysql:"),
            "warehouse": harness.warehouse_location,
        }
        assert await asyncio.to_thread(ids_by_pyiceberg, theirs, NAME) == sorted(all_ids(published))
        status = await asyncio.to_thread(harness.command, "status")
        assert status.returncode == 0, status.stderr
        checked = await asyncio.to_thread(harness.command, "catalog", "check")
        assert checked.returncode == 0, checked.stderr
