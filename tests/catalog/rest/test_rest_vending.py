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
from committer.errors import AccessError
from committer.ports.storage import NewObject
from committer.real_world import RealWorld
from committer.request.table_identifier import TableIdentifier
from committer.service.process.composition import open_parts
from committer.settings.service_settings import CatalogSettings, QueueSettings, Settings
from committer.storage.s3 import S3Storage
from committer.table_reader import open_reader
from tests.support.builders.table_builders import build_table
from tests.support.servers.fake_rest import FakeRest
from tests.support.servers.fake_rest_access import Vended, s3_keys
from tests.support.servers.s3_server import OUTSIDER, VENDED, VENDED_BUCKET, S3Server
from workers.connections import open_connections
from workers.worker_settings import WorkerSettings

pytestmark = pytest.mark.server
FLIGHTS = TableIdentifier(("db",), "flights")


@dataclass(slots=True)
class Lake:
    """A catalog with a table in the closed bucket, and the properties of a client of both."""

    fake: FakeRest
    properties: dict[str, str]
    location: str
    inbox: str


@pytest.fixture
async def lake(s3_server: S3Server) -> AsyncIterator[Lake]:
    if not s3_server.is_seaweedfs:
        pytest.skip("the keys of FRAZIL_TEST_S3_URL open every bucket: nothing is vended")
    key, secret = VENDED
    options = replace(s3_server.options, access_key_id=key, secret_access_key=secret)
    storage = S3Storage(options, world=RealWorld())
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
    catalog = CatalogSettings(name="lake", uri=lake.fake.url, properties=lake.properties)
    queue = QueueSettings(url="none")
    parts = await open_parts(
        Settings(home=tmp_path, inbox=lake.inbox, queue=queue, catalog=catalog)
    )
    with pytest.raises(AccessError):
        await parts.storage.get(lake.location)
    await parts.catalog.load(FLIGHTS)
    assert await parts.storage.get(lake.location) == b"manifest"
    with pytest.raises(AccessError):
        await parts.own_storage.get(lake.location)
    assert [key async for key in parts.inbox.list()] == []
    await parts.close()


async def test_a_driver_gets_the_credential_that_its_tasks_need(lake: Lake) -> None:
    settings = WorkerSettings(CatalogProperties("lake", lake.properties), lake.inbox, "none")
    connections = await open_connections(settings)
    await connections.publisher.load_table(FLIGHTS)
    found = await connections.storage.credential(lake.location)
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
