"""Migration between real catalogs while writers swap: none of their commits is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from committer.catalog.dynamodb import DynamoDbCatalog
from committer.catalog.sql import SqlCatalog
from committer.errors import NoSuchTableError
from committer.ports.pointer_swap import Committed, Conflict
from committer.real_world import RealWorld
from committer.request.table_identifier import TableIdentifier
from committer.service.admin.table_migration import MigrationSide, TableMigration
from tests.support.builders.request_builders import build_request
from tests.support.builders.table_builders import build_swap, build_table
from tests.support.memory.memory_storage import MemoryStorage
from tests.support.servers.dynamodb_server import DynamoDbServer

FLIGHTS = TableIdentifier.parse("db.flights")
WRITERS = 3
MOVES = 4

pytestmark = pytest.mark.server


@asynccontextmanager
async def both(
    tmp_path: Path, server: DynamoDbServer
) -> AsyncIterator[tuple[MigrationSide, MigrationSide]]:
    world = RealWorld()
    storage = MemoryStorage(world=world)
    sql = await SqlCatalog.open(
        uri=f"sqlite:///{tmp_path / 'catalog.db'}", name="lake", storage=storage
    )
    dynamodb = await DynamoDbCatalog.open(
        name="prod",
        table_name=server.new_table_name(),
        storage=storage,
        options=server.options,
        world=world,
    )
    try:
        yield (
            MigrationSide("lake", sql, storage, "memory://lake-requests"),
            MigrationSide("prod", dynamodb, storage, "memory://prod-requests"),
        )
    finally:
        await sql.close()
        await dynamodb.close()


async def swap_until_gone(
    side: MigrationSide, writer: int, landed: list[str], busy: asyncio.Event
) -> None:
    """Commit as an engine does, with a property for each commit, until the table is gone."""
    catalog, storage, number = side.catalog, side.storage, 0
    while True:
        try:
            base = await catalog.load(FLIGHTS)
        except NoSuchTableError:
            return
        key = f"commit-{catalog.capabilities.kind}-{writer}-{len(landed)}-{number}"
        swap = build_swap(base, properties={key: "landed"})
        await storage.create(catalog.objects_before(swap))
        match await catalog.swap(swap):
            case Committed():
                landed.append(key)
                if number >= 3:
                    busy.set()
            case Conflict():
                pass
            case answer:
                raise AssertionError(answer)
        number += 1


async def test_a_table_goes_to_and_fro_between_sqlite_and_dynamodb_under_its_writers(
    tmp_path: Path, dynamodb_server: DynamoDbServer
) -> None:
    async with both(tmp_path, dynamodb_server) as (lake, prod):
        table = build_table("db.flights", warehouse="memory://warehouse")
        await lake.catalog.create_namespace(("db",))
        await lake.catalog.create_table(table)
        source, target = lake, prod
        landed: list[str] = []
        for move in range(MOVES):
            busy = asyncio.Event()
            async with asyncio.TaskGroup() as writers:
                for writer in range(WRITERS):
                    writers.create_task(swap_until_gone(source, writer, landed, busy))
                await busy.wait()
                waits = build_request(table, epoch=move, catalog=source.name)
                await source.inbox.put(waits)
                migration = TableMigration(FLIGHTS, source=source, target=target, world=RealWorld())
                migrated = await migration.run()
            assert migrated.carried == move + 1
            found = (await target.catalog.load(FLIGHTS)).metadata
            assert found.table_uuid == table.metadata.table_uuid
            assert {key for key in found.properties if key.startswith("commit-")} == set(landed)
            assert await source.catalog.list_tables(("db",)) == []
            source, target = target, source
