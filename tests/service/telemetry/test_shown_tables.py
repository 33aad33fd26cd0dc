"""The numbers of a table are shown while it is this committer's, and not much longer."""

from __future__ import annotations

import asyncio

import pytest

from committer.request.table_identifier import TableIdentifier
from committer.service.table.table_committer import IDLE_S_MAX
from committer.service.telemetry.shown_tables import AFTER_IDLE_S, AFTER_LEAVING_S
from tests.support.builders.request_builders import build_request
from tests.support.service.scraping import Page
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True
TABLE = "db.flights"
OTHER = "db.hotels"


def shown(harness: ServiceHarness) -> set[str]:
    """Return all tables that any series names."""
    text = harness.status_collector.page().decode()
    return {
        line.partition('table="')[2].partition('"')[0]
        for line in text.splitlines()
        if 'table="' in line and not line.startswith(("#", "frazil_quarantine_requests"))
    }


def page(harness: ServiceHarness) -> Page:
    return Page(harness.status_collector.page().decode())


async def land(harness: ServiceHarness, name: str, epoch: int = 0) -> None:
    table = await harness.catalog.inner.load(TableIdentifier.parse(name))
    await harness.publish(build_request(table, epoch=epoch))
    await harness.settle()


@pytest.mark.thorough
async def test_a_table_that_rests_is_shown_for_a_day_and_then_no_more() -> None:
    harness = ServiceHarness()
    await harness.create_table(TABLE)
    async with harness.running():
        await land(harness, TABLE)
        assert shown(harness) == {TABLE}
        await asyncio.sleep(IDLE_S_MAX + AFTER_IDLE_S / 2)
        assert page(harness)("frazil_commits_total", table=TABLE) == 1
        await asyncio.sleep(AFTER_IDLE_S / 2 + 1)
        assert shown(harness) == set()
        assert harness.status_collector.status().tables == []


async def test_a_table_that_moved_is_shown_once_more_and_then_no_more_also_if_it_rested() -> None:
    harness = ServiceHarness()
    await harness.create_table(TABLE)
    await harness.create_table(OTHER)
    async with harness.running():
        await land(harness, OTHER)
        await asyncio.sleep(IDLE_S_MAX + 60)
        await land(harness, TABLE)
        await harness.release_shards()
        assert shown(harness) == {TABLE, OTHER}
        await asyncio.sleep(AFTER_LEAVING_S + 1)
        assert shown(harness) == set()


async def test_a_table_that_was_dropped_or_renamed_is_shown_no_more() -> None:
    harness = ServiceHarness()
    for name in (TABLE, OTHER):
        await harness.create_table(name)
    dropped = await harness.catalog.inner.load(TableIdentifier.parse(TABLE))
    renamed = await harness.catalog.inner.load(TableIdentifier.parse(OTHER))
    async with harness.running():
        await land(harness, TABLE)
        await land(harness, OTHER)
        await harness.catalog.inner.drop_table(dropped.identifier)
        await harness.catalog.inner.rename_table(
            renamed.identifier, TableIdentifier.parse("db.inns")
        )
        for table in (dropped, renamed):
            await harness.publish(build_request(table, epoch=1))
        await land(harness, "db.inns")
        await asyncio.sleep(IDLE_S_MAX + AFTER_LEAVING_S + 60)
        assert shown(harness) == {"db.inns"}


async def test_a_table_that_comes_back_counts_from_zero() -> None:
    harness = ServiceHarness()
    await harness.create_table(TABLE)
    async with harness.running():
        await land(harness, TABLE)
        await harness.release_shards()
        await asyncio.sleep(AFTER_LEAVING_S + 1)
        assert shown(harness) == set()
        await land(harness, TABLE, epoch=1)
        numbers = page(harness)
    assert numbers("frazil_commits_total", table=TABLE) == 1
    answers = "frazil_swap_answers_total"
    assert numbers(answers, table=TABLE, answer="committed") == 1
    assert numbers(answers, table=TABLE, answer="rejected") == 0
