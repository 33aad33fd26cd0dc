"""The numbers of a table are shown while it is this committer's, and not much longer."""

from __future__ import annotations

import asyncio

from committer.request.table_identifier import TableIdentifier
from committer.service.table.table_committer import IDLE_S_MAX
from committer.service.telemetry.shown_tables import AFTER_IDLE_S, AFTER_LEAVING_S
from tests.support.builders.request_builders import build_request
from tests.support.service.scraping import Page
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True
TABLE = "db.flights"
OTHER = "db.hotels"


def shown(house: ServiceHarness) -> set[str]:
    """All tables that any series names."""
    text = house.status_collector.page().decode()
    return {
        line.partition('table="')[2].partition('"')[0]
        for line in text.splitlines()
        if 'table="' in line and not line.startswith("#")
    }


def page(house: ServiceHarness) -> Page:
    return Page(house.status_collector.page().decode())


async def land(house: ServiceHarness, name: str, epoch: int = 0) -> None:
    table = await house.catalog.inner.load(TableIdentifier.parse(name))
    await house.publish(build_request(table, epoch=epoch))
    await house.settle()


async def test_a_table_that_rests_is_shown_for_a_day_and_then_no_more() -> None:
    house = ServiceHarness()
    await house.create_table(TABLE)
    async with house.running():
        await land(house, TABLE)
        assert shown(house) == {TABLE}
        await asyncio.sleep(IDLE_S_MAX + AFTER_IDLE_S / 2)
        assert page(house)("frazil_commits_total", table=TABLE) == 1
        await asyncio.sleep(AFTER_IDLE_S / 2 + 1)
        assert shown(house) == set()
        assert house.status_collector.status().tables == []


async def test_a_table_that_moved_is_shown_once_more_and_then_no_more_also_if_it_rested() -> None:
    house = ServiceHarness()
    await house.create_table(TABLE)
    await house.create_table(OTHER)
    async with house.running():
        await land(house, OTHER)
        await asyncio.sleep(IDLE_S_MAX + 60)
        await land(house, TABLE)
        await house.release_shards()
        assert shown(house) == {TABLE, OTHER}
        await asyncio.sleep(AFTER_LEAVING_S + 1)
        assert shown(house) == set()


async def test_a_table_that_was_dropped_or_renamed_is_shown_no_more() -> None:
    house = ServiceHarness()
    for name in (TABLE, OTHER):
        await house.create_table(name)
    dropped = await house.catalog.inner.load(TableIdentifier.parse(TABLE))
    renamed = await house.catalog.inner.load(TableIdentifier.parse(OTHER))
    async with house.running():
        await land(house, TABLE)
        await land(house, OTHER)
        await house.catalog.inner.drop_table(dropped.identifier)
        await house.catalog.inner.rename_table(renamed.identifier, TableIdentifier.parse("db.inns"))
        for table in (dropped, renamed):
            await house.publish(build_request(table, epoch=1))
        await land(house, "db.inns")
        await asyncio.sleep(IDLE_S_MAX + AFTER_LEAVING_S + 60)
        assert shown(house) == {"db.inns"}


async def test_a_table_that_comes_back_counts_from_zero() -> None:
    house = ServiceHarness()
    await house.create_table(TABLE)
    async with house.running():
        await land(house, TABLE)
        await house.release_shards()
        await asyncio.sleep(AFTER_LEAVING_S + 1)
        assert shown(house) == set()
        await land(house, TABLE, epoch=1)
        numbers = page(house)
    assert numbers("frazil_commits_total", table=TABLE) == 1
    answers = "frazil_swap_answers_total"
    assert numbers(answers, table=TABLE, answer="committed") == 1
    assert numbers(answers, table=TABLE, answer="rejected") == 0
