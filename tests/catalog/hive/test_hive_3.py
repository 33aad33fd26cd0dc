"""A real Hive metastore 3.1.3: it ignores the expected parameter, so its locks are all there is."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.hive import HiveCatalog as ForeignCatalog

from committer.catalog.hive.hive_catalog import HiveCatalog
from committer.catalog.hive.table_lock import TableLocks
from committer.errors import CatalogUnavailableError, SettingsError
from committer.ports.pointer_swap import Committed, Conflict, LoadedTable, Swap, Unknown
from committer.ports.storage import Storage
from committer.real_world import RealWorld
from committer.request.table_identifier import TableIdentifier
from committer.storage.disk.local import LocalStorage
from tests.support.builders.table_builders import build_swap, build_table
from tests.support.catalogs.hive_harness import HiveHarness
from tests.support.faults.faulty_catalog import Fault
from tests.support.servers.hive_server import HiveServer

pytestmark = [pytest.mark.server, pytest.mark.heavy, pytest.mark.timeout(120)]

FLIGHTS = TableIdentifier(("db",), "flights")
LOCK_ENABLED = "engine.hive.lock-enabled"
ROUNDS = 20
SWAPPERS = 8
APPENDS = 5


@pytest.fixture
async def harness(hive_3_server: HiveServer) -> AsyncIterator[HiveHarness]:
    harness = await HiveHarness.open(hive_3_server, unfenced=True)
    yield harness
    await harness.close()


# --- The operator's word -------------------------------------------------------------------------


async def test_without_the_operators_word_it_is_refused_and_nothing_is_left(
    harness: HiveHarness,
) -> None:
    careful = await HiveCatalog.open(
        uri=harness.server.uri, storage=harness.storage, world=RealWorld()
    )
    with pytest.raises(SettingsError, match=r"2\.3\.10, 4\.0\.1.*hive\.allow-unfenced-locks"):
        await careful.probe()
    await careful.close()
    assert await harness.catalog.list_tables(("default",)) == []
    await harness.catalog.probe()


@pytest.mark.parametrize(("words", "code"), [(("catalog", "check"), 1), (("serve",), 2)])
async def test_every_command_that_commits_says_why_and_fails(
    hive_3_server: HiveServer, tmp_path: Path, words: tuple[str, ...], code: int
) -> None:
    environment = {
        "FRAZIL_HOME": str(tmp_path),
        "FRAZIL_CATALOG__URI": hive_3_server.uri,
        "FRAZIL_CATALOG__WAREHOUSE": hive_3_server.warehouse,
        "PATH": "/usr/bin:/bin",
    }
    command = [sys.executable, "-m", "committer", *words]
    ended = await asyncio.to_thread(
        lambda: subprocess.run(command, env=environment, capture_output=True, text=True)
    )
    said = ended.stdout + ended.stderr
    assert ended.returncode == code, said
    assert "hive.allow-unfenced-locks" in said
    assert "Traceback" not in said


# --- Locks ---------------------------------------------------------------------------------------


async def test_each_of_twenty_races_of_eight_swappers_has_one_winner(harness: HiveHarness) -> None:
    base = await harness.create()
    clients = [await harness.another() for _ in range(SWAPPERS)]
    for number in range(ROUNDS):
        swaps = [await harness.written(base, by=f"{number}-{place}") for place in range(SWAPPERS)]
        answers = await asyncio.gather(
            *(client.swap(swap) for client, swap in zip(clients, swaps, strict=True))
        )
        (winner,) = [answer for answer in answers if isinstance(answer, Committed)]
        assert sum(isinstance(answer, Conflict) for answer in answers) == SWAPPERS - 1
        base = winner.table
        assert await harness.catalog.current_location(FLIGHTS) == base.metadata_location


async def test_a_swap_that_lands_after_its_lock_has_expired_overwrites_another(
    harness: HiveHarness,
) -> None:
    """The weaker promise: what the operator's word accepts."""
    base = await harness.create()
    late = await harness.written(base, attempt="1")
    with harness.befall(Fault.LANDS_LATE):
        assert isinstance(await harness.catalog.swap(late), Unknown)
    # It waits until the lock of the first one has expired.
    again = await harness.catalog.swap(await harness.written(base, attempt="2"))
    assert isinstance(again, Committed)
    await harness.land_late()
    assert await harness.catalog.current_location(FLIGHTS) == late.metadata_location


async def test_rename_waits_for_the_lock_and_takes_the_last_commit_along(
    harness: HiveHarness,
) -> None:
    """An alter replaces the whole entry: without the lock, the older pointer would come back."""
    base = await harness.create()
    engine = await harness.another()
    to = TableIdentifier(("db",), "renamed")
    client = await harness.client(lock_wait_s_max=0.2)
    async with TableLocks(engine._metastore.pool, RealWorld(), wait_s_max=5).held("db", "flights"):
        with pytest.raises(CatalogUnavailableError, match="another engine has held"):
            await client.rename_table(FLIGHTS, to)
        assert await harness.catalog.list_tables(("db",)) == [FLIGHTS]
    swap = await harness.written(base)
    assert isinstance(await engine.swap(swap), Committed)
    await client.rename_table(FLIGHTS, to)
    assert await harness.catalog.current_location(to) == swap.metadata_location
    assert isinstance(await engine.swap(await harness.written(base)), Conflict)


# --- Beside PyIceberg ----------------------------------------------------------------------------


def append_by_pyiceberg(server: HiveServer) -> None:
    table = ForeignCatalog("theirs", uri=server.uri).load_table("db.flights")
    for number in range(APPENDS):
        table.refresh()
        table.append(pa.table({"id": pa.array([number], pa.int64()), "name": ["theirs"]}))


async def written(storage: Storage, catalog: HiveCatalog, base: LoadedTable, key: str) -> Swap:
    swap = build_swap(base, properties={key: "won"})
    await storage.create(catalog.objects_before(swap))
    return swap


async def swap_beside(catalog: HiveCatalog, storage: Storage) -> int:
    """Set a property again and again, as a committer does; return how often it lost."""
    lost = won = 0
    while won < APPENDS:
        base = await catalog.load(FLIGHTS)
        answer = await catalog.swap(await written(storage, catalog, base, f"ours-{won}"))
        assert isinstance(answer, Committed | Conflict)
        won += isinstance(answer, Committed)
        lost += isinstance(answer, Conflict)
    return lost


async def test_commits_of_pyiceberg_and_of_ours_are_all_there(
    harness: HiveHarness, hive_3_server: HiveServer
) -> None:
    storage = LocalStorage()
    ours = await HiveCatalog.open(
        uri=hive_3_server.uri, storage=storage, world=RealWorld(), allow_unfenced_locks=True
    )
    try:
        await ours.create_namespace(("db",))
        table = build_table(warehouse=harness.warehouse, properties={LOCK_ENABLED: "true"})
        await ours.create_table(table)
        theirs = asyncio.create_task(asyncio.to_thread(append_by_pyiceberg, hive_3_server))
        await swap_beside(ours, storage)
        await theirs
        found = (await ours.load(FLIGHTS)).metadata
    finally:
        await ours.close()
        await storage.close()
    assert {f"ours-{number}" for number in range(APPENDS)} <= found.properties.keys()
    assert len(found.snapshots) == APPENDS
    seen = ForeignCatalog("theirs", uri=hive_3_server.uri).load_table("db.flights")
    assert sorted(seen.scan().to_arrow()["id"].to_pylist()) == list(range(APPENDS))
