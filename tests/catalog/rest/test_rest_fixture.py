"""What Iceberg's own REST catalog for tests does beside the contract."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from functools import partial

import pytest

from committer.catalog.rest.client.rest_options import RestOptions
from committer.catalog.rest.client.rest_paths import REGISTER, RENAME
from committer.catalog.rest.rest_catalog import RestCatalog
from committer.errors import CatalogUnavailableError, SettingsError
from committer.iceberg.updates.metadata_update import AddSnapshot, SetProperties, Update
from committer.plan.commit.swap import plan_swap
from committer.ports.pointer_swap import Committed, Conflict, LoadedTable, Swap
from committer.real_world import RealWorld
from committer.service.admin.table_change import change_table
from committer.storage.disk.local import LocalStorage
from tests.support.builders.table_builders import build_head_swap, build_swap, build_table
from tests.support.servers.http_proxy import HttpProxy
from tests.support.servers.rest_server import RestServer

pytestmark = pytest.mark.server


class AheadWorld(RealWorld):
    """The real world with a clock that is ahead."""

    def now_ms(self) -> int:
        return super().now_ms() + 600_000


def at_time(swap: Swap, now_ms: int) -> Swap:
    """Return the swap with its snapshot made at this time."""
    added, *others = swap.updates
    assert isinstance(added, AddSnapshot)
    made = AddSnapshot(replace(added.snapshot, timestamp_ms=now_ms))
    return plan_swap(swap.base, (made, *others), uuid=RealWorld().uuid(), now_ms=now_ms)


@pytest.fixture
async def proxy(rest_server: RestServer) -> AsyncIterator[HttpProxy]:
    async with HttpProxy(rest_server.url) as proxy:
        yield proxy


@pytest.fixture
async def catalog(proxy: HttpProxy) -> AsyncIterator[RestCatalog]:
    options = RestOptions(uri=proxy.url)
    catalog = await RestCatalog.open(options=options, storage=LocalStorage(), world=RealWorld())
    yield catalog
    await catalog.close()


async def test_its_separator_and_its_endpoints_are_taken_over(catalog: RestCatalog) -> None:
    paths = catalog.client.paths
    assert paths.separator == "%2E"
    assert paths.offers(REGISTER)
    assert paths.offers(RENAME)


async def test_whether_a_table_moved_is_asked_without_its_metadata(
    catalog: RestCatalog, proxy: HttpProxy, rest_server: RestServer
) -> None:
    table = build_table("etags.flights", warehouse=rest_server.warehouse)
    await catalog.create_namespace(("etags",))
    await catalog.create_table(table)
    answer = await catalog.swap(build_swap(table))
    assert isinstance(answer, Committed)
    for _ in range(2):
        found = await catalog.current_location(table.identifier)
        assert found == answer.table.metadata_location
    assert [one.header("if-none-match") is not None for one in proxy.received[-2:]] == [True, True]
    assert [one.header("accept-encoding") for one in proxy.received[-2:]] == ["identity"] * 2
    assert proxy.statuses[-1] == 304


async def test_a_clock_that_is_ahead_rejects_no_request(rest_server: RestServer) -> None:
    """The server refuses a snapshot of a minute after its own time by 400, as any bad one."""
    world = AheadWorld()
    options = RestOptions(uri=rest_server.url)
    catalog = await RestCatalog.open(options=options, storage=LocalStorage(), world=world)
    try:
        table = build_table("clocks.flights", warehouse=rest_server.warehouse)
        await catalog.create_namespace(("clocks",))
        await catalog.create_table(table)
        with pytest.raises(SettingsError, match="s ahead of the catalog's"):
            await catalog.probe()
        late = at_time(build_head_swap(await catalog.load(table.identifier)), world.now_ms())
        with pytest.raises(CatalogUnavailableError, match=r"HTTP 400.*set the clock"):
            await catalog.swap(late)
        assert (await catalog.load(table.identifier)).metadata.snapshots == ()
    finally:
        await catalog.close()


async def test_eight_changes_of_one_property_build_on_one_another(
    catalog: RestCatalog, rest_server: RestServer
) -> None:
    """The server applies both of two property changes of one base, unless they move a head."""
    table = build_table("properties.flights", warehouse=rest_server.warehouse)
    await catalog.create_namespace(("properties",))
    await catalog.create_table(table)
    names = [str(number) for number in range(8)]

    async def add(name: str, found: LoadedTable) -> Sequence[Update]:
        known = {*found.metadata.properties.get("names", "").split()}
        return () if name in known else (SetProperties({"names": " ".join({*known, name})}),)

    await asyncio.gather(
        *(
            change_table(catalog, LocalStorage(), RealWorld(), table.identifier, partial(add, name))
            for name in names
        )
    )
    found = (await catalog.load(table.identifier)).metadata
    assert sorted(found.properties["names"].split()) == names
    assert len(found.snapshots) == 8


@pytest.mark.heavy
async def test_of_eight_swappers_one_wins_in_each_of_twenty_races(
    catalog: RestCatalog, rest_server: RestServer
) -> None:
    table = build_table("races.flights", warehouse=rest_server.warehouse)
    await catalog.create_namespace(("races",))
    await catalog.create_table(table)
    options = RestOptions(uri=rest_server.url)
    rivals = [
        await RestCatalog.open(options=options, storage=LocalStorage(), world=RealWorld())
        for _ in range(8)
    ]
    base = await catalog.load(table.identifier)
    try:
        for number in range(20):
            swaps = [build_head_swap(base, properties={"race": str(number)}) for _ in rivals]
            answers = await asyncio.gather(
                *(rival.swap(swap) for rival, swap in zip(rivals, swaps, strict=True))
            )
            won = [one for one in answers if isinstance(one, Committed)]
            # A loser may be told nothing, where the server's database was locked.
            assert len(won) <= 1
            base = await catalog.load(table.identifier)
            assert len(base.metadata.snapshots) == number + 1
            heads = [one.metadata.current_snapshot_id for one in swaps]
            place = heads.index(base.metadata.current_snapshot_id)
            assert not isinstance(answers[place], Conflict)
    finally:
        for rival in rivals:
            await rival.close()
