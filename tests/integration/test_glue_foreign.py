"""PyIceberg's GlueCatalog and ours in one account: each sees and keeps the other's commits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.glue import GlueCatalog as ForeignCatalog

from committer.aws.client import AwsOptions
from committer.catalog.glue.glue_catalog import GlueCatalog
from committer.ports.pointer_swap import Committed, Conflict
from committer.real_world import RealWorld
from committer.request.table_identifier import TableIdentifier
from committer.storage.disk.local import LocalStorage
from tests.support.builders.table_builders import build_swap, build_table
from tests.support.servers.moto_server import MotoServer

pytestmark = pytest.mark.server

FLIGHTS = TableIdentifier(("db",), "flights")
ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", "b", "c"]})


def foreign_catalog(options: AwsOptions, folder: Path) -> ForeignCatalog:
    return ForeignCatalog(
        "frazil",
        **{
            "warehouse": f"file://{folder}/warehouse",
            "glue.endpoint": options.endpoint_url,
            "glue.region": options.region,
            "glue.access-key-id": options.access_key_id,
            "glue.secret-access-key": options.secret_access_key,
        },
    )


@asynccontextmanager
async def our_catalog(options: AwsOptions) -> AsyncIterator[tuple[GlueCatalog, LocalStorage]]:
    storage = LocalStorage()
    catalog = await GlueCatalog.open(storage=storage, options=options, world=RealWorld())
    yield catalog, storage
    await catalog.close()
    await storage.close()


async def test_our_table_is_listed_loaded_and_appended_to_by_pyiceberg(
    moto_server: MotoServer, tmp_path: Path
) -> None:
    options = moto_server.new_account()
    async with our_catalog(options) as (ours, storage):
        created = build_table(warehouse=f"file:{tmp_path}/warehouse")
        await ours.create_namespace(("db",))
        await ours.create_table(created)
        theirs = foreign_catalog(options, tmp_path)
        assert theirs.list_namespaces() == [("db",)]
        assert theirs.list_tables("db") == [("db", "flights")]
        table = theirs.load_table("db.flights")
        assert table.metadata_location == created.metadata_location
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


async def test_table_that_pyiceberg_created_is_swapped_by_us_and_keeps_what_it_copied(
    moto_server: MotoServer, tmp_path: Path
) -> None:
    options = moto_server.new_account()
    theirs = foreign_catalog(options, tmp_path)
    theirs.create_namespace("db")
    created = theirs.create_table("db.flights", ROWS.schema, properties={"owner": "ada"})
    created.append(ROWS)
    async with our_catalog(options) as (ours, storage):
        assert await ours.list_tables(("db",)) == [FLIGHTS]
        loaded = await ours.load(FLIGHTS)
        assert loaded.metadata.table_uuid == created.metadata.table_uuid
        swap = build_swap(loaded, properties={"color": "blue"})
        await storage.create(ours.objects_before(swap))
        assert isinstance(await ours.swap(swap), Committed)

        # It retries on what we have committed, and its next commit is upon ours.
        created.append(ROWS)
        assert created.properties["color"] == "blue"
        assert created.scan().to_arrow().num_rows == 6
        last = await ours.load(FLIGHTS)
        assert last.metadata_location == created.metadata_location
    held = theirs.glue.get_table(DatabaseName="db", Name="flights")["Table"]
    assert held["Parameters"]["owner"] == "ada"
