"""PyIceberg's SqlCatalog and ours on one SQLite file: each sees and keeps the other's commits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog as ForeignCatalog

from committer.catalog.sql.sql_catalog import SqlCatalog
from committer.ports.pointer_swap import Committed, Conflict
from committer.request.table_identifier import TableIdentifier
from committer.storage.disk.local import LocalStorage
from tests.support.builders.table_builders import build_swap, build_table
from tests.support.catalogs.catalogs import make_schema_v0

FLIGHTS = TableIdentifier(("db",), "flights")
ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", "b", "c"]})


def uri_of(folder: Path) -> str:
    return f"sqlite:///{folder / 'catalog.db'}"


@contextmanager
def foreign_catalog(folder: Path) -> Iterator[ForeignCatalog]:
    catalog = ForeignCatalog("frazil", uri=uri_of(folder), warehouse=f"file://{folder}/warehouse")
    yield catalog
    catalog.close()


@asynccontextmanager
async def our_catalog(folder: Path) -> AsyncIterator[tuple[SqlCatalog, LocalStorage]]:
    storage = LocalStorage()
    catalog = await SqlCatalog.open(uri=uri_of(folder), name="frazil", storage=storage)
    yield catalog, storage
    await catalog.close()
    await storage.close()


async def test_our_table_is_listed_loaded_and_appended_to_by_pyiceberg(tmp_path: Path) -> None:
    async with our_catalog(tmp_path) as (ours, storage):
        created = build_table(warehouse=f"file:{tmp_path}/warehouse")
        await ours.create_namespace(("db",))
        await ours.create_table(created)
        with foreign_catalog(tmp_path) as theirs:
            assert theirs.list_namespaces() == [("db",)]
            assert theirs.list_tables("db") == [("db", "flights")]
            table = theirs.load_table("db.flights")
            assert table.metadata_location == created.metadata_location
            assert table.metadata.table_uuid == created.metadata.table_uuid
            table.append(ROWS)

            seen = await ours.load(FLIGHTS)
            assert seen.metadata_location == table.metadata_location
            snapshot = seen.metadata.current_snapshot
            assert snapshot is not None and snapshot.summary is not None
            assert snapshot.summary["total-records"] == "3"

            stale = build_swap(created)
            await storage.create(ours.objects_before(stale))
            assert isinstance(await ours.swap(stale), Conflict)
            assert await ours.current_location(FLIGHTS) == table.metadata_location


async def test_our_swap_is_seen_by_pyiceberg_and_kept_by_its_append_from_before(
    tmp_path: Path,
) -> None:
    async with our_catalog(tmp_path) as (ours, storage):
        created = build_table(warehouse=f"file:{tmp_path}/warehouse")
        await ours.create_namespace(("db",))
        await ours.create_table(created)
        with foreign_catalog(tmp_path) as theirs:
            before = theirs.load_table("db.flights")
            swap = build_swap(created, properties={"color": "blue"})
            await storage.create(ours.objects_before(swap))
            assert isinstance(await ours.swap(swap), Committed)
            assert theirs.load_table("db.flights").metadata_location == swap.metadata_location

            before.append(ROWS)
            seen = await ours.load(FLIGHTS)
            assert seen.metadata.properties["color"] == "blue"
            assert before.scan().to_arrow().sort_by("id").equals(ROWS)


@pytest.mark.parametrize("schema", ["v1", "v0"])
async def test_table_that_pyiceberg_created_is_listed_loaded_and_swapped_by_us(
    tmp_path: Path, schema: str
) -> None:
    if schema == "v0":
        make_schema_v0(tmp_path / "catalog.db")
    with foreign_catalog(tmp_path) as theirs:
        theirs.create_namespace("db")
        created = theirs.create_table("db.flights", ROWS.schema)
        created.append(ROWS)
        async with our_catalog(tmp_path) as (ours, storage):
            assert await ours.list_namespaces() == [("db",)]
            assert await ours.list_tables(("db",)) == [FLIGHTS]
            loaded = await ours.load(FLIGHTS)
            assert loaded.metadata_location == created.metadata_location
            assert loaded.metadata.table_uuid == created.metadata.table_uuid

            swap = build_swap(loaded, properties={"color": "blue"})
            await storage.create(ours.objects_before(swap))
            assert isinstance(await ours.swap(swap), Committed)
        created.refresh()
        assert created.properties["color"] == "blue"
        assert created.scan().to_arrow().sort_by("id").equals(ROWS)
