"""Transactions of tables that have no rounds: they fail, are gone, stop, or are another's now."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from committer.errors import AccessError, CatalogUnavailableError, FrazilError
from committer.iceberg.updates.metadata_update import RemoveProperties
from committer.ledger_entry import property_key
from committer.ports.pointer_swap import GroupAnswer, LoadedTable, Swap
from committer.ports.queue import shard_of
from committer.reason import Reason
from committer.request.table_identifier import TableIdentifier
from tests.support.builders.request_builders import build_request, ordered
from tests.support.builders.transactions import build_group
from tests.support.faults.faulty_catalog import Fault
from tests.support.service.outside import foreign_commit
from tests.support.service.replicas import Replicas, cancel_others
from tests.support.service.service_harness import ServiceHarness
from tests.support.service.several_tables import NAMES, counts, create, publish, transactions

VIRTUAL_TIME = True


async def publish_many(
    harness: ServiceHarness, tables: list[LoadedTable], count: int, *, swap_s: float = 5.0
) -> None:
    """Publish complete transactions, of which most wait for their turn, as the swaps are slow."""
    harness.catalog.swap_s["db.ships"] = swap_s
    for epoch in range(count):
        await publish(harness, build_group(tables, epoch=epoch))
    await harness.settle(1.0)


async def test_a_table_that_cannot_come_holds_the_others_up_for_a_moment_only() -> None:
    """Its committer is frozen: the transaction waits, and lands once it is accepted."""
    harness = ServiceHarness()
    tables = await create(harness)
    async with harness.running():
        await publish(harness, [build_request(one, producer="query-9") for one in tables])
        await harness.settle(5.0)
        before = await harness.catalog.inner.load(tables[1].identifier)
        emptied = RemoveProperties((property_key("query-9"),))
        await foreign_commit(harness, tables[1], emptied)
        await publish(harness, build_group(tables))
        await harness.settle(30.0)
        for epoch in range(1, 4):
            await harness.publish(build_request(tables[0], producer="query-9", epoch=epoch))
            await harness.settle(40.0)
        assert await counts(harness) == [4, 1, 1]
        await harness.accept("db.ships")
        await harness.settle(120.0)
    assert before.metadata.current_snapshot is not None
    assert await counts(harness) == [5, 2, 2]


@pytest.mark.parametrize("state", ["frozen", "unavailable", "unwritable"])
async def test_a_table_whose_rounds_fail_does_not_hold_up_the_others_of_its_transactions(
    state: str,
) -> None:
    """They were complete when it failed: the others do not meet in vain for one after another."""
    harness = ServiceHarness()
    tables = await create(harness)
    async with harness.running():
        await publish(harness, [build_request(one, producer="query-9") for one in tables])
        await harness.settle(5.0)
        await publish_many(harness, tables, 10)
        if state == "frozen":
            emptied = RemoveProperties((property_key("query-9"),))
            await foreign_commit(harness, tables[1], emptied)
        elif state == "unavailable":
            harness.catalog.unavailable.add("db.ships")
        else:
            harness.catalog.unwritable.add("db.ships")
        await harness.settle(10.0)
        landed = await counts(harness)
        for epoch in range(1, 40):
            await harness.publish(build_request(tables[0], producer="query-9", epoch=epoch))
            await harness.settle(5.0)
            assert await counts(harness) == [landed[0] + epoch, *landed[1:]]
        # It is tried again ever less often.
        assert harness.catalog.calls["load"] < 300
        if state == "frozen":
            await harness.accept("db.ships")
        harness.catalog.unavailable.clear()
        harness.catalog.unwritable.clear()
        await harness.settle(120.0)
    assert await counts(harness) == [50, 11, 11]
    assert await harness.outstanding() == []


async def test_transactions_of_ordered_producers_land_in_their_order_after_an_outage() -> None:
    harness = ServiceHarness()
    tables = await create(harness)
    expected = []
    harness.catalog.plan(Fault.UNAVAILABLE)
    for epoch in range(5):
        requests = [ordered(request) for request in build_group(tables, epoch=epoch)]
        assert requests[0].request.transaction is not None
        expected.append(str(requests[0].request.transaction.id))
        await publish(harness, requests)
    await harness.run_until_settled(seconds=60.0)
    for name in NAMES:
        assert await transactions(harness, name) == expected


@pytest.mark.parametrize("outage_s", [300.0, 700.0])
async def test_an_outage_is_no_wait_for_a_request_that_is_missing(outage_s: float) -> None:
    """All tables are without rounds: the first one that is back finds none of the others."""
    harness = ServiceHarness()
    tables = await create(harness)
    async with harness.running():
        await publish_many(harness, tables, 5)
        harness.catalog.unavailable.update(NAMES)
        await harness.settle(outage_s)
        harness.catalog.unavailable.clear()
        harness.catalog.swap_s.clear()
        await harness.settle(120.0)
    assert await harness.quarantined() == []
    assert await counts(harness) == [5, 5, 5]


async def test_a_request_that_waits_for_a_slow_round_of_its_table_is_not_missing() -> None:
    """Nothing fails: the request has come, and no round has looked at it."""
    harness = ServiceHarness()
    tables = await create(harness)
    async with harness.running():
        await publish(harness, [build_request(table, producer="query-9") for table in tables])
        await harness.settle(5.0)
        harness.catalog.swap_s["db.ships"] = 900.0
        await harness.publish(build_request(tables[1], producer="query-9", epoch=1))
        await harness.settle(1.0)
        harness.catalog.swap_s.clear()
        await publish(harness, build_group(tables))
        await harness.settle(800.0)
        assert await counts(harness) == [1, 1, 1]
        await harness.settle(120.0)
    assert await harness.quarantined() == []
    assert await counts(harness) == [2, 3, 2]


async def test_a_complete_transaction_may_wait_for_its_turn_for_long() -> None:
    """Then a table fails for a while: only from now on its request is missing."""
    harness = ServiceHarness()
    tables = await create(harness)
    async with harness.running():
        await publish_many(harness, tables, 20, swap_s=50.0)
        await harness.settle(720.0)
        harness.catalog.unwritable.add("db.ships")
        await harness.settle(100.0)
        harness.catalog.unwritable.clear()
        harness.catalog.swap_s.clear()
        await harness.settle(300.0)
    assert await harness.quarantined() == []
    assert await counts(harness) == [20, 20, 20]


async def test_a_table_whose_swap_takes_long_holds_up_no_table_of_its_transactions() -> None:
    """A transaction waits for its turn with no other table's turn in hand."""
    harness = ServiceHarness()
    tables = await create(harness)
    async with harness.running():
        await publish(harness, [build_request(one, producer="query-9") for one in tables])
        await harness.settle(5.0)
        for slow in NAMES[1:]:
            harness.catalog.swap_s[slow] = 300.0
        for table in tables[1:]:
            await harness.publish(build_request(table, producer="query-9", epoch=1))
        await harness.settle(1.0)
        harness.catalog.swap_s.clear()
        for epoch in range(5):
            await publish(harness, build_group(tables, epoch=epoch))
        for epoch in range(1, 11):
            await harness.publish(build_request(tables[0], producer="query-9", epoch=epoch))
            await harness.settle(3.0)
            assert await counts(harness, "db.flights") == [1 + epoch]
        await harness.settle(600.0)
    assert await counts(harness) == [16, 7, 7]


