"""Tokens of Google and signatures of Azure that a REST catalog vends: the table's files are opened
by them alone, they are renewed before their end and where the store refuses them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

import pytest

from committer.backends.storage_schemes import open_storage, open_table_storage
from committer.catalog.catalog_properties import CatalogProperties
from committer.catalog.vended_credentials import read_credentials
from committer.errors import AccessError
from committer.ports.storage import NewObject
from committer.ports.table_credentials import VendedCredential
from committer.request.table_identifier import TableIdentifier
from committer.storage.vending.vended import VendedStorage
from tests.support.clock.worlds import ManualWorld
from tests.support.servers.azurite import ACCOUNT, TEST_S_MAX, Azurite, shared_access
from tests.support.servers.gcs_server import GcsServer
from tests.support.servers.http_proxy import HttpProxy
from tests.support.storages.http_harness import gcs_refusal

pytestmark = pytest.mark.server
FLIGHTS = TableIdentifier(("db",), "flights")
HOST = f"{ACCOUNT}.dfs.core.windows.net"
HOUR_MS = 3_600_000
OVER_MS = 1_600_000_000_000
FAR_MS = 4_000_000_000_000


@dataclass
class Lake:
    """A table in a store that Frazil's own properties do not open, and a catalog that vends."""

    world: ManualWorld
    folder: str
    own: Mapping[str, str]
    good: str
    refused: str
    proxy: HttpProxy
    renewals: int = 0
    storage: VendedStorage = field(init=False)

    def __post_init__(self) -> None:
        properties = CatalogProperties("lake", dict(self.own))
        own = open_storage(properties, self.world)
        self.storage = open_table_storage(own, properties, self.world)

    def vended(self, secret: str) -> tuple[VendedCredential, ...]:
        """Read what a catalog answers, with an end in an hour."""
        ends_ms = str(self.world.now_ms() + HOUR_MS)
        if self.folder.startswith("gs:"):
            config = {"gcs.oauth2.token": secret, "gcs.oauth2.token-expires-at": ends_ms}
        else:
            config = {
                f"adls.sas-token.{HOST}": secret,
                f"adls.sas-token-expires-at-ms.{HOST}": ends_ms,
            }
        prefix = self.folder.rpartition("/")[0]
        return read_credentials(FLIGHTS, {}, [{"prefix": prefix, "config": config}])

    def vend(self, secret: str) -> None:
        self.storage.keep(FLIGHTS, (self.folder,), self.vended(secret), self.renew)

    async def renew(self) -> tuple[VendedCredential, ...]:
        self.renewals += 1
        return self.vended(self.good)

    async def use(self) -> None:
        """Create, read, list and delete two objects."""
        objects = [NewObject(f"{self.folder}/{name}", b"x") for name in "ab"]
        await self.storage.create(objects)
        places = [created.location for created in objects]
        assert [await self.storage.get(place) for place in places] == [b"x", b"x"]
        assert [info.location async for info in self.storage.list(self.folder)] == places
        await self.storage.delete(places)


@pytest.fixture(params=["gcs", pytest.param("adls", marks=pytest.mark.timeout(TEST_S_MAX))])
async def lake(request: pytest.FixtureRequest) -> AsyncIterator[Lake]:
    server: GcsServer | Azurite
    world = ManualWorld()
    if request.param == "gcs":
        server = request.getfixturevalue("gcs_server")
        async with HttpProxy(server.url) as proxy:
            own = {"gcs.service.host": proxy.url, "gcs.no-auth": "true"}
            made = Lake(world, server.new_root(), own, "good", "revoked", proxy)
            refusal = gcs_refusal(401, "authError")
            # The emulator knows no tokens.
            for known in (b"Authorization: Bearer revoked", b"/none"):
                proxy.plan(known, *[refusal] * 20)
            yield made
            await made.storage.close()
        return
    server = request.getfixturevalue("azurite")
    async with HttpProxy(server.url) as proxy:
        own = {
            "adls.anon": "true",
            "adls.blob-storage-authority": proxy.url.removeprefix("http://"),
            "adls.blob-storage-scheme": "http",
        }
        good, over = shared_access(ends_ms=FAR_MS), shared_access(ends_ms=OVER_MS)
        made = Lake(world, server.new_root(), own, good, over, proxy)
        yield made
        await made.storage.close()


def shown(lake: Lake, secret: str) -> int:
    """Return how many requests have shown the secret."""
    return sum(request.holds(secret.encode()) for request in lake.proxy.received)


async def test_the_table_is_opened_by_what_was_vended_and_nothing_else_is(lake: Lake) -> None:
    lake.vend(lake.good)
    await lake.use()
    assert shown(lake, lake.good) == len(lake.proxy.received) > 0
    beside = f"{lake.folder.rpartition('/')[0]}/none/requests"
    lake.proxy.received.clear()
    with pytest.raises(AccessError):
        await lake.storage.get(beside)
    assert lake.proxy.received
    assert shown(lake, lake.good) == 0
    assert lake.renewals == 0


async def test_a_secret_is_renewed_five_minutes_before_its_end(lake: Lake) -> None:
    lake.vend(lake.good)
    lake.world.advance(54 * 60)
    await lake.use()
    assert lake.renewals == 0
    lake.world.advance(2 * 60)
    await lake.use()
    assert lake.renewals == 1


async def test_a_secret_that_the_store_refuses_is_renewed_in_the_middle(lake: Lake) -> None:
    lake.vend(lake.refused)
    lake.world.advance(60)
    await lake.use()
    assert lake.renewals == 1
    assert shown(lake, lake.refused) > 0


async def test_what_is_refused_although_it_is_new_is_said_in_one_sentence(lake: Lake) -> None:
    lake.good = lake.refused
    lake.vend(lake.refused)
    lake.world.advance(60)
    with pytest.raises(AccessError, match=r"renew|expired") as caught:
        await lake.storage.get(f"{lake.folder}/a")
    assert lake.renewals == 1
    assert lake.refused not in str(caught.value)
    assert "\n" not in str(caught.value)
