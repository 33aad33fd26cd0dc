"""Credentials that come with a table from a REST catalog: asked for, kept and renewed. On the fake
server: no real one here vends any.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from committer.catalog.rest.client.rest_options import RestOptions
from committer.catalog.rest.client.rest_paths import CREDENTIALS, DEFAULT_ENDPOINTS
from committer.catalog.rest.rest_catalog import RestCatalog
from committer.errors import (
    AccessError,
    CatalogUnavailableError,
    NoSuchTableError,
    SettingsError,
    StorageUnavailableError,
)
from committer.ports.table_credentials import Renew, VendedCredential
from committer.real_world import RealWorld
from committer.request.table_identifier import TableIdentifier
from tests.support.builders.table_builders import build_table
from tests.support.memory.memory_storage import MemoryStorage
from tests.support.servers.fake_rest import FakeRest
from tests.support.servers.fake_rest_access import REMOTE_SIGNING, Vended, s3_keys
from tests.support.servers.fake_rest_features import Planned
from tests.support.storages.guarded_storage import KEY, Vending

WAREHOUSE = "memory://bucket"
FLIGHTS = TableIdentifier(("db",), "flights")
ALL = (*DEFAULT_ENDPOINTS, CREDENTIALS)


@dataclass(slots=True)
class Keeper:
    """Remembers what it was given last, by table."""

    kept: dict[TableIdentifier, tuple[VendedCredential, ...]] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    renew: Renew | None = None

    def keep(
        self,
        table: TableIdentifier,
        folders: tuple[str, ...],
        credentials: tuple[VendedCredential, ...],
        renew: Renew,
    ) -> None:
        self.kept[table], self.folders, self.renew = credentials, folders, renew

    async def renewed(self) -> tuple[VendedCredential, ...]:
        assert self.renew is not None
        return await self.renew()


def vend(number: int) -> Vended:
    keys = s3_keys(f"key-{number}", "hush", "token", expires_ms=number)
    return Vended(((f"{WAREHOUSE}/db", keys),), {"s3.endpoint": "http://s3:9000"})


@pytest.fixture
async def fake() -> AsyncIterator[FakeRest]:
    storage = MemoryStorage(world=RealWorld())
    async with FakeRest(storage, warehouse=WAREHOUSE) as fake:
        fake.features.vend = vend
        fake.features.endpoints = ALL
        fake.tables.namespaces[("db",)] = {}
        fake.tables.tables[FLIGHTS] = build_table(warehouse=WAREHOUSE)
        yield fake


@pytest.fixture
async def keeper() -> Keeper:
    return Keeper()


@pytest.fixture
async def catalog(fake: FakeRest, keeper: Keeper) -> AsyncIterator[RestCatalog]:
    opened = await open_catalog(fake, keeper)
    yield opened
    await opened.close()


async def open_catalog(fake: FakeRest, keeper: Keeper | None, **headers: str) -> RestCatalog:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return await RestCatalog.open(
        options=RestOptions(uri=fake.url, headers=named),
        storage=fake.tables.storage,
        world=RealWorld(),
        vended=keeper,
    )


def keys_of(credentials: tuple[VendedCredential, ...]) -> list[str]:
    return [one.properties[KEY] for one in credentials if KEY in one.properties]


async def test_each_load_brings_credentials_for_the_folders_of_the_table(
    catalog: RestCatalog, keeper: Keeper
) -> None:
    await catalog.load(FLIGHTS)
    general, special = keeper.kept[FLIGHTS]
    assert general.properties == {"s3.endpoint": "http://s3:9000"}
    assert (special.prefix, special.expires_ms) == (f"{WAREHOUSE}/db", 1)
    assert special.properties == {
        **s3_keys("key-1", "hush", "token", expires_ms=1),
        "s3.endpoint": "http://s3:9000",
    }
    assert keeper.folders[0] == f"{WAREHOUSE}/db/flights"


async def test_a_table_that_has_moved_brings_them_and_one_that_has_not_keeps_them(
    fake: FakeRest, catalog: RestCatalog, keeper: Keeper
) -> None:
    await catalog.current_location(FLIGHTS)
    await catalog.current_location(FLIGHTS)
    assert (keys_of(keeper.kept[FLIGHTS]), fake.vended) == (["key-1"], 1)
    fake.tables.tables[FLIGHTS] = build_table(warehouse=WAREHOUSE)
    await catalog.current_location(FLIGHTS)
    assert keys_of(keeper.kept[FLIGHTS]) == ["key-2"]


async def test_a_table_that_is_registered_brings_them_too(
    fake: FakeRest, catalog: RestCatalog, keeper: Keeper
) -> None:
    await catalog.create_table(build_table("db.trains", warehouse=WAREHOUSE))
    assert keys_of(keeper.kept[TableIdentifier(("db",), "trains")]) == ["key-1"]


async def test_they_are_renewed_where_the_server_has_a_place_for_it(
    fake: FakeRest, catalog: RestCatalog, keeper: Keeper
) -> None:
    await catalog.load(FLIGHTS)
    general, special = await keeper.renewed()
    assert special.properties[KEY] == "key-2"
    # It is said with the table only, and still holds.
    assert special.properties["s3.endpoint"] == general.properties["s3.endpoint"]
    assert (fake.counts["GET credentials"], fake.counts["GET table"]) == (1, 1)


async def test_else_the_table_is_loaded_again_even_if_it_has_not_moved(
    fake: FakeRest, keeper: Keeper
) -> None:
    fake.features.endpoints = None
    catalog = await open_catalog(fake, keeper)
    await catalog.load(FLIGHTS)
    assert keys_of(await keeper.renewed()) == ["key-2"]
    assert (fake.counts["GET credentials"], fake.counts["GET table"]) == (0, 2)
    await catalog.close()


async def test_secrets_of_the_configuration_are_not_taken_for_renewed_ones(
    fake: FakeRest, catalog: RestCatalog, keeper: Keeper
) -> None:
    fake.features.vend = lambda number: Vended((), s3_keys(f"key-{number}", "hush"))
    await catalog.load(FLIGHTS)
    assert keys_of(await keeper.renewed()) == ["key-3"]
    assert (fake.counts["GET credentials"], fake.counts["GET table"]) == (1, 2)


async def test_secrets_of_an_earlier_load_are_forgotten_by_a_renewal(
    fake: FakeRest, catalog: RestCatalog, keeper: Keeper
) -> None:
    fake.features.vend = lambda number: Vended(
        ((WAREHOUSE, s3_keys(f"key-{number}", "hush")),), s3_keys(f"general-{number}", "hush")
    )
    await catalog.load(FLIGHTS)
    assert keys_of(keeper.kept[FLIGHTS]) == ["general-1", "key-1"]
    assert keys_of(await keeper.renewed()) == ["key-2"]


async def test_a_renewal_that_fails_says_whether_it_will_pass(
    fake: FakeRest, catalog: RestCatalog, keeper: Keeper
) -> None:
    await catalog.load(FLIGHTS)
    fake.plan(
        Planned("GET", "/credentials", status=503), Planned("GET", "/credentials", status=403)
    )
    with pytest.raises(CatalogUnavailableError):
        await keeper.renewed()
    with pytest.raises(AccessError):
        await keeper.renewed()
    fake.tables.tables.clear()
    with pytest.raises(NoSuchTableError):
        await keeper.renewed()


async def test_nothing_is_asked_for_without_a_keeper(fake: FakeRest) -> None:
    catalog = await open_catalog(fake, None)
    await catalog.load(FLIGHTS)
    assert fake.vended == 0
    await catalog.close()


async def test_the_header_is_the_operators_but_for_remote_signing(
    fake: FakeRest, keeper: Keeper
) -> None:
    catalog = await open_catalog(fake, keeper, x_iceberg_access_delegation="none")
    await catalog.load(FLIGHTS)
    assert (fake.vended, keeper.kept[FLIGHTS]) == (0, ())
    await catalog.close()
    with pytest.raises(SettingsError, match="remote-signing: requests that the catalog signs"):
        await open_catalog(fake, keeper, X_Iceberg_Access_Delegation="remote-signing")


async def test_a_table_whose_requests_the_catalog_wants_to_sign_is_refused(
    fake: FakeRest, catalog: RestCatalog, keeper: Keeper
) -> None:
    fake.features.vend = lambda _: Vended((), REMOTE_SIGNING)
    # However often: what was refused is not answered by its ETag, without credentials.
    for look in (catalog.load, catalog.current_location, catalog.current_location):
        with pytest.raises(AccessError, match=r"db\.flights.*signed by itself"):
            await look(FLIGHTS)
    fake.features.vend = vend
    await catalog.current_location(FLIGHTS)
    assert keys_of(keeper.kept[FLIGHTS]) == ["key-4"]


async def test_a_name_that_is_no_tables_any_more_keeps_none(
    fake: FakeRest, catalog: RestCatalog, keeper: Keeper
) -> None:
    await catalog.load(FLIGHTS)
    await catalog.rename_table(FLIGHTS, TableIdentifier(("db",), "renamed"))
    assert keeper.kept[FLIGHTS] == ()


async def test_what_was_vended_for_a_dropped_table_deletes_its_files(
    fake: FakeRest, catalog: RestCatalog, keeper: Keeper
) -> None:
    await catalog.load(FLIGHTS)
    vended = keeper.kept[FLIGHTS]
    await catalog.drop_table(FLIGHTS)
    assert vended
    assert keeper.kept[FLIGHTS] == vended


# --- With the storage of table files -------------------------------------------------------------


async def test_a_table_is_read_on_through_every_end_of_its_credentials(fake: FakeRest) -> None:
    vending = Vending()
    fake.clock.now_ms = vending.world.now_ms()

    def vend_for_an_hour(number: int) -> Vended:
        vending.let_in = {"own", f"key-{number}"}
        ends_ms = vending.world.now_ms() + 3_600_000
        return Vended(((WAREHOUSE, s3_keys(f"key-{number}", "hush", "t", expires_ms=ends_ms)),))

    fake.features.vend = vend_for_an_hour
    catalog = await RestCatalog.open(
        options=RestOptions(uri=fake.url),
        storage=vending.storage,
        world=vending.world,
        vended=vending.storage,
    )
    location = (await catalog.load(FLIGHTS)).metadata_location
    await vending.memory.replace(location, b"x", etag=None)
    for _ in range(4):
        assert await vending.storage.get(location) == b"x"
        vending.world.advance(3_400)
    vending.let_in = {"own"}
    assert await vending.storage.get(location) == b"x"
    assert vending.keys == ["key-1", "key-2", "key-3", "key-4", "key-5"]
    vending.world.advance(3_700)
    fake.plan(Planned("GET", "/credentials", status=503))
    with pytest.raises(StorageUnavailableError, match="gave no new ones"):
        await vending.storage.get(location)
    await catalog.close()
