"""From the settings to the bytes: a bucket that only the credentials of the catalog open. The
catalog is the fake, the bucket is on a real server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

import pytest

from committer.catalog.catalog_properties import CatalogProperties
from committer.catalog.sql.sql_catalog import SqlCatalog
from committer.errors import AccessError
from committer.ports.storage import NewObject
from committer.real_world import RealWorld
from committer.request.table_identifier import TableIdentifier
from committer.service.admin.catalog_side import CatalogSide
from committer.service.admin.table_migration import TableMigration
from committer.service.admin.table_purge import TablePurge
from committer.service.process.composition import Parts, open_parts
from committer.settings.service_settings import CatalogSettings, QueueSettings, Settings
from committer.storage.disk.local import LocalStorage
from committer.storage.s3.s3_storage import S3Storage
from committer.table_reader import open_reader
from tests.support.builders.request_builders import build_request
from tests.support.builders.table_builders import build_table
from tests.support.servers.fake_rest import FakeRest
from tests.support.servers.fake_rest_access import Vended, s3_keys
from tests.support.servers.s3_server import OUTSIDER, VENDED, VENDED_BUCKET, S3Server
from workers.requests.connections import open_connections
from workers.settings.worker_settings import WorkerSettings

pytestmark = pytest.mark.server
FLIGHTS = TableIdentifier(("db",), "flights")


@dataclass(slots=True)
class Lake:
    """A catalog with a table in the closed bucket, and the properties of a client of both."""

    fake: FakeRest
    properties: dict[str, str]
    location: str
    inbox: str


def opened(server: S3Server, keys: tuple[str, str]) -> S3Storage:
    key, secret = keys
    options = replace(server.options, access_key_id=key, secret_access_key=secret)
    return S3Storage(options, world=RealWorld())


@pytest.fixture
async def lake(s3_server: S3Server) -> AsyncIterator[Lake]:
    if not s3_server.is_seaweedfs:
        pytest.skip("the keys of FRAZIL_TEST_S3_URL open every bucket: nothing is vended")
    storage = opened(s3_server, VENDED)
    warehouse = f"s3://{VENDED_BUCKET}/{uuid4().hex}"
    async with FakeRest(storage, warehouse=warehouse) as fake:
        fake.features.vend = lambda _: Vended(((f"s3://{VENDED_BUCKET}", s3_keys(*VENDED)),))
        fake.tables.namespaces[("db",)] = {}
        table = fake.tables.tables[FLIGHTS] = build_table(warehouse=warehouse)
        location = f"{table.metadata.location}/metadata/one.avro"
        await storage.create([NewObject(location, b"manifest")])
        properties = {
            **s3_keys(*OUTSIDER),
            "uri": fake.url,
            "type": "rest",
            "s3.endpoint": s3_server.url,
            "s3.path-style-access": "true",
            "client.region": s3_server.region,
        }
        yield Lake(fake, properties, location, s3_server.new_root())
        await storage.delete([location])
    await storage.close()


async def test_a_committer_gets_to_table_files_by_what_the_catalog_vends(
    lake: Lake, tmp_path: Path
) -> None:
    parts = await open_lake(lake, tmp_path)
    with pytest.raises(AccessError):
        await parts.storage.get(lake.location)
    await parts.catalog.load(FLIGHTS)
    assert await parts.storage.get(lake.location) == b"manifest"
    with pytest.raises(AccessError):
        await parts.own_storage.get(lake.location)
    assert [key async for key in parts.inbox.list()] == []
    await parts.close()


async def open_lake(lake: Lake, home: Path) -> Parts:
    catalog = CatalogSettings(name="lake", uri=lake.fake.url, properties=lake.properties)
    queue = QueueSettings(url="none")
    return await open_parts(Settings(home=home, inbox=lake.inbox, queue=queue, catalog=catalog))


async def test_a_purge_deletes_by_what_was_vended_before_the_drop(
    lake: Lake, s3_server: S3Server, tmp_path: Path
) -> None:
    """The catalog vends nothing for a table that it has dropped."""
    parts = await open_lake(lake, tmp_path)
    purge = TablePurge(
        identifier=FLIGHTS,
        side=CatalogSide("lake", parts.catalog, parts.storage, parts.own_storage, lake.inbox),
        warehouse=lake.fake.tables.warehouse,
    )
    assert await purge.run(await purge.plan()) >= 1
    await parts.close()
    assert FLIGHTS not in lake.fake.tables.tables
    storage = opened(s3_server, VENDED)
    assert [one async for one in storage.list(lake.location)] == []
    await storage.close()


async def test_a_table_moves_into_a_catalog_that_vends_and_its_requests_into_our_own_inbox(
    lake: Lake, s3_server: S3Server, tmp_path: Path
) -> None:
    storage = opened(s3_server, VENDED)
    old = await SqlCatalog.open(uri=f"sqlite:///{tmp_path}/old.db", name="old", storage=storage)
    table = build_table("db.trains", warehouse=lake.fake.tables.warehouse)
    await old.create_namespace(("db",))
    await old.create_table(table)
    own = LocalStorage()
    source = CatalogSide("old", old, storage, own, f"file://{tmp_path}/old-requests")
    await source.inbox.put(build_request(table, epoch=0, catalog="old"))
    parts = await open_lake(lake, tmp_path)
    target = CatalogSide("lake", parts.catalog, parts.storage, parts.own_storage, lake.inbox)
    moving = TableMigration(table.identifier, source=source, target=target, world=RealWorld())
    assert (await moving.run()).carried == 1
    uuid = table.metadata.require_uuid()
    assert len([one async for one in parts.inbox.list(uuid)]) == 1
    assert (await parts.catalog.load(table.identifier)).metadata.table_uuid == uuid
    for each in (parts, old, storage, own):
        await each.close()


async def test_a_driver_gets_the_credential_that_its_tasks_need(lake: Lake) -> None:
    settings = WorkerSettings(CatalogProperties("lake", lake.properties), lake.inbox, "none")
    connections = await open_connections(settings)
    await connections.publisher.load_table(FLIGHTS)
    found = await connections.tables.storage.credential(lake.location)
    assert found is not None
    assert found.properties["s3.access-key-id"] == VENDED[0]
    await connections.close()


async def test_a_reader_of_a_table_that_was_loaded_before_asks_again(lake: Lake) -> None:
    properties = CatalogProperties("lake", lake.properties)

    def read(*, is_prepared: bool) -> bytes:
        with open_reader(properties) as reader:
            if is_prepared:
                reader.prepare(FLIGHTS)
            return reader.read(lake.location)

    with pytest.raises(AccessError):
        await asyncio.to_thread(read, is_prepared=False)
    assert await asyncio.to_thread(read, is_prepared=True) == b"manifest"
