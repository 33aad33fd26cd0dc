"""The metastore's lock: beside engines that commit under it, and on metastores without a fence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from committer.catalog.hive.hive_catalog import HiveCatalog
from committer.catalog.hive.table_lock import TableLocks
from committer.errors import AccessError, CatalogUnavailableError, SettingsError
from committer.ports.pointer_swap import Committed, Conflict, Unknown
from committer.real_world import RealWorld
from committer.request.table_identifier import TableIdentifier
from tests.catalog.hive.old_metastore import old_metastore
from tests.support.catalogs.hive_harness import ALTER, HiveHarness
from tests.support.faults.fault_proxy import Fault
from tests.support.servers.hive_server import HiveServer

pytestmark = pytest.mark.server

FLIGHTS = TableIdentifier(("db",), "flights")
# Calls by their names on the wire.
LOCK, UNLOCK = b"\0\0\0\x04lock", b"\0\0\0\x06unlock"
LOCK_ENABLED = "engine.hive.lock-enabled"


@pytest.fixture
async def harness(hive_server: HiveServer) -> AsyncIterator[HiveHarness]:
    harness = await HiveHarness.open(hive_server)
    yield harness
    await harness.close()


def locks_of(client: HiveCatalog, wait_s_max: float) -> TableLocks:
    """Return locks as another engine takes them."""
    return TableLocks(client._metastore.pool, RealWorld(), wait_s_max=wait_s_max)


@pytest.mark.parametrize("enabled", ["true", ""])
async def test_table_that_others_lock_is_committed_to_under_the_lock(
    harness: HiveHarness, enabled: str
) -> None:
    base = await harness.create(**({LOCK_ENABLED: enabled} if enabled else {}))
    client = await harness.client(locks=not enabled, lock_wait_s_max=0.2)
    swap = await harness.written(base)
    engine = locks_of(await harness.another(), 5)
    async with engine.held("db", "flights"):
        with pytest.raises(CatalogUnavailableError, match="another engine has held"):
            await client.swap(swap)
        assert await harness.catalog.current_location(FLIGHTS) == base.metadata_location
    assert isinstance(await client.swap(swap), Committed)
    async with locks_of(await harness.another(), 0).held("db", "flights"):
        pass  # the commit has released it, and so has the one that gave up


async def test_table_whose_property_forbids_locks_is_committed_to_without(
    harness: HiveHarness,
) -> None:
    base = await harness.create(**{LOCK_ENABLED: "false"})
    client = await harness.client(locks=True, lock_wait_s_max=0.2)
    async with locks_of(await harness.another(), 5).held("db", "flights"):
        assert isinstance(await client.swap(await harness.written(base)), Committed)


async def test_rename_holds_the_lock_as_a_commit_does(harness: HiveHarness) -> None:
    """It alters the whole entry: where nothing compares, an older pointer would come back."""
    base = await harness.create(**{LOCK_ENABLED: "true"})
    client = await harness.client(lock_wait_s_max=0.2)
    to = TableIdentifier(("db",), "renamed")
    async with locks_of(await harness.another(), 5).held("db", "flights"):
        with pytest.raises(CatalogUnavailableError, match="another engine has held"):
            await client.rename_table(FLIGHTS, to)
        assert await harness.catalog.current_location(FLIGHTS) == base.metadata_location
    await client.rename_table(FLIGHTS, to)
    assert await harness.catalog.current_location(to) == base.metadata_location


async def test_lock_of_a_rename_in_doubt_is_kept(harness: HiveHarness) -> None:
    await harness.create(**{LOCK_ENABLED: "true"})
    client = await harness.client(f"thrift://{harness.proxy.host}:{harness.proxy.port}")
    to = TableIdentifier(("db",), "renamed")
    harness.proxy.spoil(ALTER, Fault.LANDS_LATE)
    with pytest.raises(CatalogUnavailableError, match="rename"):
        await client.rename_table(FLIGHTS, to)
    with pytest.raises(CatalogUnavailableError, match="another engine has held"):
        async with locks_of(await harness.another(), 0).held("db", "flights"):
            pass
    await client.rename_table(FLIGHTS, to)
    assert await harness.catalog.list_tables(("db",)) == [to]


async def test_lock_of_a_swap_in_doubt_is_kept_for_the_next_attempt(harness: HiveHarness) -> None:
    """The call may be applied yet, over what an engine that holds the lock has read."""
    base = await harness.create()
    uri = f"thrift://{harness.proxy.host}:{harness.proxy.port}"
    client = await harness.client(uri, locks=True)
    late = await harness.written(base, attempt="1")
    harness.proxy.spoil(ALTER, Fault.LANDS_LATE)
    assert isinstance(await client.swap(late), Unknown)
    engine = locks_of(await harness.another(), 0)
    with pytest.raises(CatalogUnavailableError, match="another engine has held"):
        async with engine.held("db", "flights"):
            pass
    assert isinstance(await client.swap(await harness.written(base, attempt="2")), Committed)
    async with engine.held("db", "flights"):
        pass


@pytest.mark.parametrize("call", [LOCK, UNLOCK])
async def test_lock_whose_answer_was_lost_is_released_before_the_next_is_taken(
    harness: HiveHarness, call: bytes
) -> None:
    """It would hold off every commit until it expires, after five minutes."""
    base = await harness.create()
    uri = f"thrift://{harness.proxy.host}:{harness.proxy.port}"
    client = await harness.client(uri, locks=True, lock_wait_s_max=0.2)
    swap = await harness.written(base)
    fault = Fault.CUT_ANSWER if call == LOCK else Fault.CUT_REQUEST
    harness.proxy.spoil(call, fault)
    if call == LOCK:
        with pytest.raises(CatalogUnavailableError, match=r"lock of table db\.flights"):
            await client.swap(swap)
    else:
        answer = await client.swap(swap)
        assert isinstance(answer, Committed)
        swap = await harness.written(answer.table, attempt="2")
    with pytest.raises(CatalogUnavailableError, match="another engine has held"):
        async with locks_of(await harness.another(), 0).held("db", "flights"):
            pass
    assert isinstance(await client.swap(swap), Committed)
    async with locks_of(await harness.another(), 0).held("db", "flights"):
        pass


async def test_locks_of_others_stay_when_lost_ones_are_released(harness: HiveHarness) -> None:
    base = await harness.create()
    uri = f"thrift://{harness.proxy.host}:{harness.proxy.port}"
    client = await harness.client(uri, locks=True, lock_wait_s_max=0.2)
    swap = await harness.written(base)
    async with locks_of(await harness.another(), 5).held("db", "flights"):
        harness.proxy.spoil(LOCK, Fault.CUT_ANSWER)
        for _ in range(2):
            with pytest.raises(CatalogUnavailableError):
                await client.swap(swap)
        assert await harness.catalog.current_location(FLIGHTS) == base.metadata_location
    assert isinstance(await client.swap(swap), Committed)


# --- Metastores that ignore the expected parameter -----------------------------------------------


async def test_metastore_that_ignores_the_condition_is_refused(harness: HiveHarness) -> None:
    async with old_metastore(harness.server.address) as uri:
        client = await harness.client(uri)
        with pytest.raises(SettingsError, match=r"2\.3\.10, 4\.0\.1.*hive\.allow-unfenced-locks"):
            await client.probe()
        await client.close()
    assert await harness.catalog.list_tables(("default",)) == []


async def test_by_the_operators_word_locks_alone_keep_commits_apart(harness: HiveHarness) -> None:
    base = await harness.create()
    async with old_metastore(harness.server.address) as uri:
        clients = [await harness.client(uri, locks=True, unfenced=True) for _ in range(3)]
        await clients[0].probe()
        for number in range(3):
            swaps = [await harness.written(base, by=f"{number}-{place}") for place in range(3)]
            answers = await asyncio.gather(
                *(client.swap(swap) for client, swap in zip(clients, swaps, strict=True))
            )
            (winner,) = [answer for answer in answers if isinstance(answer, Committed)]
            assert sum(isinstance(answer, Conflict) for answer in answers) == 2
            base = winner.table
        for client in clients:
            await client.close()


async def test_table_without_locks_is_refused_where_there_is_nothing_but_locks(
    harness: HiveHarness,
) -> None:
    base = await harness.create(**{LOCK_ENABLED: "false"})
    async with old_metastore(harness.server.address) as uri:
        client = await harness.client(uri, unfenced=True)
        with pytest.raises(AccessError, match=r"engine\.hive\.lock-enabled.*allow-unfenced-locks"):
            await client.swap(await harness.written(base))
        await client.close()
    assert await harness.catalog.current_location(FLIGHTS) == base.metadata_location
