"""A catalog file that is moved, deleted or replaced under a running process."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from sqlalchemy import event

from committer.catalog.sql.sql_catalog import SqlCatalog
from committer.catalog.sql.sql_engine import open_engine
from committer.errors import CatalogUnavailableError
from committer.ports.pointer_swap import Committed, LoadedTable
from committer.request.table_identifier import TableIdentifier
from tests.support.builders.table_builders import build_swap, build_table
from tests.support.clock.worlds import ManualWorld
from tests.support.memory.memory_storage import MemoryStorage

FLIGHTS = TableIdentifier(("db",), "flights")


@asynccontextmanager
async def open_catalog(path: Path) -> AsyncIterator[tuple[SqlCatalog, LoadedTable]]:
    """Open a catalog with an open connection, and a table in it."""
    storage = MemoryStorage(world=ManualWorld())
    catalog = await SqlCatalog.open(uri=f"sqlite:///{path}", name="frazil", storage=storage)
    table = build_table(str(FLIGHTS), warehouse="memory://warehouse")
    await catalog.create_namespace(FLIGHTS.namespace)
    await catalog.create_table(table)
    yield catalog, table
    await catalog.close()


def put_backup_in_place(path: Path) -> None:
    """Replace the file by a whole copy, what lies in the write-ahead log included."""
    backup = path.with_name("backup.db")
    with closing(sqlite3.connect(path)) as one, closing(sqlite3.connect(backup)) as other:
        one.backup(other)
    for ending in ("-wal", "-shm"):
        Path(f"{path}{ending}").unlink(missing_ok=True)
    backup.replace(path)


def location_in(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        [[location]] = connection.execute("SELECT metadata_location FROM iceberg_tables")
    return str(location)


async def test_swap_after_a_backup_was_put_in_place_lands_in_the_backup(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    async with open_catalog(path) as (catalog, table):
        put_backup_in_place(path)
        swap = build_swap(table)
        assert isinstance(await catalog.swap(swap), Committed)
        assert location_in(path) == swap.metadata_location


async def test_catalog_file_that_is_away_is_an_outage_and_works_again_when_it_is_back(
    tmp_path: Path,
) -> None:
    path, away = tmp_path / "catalog.db", tmp_path / "away.db"
    async with open_catalog(path) as (catalog, table):
        path.rename(away)
        for _ in range(2):
            with pytest.raises(CatalogUnavailableError):
                await catalog.current_location(FLIGHTS)
            with pytest.raises(CatalogUnavailableError):
                await catalog.swap(build_swap(table))
        assert not path.exists(), "an empty catalog was made in its place"
        away.rename(path)
        assert await catalog.current_location(FLIGHTS) == table.metadata_location
        assert isinstance(await catalog.swap(build_swap(table)), Committed)


async def test_swap_whose_file_is_replaced_while_it_waits_for_the_lock_is_not_applied(
    tmp_path: Path,
) -> None:
    path, away = tmp_path / "catalog.db", tmp_path / "away.db"
    engine = open_engine(f"sqlite:///{path}")
    storage = MemoryStorage(world=ManualWorld())
    catalog = await SqlCatalog.on_engine(engine=engine, name="frazil", storage=storage)
    table = build_table(str(FLIGHTS), warehouse="memory://warehouse")
    await catalog.create_namespace(FLIGHTS.namespace)
    await catalog.create_table(table)
    checked = threading.Event()
    event.listen(engine, "checkout", lambda *_: checked.set())

    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        swapping = asyncio.create_task(catalog.swap(build_swap(table)))
        await asyncio.to_thread(checked.wait)
        path.rename(away)
        shutil.copy(away, path)
        other.rollback()
        with pytest.raises(CatalogUnavailableError, match="moved, deleted or replaced"):
            await swapping
        [row] = other.execute("SELECT metadata_location FROM iceberg_tables")  # the old file
        assert row == (table.metadata_location,)
    await catalog.close()