async def test_the_transactions_of_a_dropped_table_hold_up_no_other_request() -> None:
    harness = ServiceHarness()
    tables = await create(harness)
    async with harness.running():
        await publish(harness, [build_request(one, producer="query-9") for one in tables])
        await harness.settle(5.0)
        await publish_many(harness, tables, 10)
        await harness.catalog.inner.drop_table(tables[1].identifier)
        await harness.settle(120.0)
        (landed,) = await counts(harness, "db.flights")
        for epoch in range(1, 6):
            await harness.publish(build_request(tables[0], producer="query-9", epoch=epoch))
            await harness.settle(10.0)
            assert await counts(harness, "db.flights") == [landed + epoch]
        assert await harness.outstanding() == []


async def test_a_request_that_waits_for_its_transaction_ends_with_its_dropped_table() -> None:
    """Its transaction is incomplete: no attempt asks for the table."""
    harness = ServiceHarness()
    tables = await create(harness)
    _, ships, _ = build_group(tables)
    async with harness.running():
        await harness.publish(build_request(tables[1], producer="query-9"))
        await harness.publish(ships)
        await harness.settle(5.0)
        await harness.catalog.inner.drop_table(tables[1].identifier)
        await harness.publish(build_request(tables[1], producer="query-9", epoch=1))
        await harness.settle(30.0)
        assert await harness.outstanding() == []
    assert {record.reason for record in await harness.quarantined()} == {Reason.TABLE_UNKNOWN.value}


