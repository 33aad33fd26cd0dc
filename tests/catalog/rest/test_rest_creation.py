"""How tables come into a REST catalog and leave it, on servers that differ from Iceberg's own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from committer.catalog.rest.client.rest_options import RestOptions
from committer.catalog.rest.client.rest_paths import DEFAULT_ENDPOINTS, REGISTER, RENAME, UNREGISTER
from committer.catalog.rest.rest_catalog import RestCatalog
from committer.errors import NoSuchTableError, TableAlreadyExistsError, UnsupportedError
from committer.ports.pointer_swap import Committed, Conflict, LoadedTable
from committer.real_world import RealWorld
from committer.request.table_identifier import TableIdentifier
from committer.service.admin.catalog_side import CatalogSide
from committer.service.admin.table_migration import TableMigration
from committer.service.admin.table_purge import TablePurge
from committer.storage.disk.local import LocalStorage
from tests.support.builders.table_builders import build_head_swap, build_table
from tests.support.memory.memory_catalog import MemoryCatalog
from tests.support.memory.memory_storage import MemoryStorage
from tests.support.servers.fake_rest import FakeRest
from tests.support.servers.fake_rest_features import Planned
from tests.support.servers.http_proxy import Answer as Said
from tests.support.servers.http_proxy import HttpProxy
from tests.support.servers.rest_server import RestServer

WAREHOUSE = "memory://warehouse"
WITHOUT_REGISTER = tuple(DEFAULT_ENDPOINTS - {REGISTER})
WITH_UNREGISTER = (*DEFAULT_ENDPOINTS, UNREGISTER)
Open = Callable[[], Any]


@pytest.fixture
async def fake() -> AsyncIterator[FakeRest]:
    async with FakeRest(MemoryStorage(world=RealWorld()), warehouse=WAREHOUSE) as server:
        server.tables.add_namespace(("db",), {})
        yield server


@pytest.fixture
async def opened(fake: FakeRest) -> AsyncIterator[Open]:
    async with AsyncExitStack() as stack:

        async def open_catalog() -> RestCatalog:
            catalog = await RestCatalog.open(
                options=RestOptions(uri=fake.url), storage=fake.tables.storage, world=RealWorld()
            )
            stack.push_async_callback(catalog.close)
            return catalog

        yield open_catalog


@pytest.fixture
def table() -> LoadedTable:
    return build_table(warehouse=WAREHOUSE)


# --- Creating ---


async def test_a_server_that_stages_tables_gives_them_their_uuid(
    fake: FakeRest, opened: Open, table: LoadedTable
) -> None:
    fake.features.endpoints, fake.judgment.wants_staged = WITHOUT_REGISTER, True
    catalog = await opened()
    await catalog.create_table(table)
    found = (await catalog.load(table.identifier)).metadata
    assert found.table_uuid != table.metadata.table_uuid
    assert found.location == table.metadata.location
    assert found.current_schema == table.metadata.current_schema
    assert fake.counts["POST tables"] == 1


async def test_a_server_that_stages_none_keeps_our_uuid(
    fake: FakeRest, opened: Open, table: LoadedTable
) -> None:
    fake.features.endpoints = WITHOUT_REGISTER
    fake.plan(Planned("POST", "/tables", status=406, kind="UnsupportedOperationException"))
    catalog = await opened()
    await catalog.create_table(table)
    found = await catalog.load(table.identifier)
    assert found.metadata.table_uuid == table.metadata.table_uuid
    await catalog.create_table(table)  # an earlier call's answer was lost
    with pytest.raises(TableAlreadyExistsError, match=r"is taken$"):
        await catalog.create_table(build_table(warehouse=WAREHOUSE))


@pytest.mark.server
async def test_icebergs_own_server_makes_a_staged_table(rest_server: RestServer) -> None:
    async with HttpProxy(rest_server.url) as proxy, AsyncExitStack() as stack:

        async def open_catalog() -> RestCatalog:
            options = RestOptions(uri=proxy.url)
            found = await RestCatalog.open(
                options=options, storage=LocalStorage(), world=RealWorld()
            )
            stack.push_async_callback(found.close)
            return found

        plain = await open_catalog()
        told = (await plain.client.read("v1/config")).json()
        endpoints = [one for one in told["endpoints"] if "register" not in one]
        body = json.dumps({**told, "endpoints": endpoints}).encode()
        proxy.plan(b"/v1/config", Said(200, body, "application/json"))
        catalog = await open_catalog()
        table = build_table("staged.flights", warehouse=rest_server.warehouse)
        await catalog.create_namespace(("staged",))
        await catalog.create_table(table)
        found = await catalog.load(table.identifier)
        assert found.metadata.location == table.metadata.location
        assert found.metadata.current_schema == table.metadata.current_schema
        assert isinstance(await catalog.swap(build_head_swap(found)), Committed)
        with pytest.raises(TableAlreadyExistsError):
            await catalog.create_table(table)
        await catalog.drop_table(table.identifier)


@pytest.mark.parametrize("endpoints", [tuple(DEFAULT_ENDPOINTS), WITHOUT_REGISTER])
async def test_a_name_that_a_dropped_table_keeps_is_said_to_be_so(
    fake: FakeRest, opened: Open, table: LoadedTable, endpoints: tuple[str, ...]
) -> None:
    fake.features.endpoints, fake.judgment.soft_deletes = endpoints, True
    catalog = await opened()
    other = build_table("db.other", warehouse=WAREHOUSE)
    await catalog.create_table(other)
    await catalog.create_table(table)
    await catalog.drop_table(table.identifier)
    again = build_table(warehouse=WAREHOUSE)
    with pytest.raises(TableAlreadyExistsError, match="soft delete"):
        await catalog.create_table(again)
    with pytest.raises(TableAlreadyExistsError, match="soft delete"):
        await catalog.rename_table(other.identifier, table.identifier)
    error = TableAlreadyExistsError if REGISTER in endpoints else UnsupportedError
    with pytest.raises(error, match=r"soft delete|does not register"):
        await catalog.register_table(table.identifier, table.metadata_location)
    storage = fake.tables.storage
    found = {info.location async for info in storage.list(again.metadata.location)}
    assert again.metadata_location not in found


# --- Dropping, renaming ---


async def test_a_table_is_unregistered_where_the_server_offers_it(
    fake: FakeRest, opened: Open, table: LoadedTable
) -> None:
    """Its answer is the last state: a commit that came before is in it, and none comes later."""
    fake.features.endpoints = WITH_UNREGISTER
    catalog, rival = await opened(), await opened()
    await catalog.create_table(table)
    base = await catalog.load(table.identifier)
    answer = await rival.swap(build_head_swap(base))
    assert isinstance(answer, Committed)
    assert await catalog.drop_table(table.identifier) == answer.table.metadata_location
    assert (fake.counts["POST unregister"], fake.counts["DELETE table"]) == (1, 0)
    assert isinstance(await rival.swap(build_head_swap(answer.table)), Conflict)
    with pytest.raises(NoSuchTableError):
        await catalog.drop_table(table.identifier)
    await catalog.register_table(table.identifier, answer.table.metadata_location)


@pytest.mark.parametrize("body", [b"", b"<html></html>", b"{}"])
async def test_a_table_is_dropped_whatever_an_unregistration_answers(
    fake: FakeRest, opened: Open, table: LoadedTable, body: bytes
) -> None:
    fake.features.endpoints = WITH_UNREGISTER
    catalog = await opened()
    await catalog.create_table(table)
    fake.plan(Planned("POST", "/unregister", status=200, body=body, is_applied=True))
    assert await catalog.drop_table(table.identifier) is None


async def test_else_a_table_is_dropped_without_its_files(
    fake: FakeRest, opened: Open, table: LoadedTable
) -> None:
    catalog = await opened()
    await catalog.create_table(table)
    assert await catalog.drop_table(table.identifier) is None
    assert (fake.counts["POST unregister"], fake.counts["DELETE table"]) == (0, 1)


async def test_a_server_that_registers_nothing_is_known_to(
    fake: FakeRest, opened: Open, table: LoadedTable
) -> None:
    assert (await opened()).capabilities.registers_tables
    fake.features.endpoints = WITHOUT_REGISTER
    catalog = await opened()
    assert not catalog.capabilities.registers_tables
    with pytest.raises(UnsupportedError, match="does not register"):
        await catalog.register_table(table.identifier, table.metadata_location)
    assert fake.counts["POST register"] == 0


async def test_a_server_that_offers_no_rename_is_known_not_to_rename(
    fake: FakeRest, opened: Open, table: LoadedTable
) -> None:
    assert (await opened()).capabilities.has_atomic_rename
    fake.features.endpoints = tuple(DEFAULT_ENDPOINTS - {RENAME})
    catalog = await opened()
    assert not catalog.capabilities.has_atomic_rename
    await catalog.create_table(table)
    with pytest.raises(UnsupportedError, match="does not rename"):
        await catalog.rename_table(table.identifier, TableIdentifier(("db",), "other"))
    assert fake.counts["POST rename"] == 0


# --- Asking whether a table moved ---


async def test_without_etags_a_table_is_asked_for_without_its_history(
    fake: FakeRest, table: LoadedTable
) -> None:
    fake.features.has_etags = False
    async with HttpProxy(fake.url) as proxy:
        catalog = await RestCatalog.open(
            options=RestOptions(uri=proxy.url), storage=fake.tables.storage, world=RealWorld()
        )
        try:
            await catalog.create_table(table)
            base = await catalog.load(table.identifier)
            proxy.requests.clear()
            assert await catalog.current_location(table.identifier) == base.metadata_location
            assert [one.rpartition("?")[2] for one in proxy.requests] == ["snapshots=refs"]
            answer = await catalog.swap(build_head_swap(base))
            assert isinstance(answer, Committed)
            moved = await catalog.current_location(table.identifier)
            assert moved == answer.table.metadata_location
        finally:
            await catalog.close()


# --- Tables without a metadata file that has a name ---


@pytest.mark.parametrize("location", [None, "http://127.0.0.1/pages/flights"])
async def test_a_table_without_a_named_metadata_file_is_not_moved_and_can_be_purged(
    fake: FakeRest, opened: Open, table: LoadedTable, location: str | None
) -> None:
    fake.features.shows_metadata_location = location or False
    catalog, storage = await opened(), fake.tables.storage
    await catalog.create_table(table)
    assert not (await catalog.load(table.identifier)).has_metadata_file
    target = MemoryCatalog(storage=storage)
    sides = [
        CatalogSide(name, found, storage, storage, f"memory://{name}")
        for name, found in (("old", catalog), ("new", target))
    ]
    migration = TableMigration(
        table.identifier, source=sides[0], target=sides[1], world=RealWorld()
    )
    with pytest.raises(UnsupportedError, match="names no metadata file"):
        await migration.run()
    purge = TablePurge(
        identifier=table.identifier,
        side=CatalogSide("old", catalog, storage, storage, "memory://requests"),
        warehouse=WAREHOUSE,
    )
    plan = await purge.plan()
    assert await purge.run(plan) == plan.objects
    assert [info async for info in storage.list(table.metadata.location)] == []
