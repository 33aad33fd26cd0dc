"""Transactions and plain requests of the same tables: each has its turn."""

from __future__ import annotations

from itertools import permutations

import pytest

from tests.support.builders.request_builders import build_request
from tests.support.builders.transactions import build_group
from tests.support.service.service_harness import ServiceHarness
from tests.support.service.several_tables import NAMES, counts, create, publish, transactions

VIRTUAL_TIME = True
SWAP_S = 5.0


@pytest.mark.parametrize("name", NAMES)
async def test_a_plain_request_waits_for_one_transaction_at_most(name: str) -> None:
    """However many are complete: the one under way when it comes, on any of their tables."""
    harness = ServiceHarness()
    tables = await create(harness)
    table = tables[NAMES.index(name)]
    harness.catalog.swap_s["db.ships"] = SWAP_S
    async with harness.running():
        for epoch in range(10):
            await publish(harness, build_group(tables, epoch=epoch))
        await harness.settle(2.5 * SWAP_S)
        for epoch in range(3):
            before = len(await transactions(harness, name))
            await harness.publish(build_request(table, producer="lone", epoch=epoch))
            await harness.settle(3 * SWAP_S)
            landed = (await transactions(harness, name))[before:]
            assert None in landed[:2]
        await harness.settle(20 * SWAP_S)
        assert await harness.outstanding() == []
    assert (await counts(harness, name)) == [13]


@pytest.mark.parametrize("order", list(permutations(range(3))))
async def test_a_plain_request_of_each_table_lands_within_seconds_beside_many_transactions(
    order: tuple[int, int, int],
) -> None:
    harness = ServiceHarness(min_interval_ms=1_000)
    tables = await create(harness)
    async with harness.running():
        for epoch in range(20):
            await publish(harness, build_group([tables[one] for one in order], epoch=epoch))
            lone = [build_request(one, producer="lone", epoch=epoch) for one in tables]
            await publish(harness, lone)
            await harness.settle(2.5)
            assert await harness.outstanding() == []
    assert await counts(harness) == [40, 40, 40]


async def test_transactions_that_name_their_tables_in_opposite_orders_wait_for_no_other() -> None:
    harness = ServiceHarness()
    tables = await create(harness)
    harness.catalog.swap_s.update(dict.fromkeys(NAMES, 0.1))
    async with harness.running():
        for epoch in range(10):
            for number, group in enumerate((tables, tables[::-1], tables[1:] + tables[:1])):
                requests = build_group(group, producer=f"p{number}", epoch=epoch)
                await publish(harness, requests[:: 1 if epoch % 2 else -1])
        await harness.settle(10.0)
        assert await harness.outstanding() == []
    assert await counts(harness) == [30, 30, 30]
    assert harness.catalog.calls["swap_together"] == 30


async def test_a_table_that_is_away_delays_the_transactions_that_name_it_alone() -> None:
    """Those of the other two tables land, and their plain requests, without a wait."""
    harness = ServiceHarness()
    tables = await create(harness)
    async with harness.running():
        harness.catalog.unavailable.add("db.trains")
        await publish(harness, build_group(tables, producer="all"))
        await harness.settle(5.0)
        for epoch in range(20):
            await publish(harness, build_group(tables[:2], producer="two", epoch=epoch))
            await harness.publish(build_request(tables[0], producer="lone", epoch=epoch))
            await harness.settle(2.0)
            assert await counts(harness, *NAMES[:2]) == [2 * (epoch + 1), epoch + 1]
        harness.catalog.unavailable.clear()
        await harness.settle(30.0)
        assert await harness.outstanding() == []
    assert await counts(harness) == [41, 21, 1]
    assert await harness.quarantined() == []
