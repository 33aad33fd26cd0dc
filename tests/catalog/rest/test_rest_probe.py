"""The probe refuses a server on which commits could be lost, or all be refused."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from committer.catalog.rest.client.rest_options import RestOptions
from committer.catalog.rest.rest_catalog import RestCatalog
from committer.errors import CatalogUnavailableError, SettingsError
from committer.ports.pointer_swap import Committed, Rejected
from committer.real_world import RealWorld
from tests.support.builders.table_builders import build_head_swap, build_table
from tests.support.clock.worlds import WrongWorld
from tests.support.memory.memory_storage import MemoryStorage
from tests.support.servers.fake_rest import FakeRest
from tests.support.servers.fake_rest_features import Planned

WAREHOUSE = "memory://warehouse"


@pytest.fixture
async def fake() -> AsyncIterator[FakeRest]:
    async with FakeRest(MemoryStorage(world=RealWorld()), warehouse=WAREHOUSE) as server:
        yield server


@pytest.fixture
def world() -> WrongWorld:
    return WrongWorld()


@pytest.fixture
async def catalog(fake: FakeRest, world: WrongWorld) -> AsyncIterator[RestCatalog]:
    fake.features.defaults |= {"nessie.is-nessie-catalog": "false"}
    catalog = await RestCatalog.open(
        options=RestOptions(uri=fake.url), storage=fake.tables.storage, world=world
    )
    yield catalog
    await catalog.close()


async def test_a_server_that_checks_requirements_passes_and_keeps_nothing(
    fake: FakeRest, catalog: RestCatalog
) -> None:
    await catalog.probe()
    assert (fake.tables.namespaces, fake.tables.tables) == ({}, {})


async def test_a_server_that_shows_the_newest_snapshot_only_is_refused(fake: FakeRest) -> None:
    fake.features.defaults |= {"nessie.is-nessie-catalog": "true"}
    catalog = await RestCatalog.open(
        options=RestOptions(uri=fake.url), storage=fake.tables.storage, world=RealWorld()
    )
    try:
        with pytest.raises(SettingsError, match="Nessie shows the newest snapshot"):
            await catalog.probe()
    finally:
        await catalog.close()


async def test_a_server_that_ignores_a_requirement_is_refused_by_its_name(
    fake: FakeRest, catalog: RestCatalog
) -> None:
    fake.plan(Planned("POST", "/tables/probe", status=200, body=b"{}"))
    with pytest.raises(SettingsError, match="`assert-ref-snapshot-id` does not hold"):
        await catalog.probe()
    assert (fake.tables.namespaces, fake.tables.tables) == ({}, {})


async def test_a_missing_right_is_named(fake: FakeRest, catalog: RestCatalog) -> None:
    fake.plan(Planned("POST", "/namespaces", status=403, kind="ForbiddenException"))
    with pytest.raises(SettingsError, match="lacks a right"):
        await catalog.probe()


async def test_a_clock_far_ahead_of_the_servers_is_refused_and_one_behind_is_not(
    fake: FakeRest, catalog: RestCatalog, world: WrongWorld
) -> None:
    """Java's servers refuse each commit of a clock that is a minute ahead."""
    for ahead_s in (20, -900):
        world.ahead_s = ahead_s
        await catalog.probe()
    world.ahead_s = 40
    with pytest.raises(SettingsError, match=r"clock is \d+ s ahead of the catalog's"):
        await catalog.probe()
    assert (fake.tables.namespaces, fake.tables.tables) == ({}, {})


async def test_a_refusal_rejects_no_request_while_our_clock_is_far_ahead(
    fake: FakeRest, catalog: RestCatalog, world: WrongWorld
) -> None:
    table = build_table(warehouse=WAREHOUSE)
    await catalog.create_namespace(("db",))
    await catalog.create_table(table)
    base = await catalog.load(table.identifier)
    refusal = Planned("POST", "/tables/flights", status=400, kind="ValidationException")
    world.ahead_s = 90
    fake.plan(refusal)
    with pytest.raises(CatalogUnavailableError, match="set the clock"):
        await catalog.swap(build_head_swap(base))
    world.ahead_s = 0
    fake.plan(refusal)
    assert isinstance(await catalog.swap(build_head_swap(base)), Rejected)
    assert isinstance(await catalog.swap(build_head_swap(base)), Committed)


@pytest.mark.parametrize("date", ["", "yesterday", "Mon, 99 Nov 9999999 25:00:00 GMT"])
async def test_an_answer_without_a_date_says_nothing_of_the_clock(
    catalog: RestCatalog, world: WrongWorld, date: str
) -> None:
    world.ahead_s = 900
    answer = await catalog.client.read(catalog.client.paths.namespaces())
    assert answer.clock_ahead_s > 800
    answer.headers["date"] = date  # type: ignore[index]  # as a server may say it
    assert answer.clock_ahead_s == 0
