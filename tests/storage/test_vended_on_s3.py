"""Vended credentials on a real S3 server: the table's bucket is closed to our own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from uuid import uuid4

import pytest

from committer.backends.storage_schemes import open_storage, open_table_storage
from committer.catalog.catalog_properties import CatalogProperties
from committer.errors import AccessError
from committer.ports.storage import NewObject
from committer.ports.table_credentials import VendedCredential
from committer.request.table_identifier import TableIdentifier
from committer.storage.vending.vended import VendedStorage
from tests.support.clock.worlds import ManualWorld
from tests.support.servers.fake_rest_access import s3_keys
from tests.support.servers.s3_server import OUTSIDER, VENDED, VENDED_BUCKET, S3Server

pytestmark = pytest.mark.server
FLIGHTS = TableIdentifier(("db",), "flights")


class Lake:
    """A storage whose own keys cannot enter the bucket of its table."""

    def __init__(self, server: S3Server) -> None:
        if not server.is_seaweedfs:
            pytest.skip("the keys of FRAZIL_TEST_S3_URL open every bucket: nothing is vended")
        self.world = ManualWorld()
        self.folder = f"s3://{VENDED_BUCKET}/{uuid4().hex}"
        self.inbox = server.new_root()
        self.renewals = 0
        values = {
            **s3_keys(*OUTSIDER),
            "s3.endpoint": server.url,
            "s3.path-style-access": "true",
            "client.region": server.region,
        }
        properties = CatalogProperties("lake", values)
        own = open_storage(properties, self.world)
        self.storage: VendedStorage = open_table_storage(own, properties, self.world)

    def vend(self, keys: Mapping[str, str]) -> None:
        credential = VendedCredential(
            f"s3://{VENDED_BUCKET}", keys, self.world.now_ms() + 3_600_000
        )
        self.storage.keep(FLIGHTS, (self.folder,), (credential,), self.renew)

    async def renew(self) -> tuple[VendedCredential, ...]:
        self.renewals += 1
        return (VendedCredential(f"s3://{VENDED_BUCKET}", s3_keys(*VENDED)),)


@pytest.fixture
async def lake(s3_server: S3Server) -> AsyncIterator[Lake]:
    lake = Lake(s3_server)
    yield lake
    await lake.storage.close()


async def test_the_table_is_reached_by_vended_keys_alone_and_the_inbox_by_our_own(
    lake: Lake,
) -> None:
    file, request = NewObject(f"{lake.folder}/one", b"x"), NewObject(f"{lake.inbox}/one", b"y")
    with pytest.raises(AccessError):
        await lake.storage.create([file])
    lake.vend(s3_keys(*VENDED))
    await lake.storage.create([file, request])
    assert await lake.storage.get(file.location) == b"x"
    assert await lake.storage.get(request.location) == b"y"
    assert [info.location async for info in lake.storage.list(lake.folder)] == [file.location]
    await lake.storage.delete([file.location, request.location])
    assert lake.renewals == 0


async def test_keys_that_the_server_refuses_are_renewed_in_the_middle(lake: Lake) -> None:
    lake.vend(s3_keys("revoked", "revoked-secret"))
    lake.world.advance(60)
    objects = [NewObject(f"{lake.folder}/{number}", b"x") for number in range(5)]
    await lake.storage.create(objects)
    assert lake.renewals == 1
    assert [info.location async for info in lake.storage.list(lake.folder)] == [
        created.location for created in objects
    ]
    await lake.storage.delete([created.location for created in objects])
