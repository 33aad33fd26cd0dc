"""A whole Frazil on a Hive metastore that is killed, checked by PyIceberg."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyiceberg.table import StaticTable

from committer.catalog.hive.hive_catalog import HiveCatalog
from committer.ports.pointer_swap import LoadedTable
from committer.real_world import RealWorld
from committer.storage.disk.local import LocalStorage
from tests.support.catalogs.hive_harness import empty
from tests.support.integration.catalog_real_harness import CatalogRealHarness, catalog_real_harness
from tests.support.integration.real_harness import until
from tests.support.integration.traffic import all_ids, producers
from tests.support.servers.hive_server import HiveServer

pytestmark = [
    pytest.mark.server,
    pytest.mark.slow,
    pytest.mark.heavy,
    pytest.mark.timeout(180),
]
EPOCHS = 10


@contextmanager
def hive_real_harness(hive: HiveServer) -> Iterator[CatalogRealHarness]:
    empty(hive)
    with catalog_real_harness({"uri": hive.uri, "warehouse": hive.warehouse}) as harness:
        yield harness


async def seen_by_pyiceberg(harness: CatalogRealHarness, table: LoadedTable) -> list[int]:
    catalog = await HiveCatalog.open(
        uri=harness.properties["uri"], storage=LocalStorage(), world=RealWorld()
    )
    location = await catalog.current_location(table.identifier)
    await catalog.close()
    rows = await asyncio.to_thread(lambda: StaticTable.from_metadata(location).scan().to_arrow())
    return sorted(rows["id"].to_pylist())


async def test_rows_are_there_once_although_the_metastore_was_killed(
    hive_server: HiveServer,
) -> None:
    with hive_real_harness(hive_server) as harness:
        await harness.start()
        table = await harness.create_table("db.flights")
        async with producers(harness, table, 2) as published:
            publishing = [asyncio.create_task(each.publish(EPOCHS)) for each in published]
            await until(harness.is_committing(), "a commit")
            hive_server.kill()
            await asyncio.gather(*publishing)
            hive_server.start()
            await until(harness.is_settled, "an empty inbox", timeout_s=90)
        assert await seen_by_pyiceberg(harness, table) == sorted(all_ids(published))
        checked = await asyncio.to_thread(harness.command, "catalog", "check")
        assert checked.returncode == 0, checked.stderr
        made = await asyncio.to_thread(
            harness.command, "table", "create", "db.other", "--schema", "id long"
        )
        assert made.returncode == 0, made.stderr
        listed = await asyncio.to_thread(harness.command, "table", "list")
        assert "db.other" in listed.stdout


async def test_metastore_that_is_down_is_named_with_its_address(tmp_path: Path) -> None:
    environment = {
        "FRAZIL_HOME": str(tmp_path),
        "FRAZIL_CATALOG__URI": "thrift://127.0.0.1:1",
        "PATH": "/usr/bin:/bin",
    }
    ended = await asyncio.to_thread(
        lambda: subprocess.run(
            [sys.executable, "-m", "committer", "table", "list"],
            env=environment,
            capture_output=True,
            text=True,
        )
    )
    assert ended.returncode == 1
    assert "thrift://127.0.0.1:1" in ended.stderr
    assert "Traceback" not in ended.stderr