@pytest.mark.parametrize("fault", [AccessError, CatalogUnavailableError, None])
async def test_a_transaction_that_never_lands_starves_no_other_request(
    fault: type[FrazilError] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None: another engine commits to one of its tables before each swap."""
    harness = ServiceHarness()
    tables = await create(harness)
    inner = harness.catalog.swap_together

    async def swap_together(swaps: Sequence[Swap]) -> GroupAnswer:
        if fault is not None:
            raise fault("the test lets no group land")
        await foreign_commit(harness, tables[1])
        return await inner(swaps)

    async with harness.running():
        await publish(harness, [build_request(one, producer="query-9") for one in tables])
        await harness.settle(5.0)
        monkeypatch.setattr(harness.catalog, "swap_together", swap_together)
        await publish(harness, build_group(tables))
        await harness.settle(5.0)
        await harness.publish(build_request(tables[0], producer="query-9", epoch=1))
        await harness.settle(300.0)
        assert await counts(harness, "db.flights") == [2]


async def test_a_committer_that_is_told_to_stop_does_not_wait_for_the_other_tables() -> None:
    harness = ServiceHarness()
    tables = await create(harness, "db.flights", "db.ships")
    async with harness.running():
        await publish(harness, build_group(tables))
        await harness.settle()
        harness.catalog.swap_s["db.ships"] = 300.0
        await harness.publish(build_request(tables[1], producer="lone"))
        await harness.settle(1.0)
        await publish(harness, build_group(tables, epoch=1))
        await harness.settle(5.0)
        (flights,) = [one for one in harness.tables.all if one.identifier == tables[0].identifier]
        began_s = harness.world.monotonic_s()
        flights.stop()
        await harness.settle(1.0)
        assert flights.is_stopping
        assert harness.world.monotonic_s() - began_s < 2.0
    harness.catalog.swap_s.clear()
    async with harness.running(reconcile_interval_s=5.0):
        await harness.settle(60.0)
    assert await counts(harness, "db.flights", "db.ships") == [2, 3]
    assert await harness.outstanding() == []


async def test_a_committer_that_is_told_to_stop_during_a_load_joins_no_transaction() -> None:
    harness = ServiceHarness()
    tables = await create(harness, "db.flights", "db.ships")
    async with harness.running():
        for table in tables:
            await harness.publish(build_request(table, producer="lone"))
        await harness.settle(5.0)
        flights, ships = build_group(tables)
        await harness.publish(ships)
        await harness.settle(1.0)
        harness.catalog.swap_s["db.ships"] = 300.0
        await harness.publish(build_request(tables[1], producer="lone", epoch=1))
        await harness.settle(1.0)
        load = harness.catalog.load

        async def slow(identifier: TableIdentifier) -> LoadedTable:
            await asyncio.sleep(5.0)
            return await load(identifier)

        harness.catalog.load = slow  # type: ignore[method-assign]  # slowed down
        (here,) = [one for one in harness.tables.all if one.identifier == tables[0].identifier]
        here.rounds.cached_table.forget()
        await harness.publish(flights)
        await harness.settle(1.0)
        began_s = harness.world.monotonic_s()
        await harness.release_shards(shard_of(tables[0].metadata.require_uuid()))
        assert harness.world.monotonic_s() - began_s < 6.0


@pytest.fixture
async def replicas(tmp_path: Path) -> AsyncIterator[Replicas]:
    yield Replicas(tmp_path)
    await cancel_others()


async def test_a_request_that_waits_moves_with_the_shard_of_the_first_table(
    replicas: Replicas,
) -> None:
    replicas.start("a")
    await asyncio.sleep(2.0)
    harness = replicas.harness
    tables = [await replicas.table_of("b", "a"), await replicas.table_of("a", "b")]
    flights, ships = build_group(tables)
    await harness.publish(ships)
    await asyncio.sleep(5.0)
    replicas.start("b")
    await asyncio.sleep(5.0)
    await harness.publish(flights)
    await asyncio.sleep(100.0)
    assert await harness.quarantined() == []
    assert [len(await harness.live_files(str(one.identifier))) for one in tables] == [1, 1]
