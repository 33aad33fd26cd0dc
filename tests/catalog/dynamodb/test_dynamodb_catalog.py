"""The DynamoDB catalog beyond the contract: Java's items, one call a swap, races."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from committer.catalog.dynamodb.dynamodb_catalog import DynamoDbCatalog
from committer.errors import (
    CatalogUnavailableError,
    InvalidMetadataError,
    NamespaceNotEmptyError,
    NoSuchTableError,
    TableAlreadyExistsError,
    UnsupportedError,
)
from committer.ports.pointer_swap import Committed, Conflict, LoadedTable, Unknown
from committer.request.table_identifier import TableIdentifier
from tests.support.builders.table_builders import build_swap, build_table
from tests.support.catalogs.catalogs import DynamoDbHarness
from tests.support.catalogs.dynamodb_items import JAVA_VERSION, Items, java_table, open_items
from tests.support.catalogs.plain_namespaces import WAREHOUSE
from tests.support.servers.dynamodb_server import DynamoDbServer
from tests.support.servers.http_proxy import Answer, Fault

pytestmark = pytest.mark.server

FLIGHTS = TableIdentifier(("db",), "flights")
TRAINS = TableIdentifier(("db",), "trains")
KEY = ("db.flights", "db")


@pytest.fixture
async def harness(dynamodb_server: DynamoDbServer) -> AsyncIterator[DynamoDbHarness]:
    harness = await DynamoDbHarness.open(dynamodb_server)
    yield harness
    await harness.close()


@pytest.fixture
async def items(dynamodb_server: DynamoDbServer, harness: DynamoDbHarness) -> AsyncIterator[Items]:
    async with open_items(dynamodb_server, harness.table_name) as items:
        yield items


@pytest.fixture
def catalog(harness: DynamoDbHarness) -> DynamoDbCatalog:
    return harness.catalog


async def create(catalog: DynamoDbCatalog, name: str = "db.flights") -> LoadedTable:
    table = build_table(name, warehouse=WAREHOUSE)
    await catalog.create_namespace(table.identifier.namespace)
    await catalog.create_table(table)
    return table


# --- Items ---------------------------------------------------------------------------------------


async def test_items_have_exactly_the_attributes_that_java_gives_them(
    catalog: DynamoDbCatalog, items: Items
) -> None:
    table = await create(catalog)
    namespace, created = await items.get("NAMESPACE", "db"), await items.get(*KEY)
    assert namespace == {
        "identifier": "NAMESPACE",
        "namespace": "db",
        "v": namespace["v"],
        "created_at": namespace["created_at"],
        "updated_at": namespace["created_at"],
    }
    assert created == {
        "identifier": "db.flights",
        "namespace": "db",
        "v": created["v"],
        "created_at": created["created_at"],
        "updated_at": created["created_at"],
        "p.table_type": "ICEBERG",
        "p.metadata_location": table.metadata_location,
    }
    swap = build_swap(table)
    assert isinstance(await catalog.swap(swap), Committed)
    swapped = await items.get(*KEY)
    assert swapped == created | {
        "v": swapped["v"],
        "updated_at": swapped["updated_at"],
        "p.metadata_location": swap.metadata_location,
        "p.previous_metadata_location": table.metadata_location,
    }
    versions = {one["v"] for one in (namespace, created, swapped)}
    assert len(versions) == 3
    assert {UUID(version).version for version in versions} == {4}
    assert created["updated_at"] <= swapped["updated_at"]


@pytest.mark.parametrize("more", [{}, {"p.previous_metadata_location": ""}], ids=["java", "python"])
async def test_item_of_another_client_is_loaded_and_swapped_and_its_extras_survive(
    harness: DynamoDbHarness, items: Items, more: dict[str, str | int]
) -> None:
    catalog, table = harness.catalog, build_table(warehouse=WAREHOUSE)
    await harness.storage.create(catalog.objects_before(build_swap(table)))
    await create(catalog)
    table = await catalog.load(FLIGHTS)
    theirs = java_table("db.flights", table.metadata_location, **more) | {
        "p.owner": "them",
        "note": "not ours",
    }
    await items.put(**theirs)
    swap = build_swap(await catalog.load(FLIGHTS))
    assert isinstance(await catalog.swap(swap), Committed)
    swapped = await items.get(*KEY)
    assert swapped["v"] != JAVA_VERSION
    assert swapped == theirs | {
        "v": swapped["v"],
        "updated_at": swapped["updated_at"],
        "p.metadata_location": swap.metadata_location,
        "p.previous_metadata_location": table.metadata_location,
    }


async def test_renamed_item_is_a_new_one_with_all_that_it_held(
    catalog: DynamoDbCatalog, items: Items
) -> None:
    table = await create(catalog)
    theirs = java_table("db.flights", table.metadata_location, note="not ours")
    await items.put(**theirs)
    await catalog.rename_table(FLIGHTS, TRAINS)
    assert await items.get(*KEY) == {}
    renamed = await items.get("db.trains", "db")
    assert renamed["v"] != JAVA_VERSION
    assert renamed["created_at"] == renamed["updated_at"] > theirs["created_at"]
    assert renamed == theirs | {
        "identifier": "db.trains",
        "v": renamed["v"],
        "created_at": renamed["created_at"],
        "updated_at": renamed["updated_at"],
    }


async def test_item_without_a_version_is_swapped_and_renamed(
    catalog: DynamoDbCatalog, items: Items
) -> None:
    table = await create(catalog)
    bare = java_table("db.flights", table.metadata_location)
    del bare["v"]
    await items.put(**bare)
    await catalog.rename_table(FLIGHTS, TRAINS)
    bare |= {"identifier": "db.trains"}
    await items.put(**bare)
    loaded = await catalog.load(TRAINS)
    assert isinstance(await catalog.swap(build_swap(loaded)), Committed)
    assert UUID((await items.get("db.trains", "db"))["v"]).version == 4


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"p.table_type": "HIVE"}, "`p.table_type` is `HIVE`, expected `ICEBERG`"),
        ({"p.table_type": None}, "`p.table_type` is missing, expected `ICEBERG`"),
        ({"p.metadata_location": None}, "`p.metadata_location` is missing"),
        ({"p.metadata_location": ""}, "`p.metadata_location` is missing"),
    ],
)
async def test_item_that_is_no_iceberg_table_is_said_to_be_none(
    catalog: DynamoDbCatalog, items: Items, changed: dict[str, str | None], said: str
) -> None:
    broken = {**java_table("db.flights", "x"), **changed}
    await items.put(**{name: one for name, one in broken.items() if one is not None})
    for call in (
        catalog.load(FLIGHTS),
        catalog.current_location(FLIGHTS),
        catalog.rename_table(FLIGHTS, TRAINS),
    ):
        with pytest.raises(InvalidMetadataError, match=rf"db\.flights: .*{said}"):
            await call


async def test_what_is_no_table_is_not_dropped_and_holds_its_name(
    catalog: DynamoDbCatalog, items: Items
) -> None:
    await catalog.create_namespace(("db",))
    other = {"identifier": "db.flights", "namespace": "db", "note": "not ours"}
    await items.put(**other)
    with pytest.raises(InvalidMetadataError, match=r"db\.flights.*p\.table_type"):
        await catalog.drop_table(FLIGHTS)
    with pytest.raises(TableAlreadyExistsError):
        await catalog.create_table(build_table(warehouse=WAREHOUSE))
    assert await items.get(*KEY) == other


async def test_table_in_a_namespace_that_others_never_created_is_listed_and_gets_neighbors(
    catalog: DynamoDbCatalog, items: Items
) -> None:
    await items.put(**java_table("db.flights", "x"))
    assert await catalog.list_tables(("db",)) == [FLIGHTS]
    await catalog.create_table(build_table("db.trains", warehouse=WAREHOUSE))
    assert await catalog.list_tables(("db",)) == [FLIGHTS, TRAINS]


async def test_namespace_names_the_folder_of_its_tables_as_java_lets_it(
    catalog: DynamoDbCatalog, items: Items
) -> None:
    await items.put(
        **{"identifier": "NAMESPACE", "namespace": "a.b", "p.default_location": "s3://b/x"}
    )
    assert await catalog.default_location(("a", "b")) == "s3://b/x"
    assert await catalog.default_location(("a",)) is None


async def test_properties_of_a_namespace_are_attributes_of_its_item_as_java_has_them(
    catalog: DynamoDbCatalog, items: Items
) -> None:
    await items.put(**java_table("db.flights", "x"))
    await catalog.set_namespace_properties(("db",), {"owner": "ada", "location": "s3://b/x"})
    first = await items.get("NAMESPACE", "db")
    assert {name for name in first if name.startswith("p.")} == {"p.owner", "p.location"}
    await catalog.set_namespace_properties(
        ("db",), {"default_location": "s3://b/y"}, removed=("owner",)
    )
    second = await items.get("NAMESPACE", "db")
    assert second["created_at"] == first["created_at"]
    assert second["v"] != first["v"]
    assert await catalog.namespace_properties(("db",)) == {
        "default_location": "s3://b/y",
        "location": "s3://b/x",
    }
    assert await catalog.default_location(("db",)) == "s3://b/y"
    with pytest.raises(NamespaceNotEmptyError):
        await catalog.drop_namespace(("db",))


@pytest.mark.parametrize("name", ["", "a.b"])
async def test_name_that_a_dotted_key_cannot_carry_is_refused_before_any_call(
    harness: DynamoDbHarness, name: str
) -> None:
    catalog, identifier = harness.catalog, TableIdentifier(("db",), name)
    table = build_table(warehouse=WAREHOUSE)
    table = LoadedTable(identifier, table.metadata, table.metadata_location)
    harness.proxy.requests.clear()
    for call in (
        catalog.create_table(table),
        catalog.register_table(identifier, "x"),
        catalog.rename_table(FLIGHTS, identifier),
        catalog.rename_table(identifier, FLIGHTS),
        catalog.drop_table(identifier),
        catalog.swap(build_swap(table)),
    ):
        with pytest.raises(UnsupportedError, match="neither empty nor contains a dot"):
            await call
    for reading in (catalog.load, catalog.current_location):
        with pytest.raises(NoSuchTableError, match="neither empty nor contains a dot"):
            await reading(identifier)
    assert harness.proxy.requests == []


# --- Calls ---------------------------------------------------------------------------------------


async def test_each_method_makes_as_few_calls_as_it_can(harness: DynamoDbHarness) -> None:
    catalog, requests = harness.catalog, harness.proxy.requests

    def made() -> list[str]:
        found = requests.copy()
        requests.clear()
        return found

    made()
    await catalog.create_namespace(("db",))
    assert made() == ["PutItem"]
    table = build_table(warehouse=WAREHOUSE)
    await catalog.create_table(table)
    assert made() == ["GetItem", "PutItem"]
    await catalog.load(FLIGHTS)
    assert made() == ["GetItem"]
    await catalog.current_location(FLIGHTS)
    assert made() == ["GetItem"]
    assert isinstance(await catalog.swap(build_swap(table)), Committed)
    assert made() == ["UpdateItem"]
    assert isinstance(await catalog.swap(build_swap(table)), Conflict)
    assert made() == ["UpdateItem"]
    assert await catalog.list_tables(("db",)) == [FLIGHTS]
    assert made() == ["Query"]
    assert await catalog.list_namespaces() == [("db",)]
    assert made() == ["Query"]
    await catalog.rename_table(FLIGHTS, TRAINS)
    assert made() == ["GetItem", "GetItem", "TransactWriteItems"]
    await catalog.drop_table(TRAINS)
    assert made() == ["DeleteItem"]
    await catalog.probe()
    assert made() == ["UpdateItem"]
    await catalog.register_table(FLIGHTS, table.metadata_location)
    assert made() == ["GetItem", "PutItem"]


async def test_pointers_and_namespaces_are_read_strongly_consistent(
    harness: DynamoDbHarness,
) -> None:
    # The server here always is; whether it is asked for shows in the request alone.
    await create(harness.catalog)
    for call in (harness.catalog.load(FLIGHTS), harness.catalog.list_namespaces()):
        harness.proxy.plan(b'"ConsistentRead": true', Answer.aws_error(400, "ThrottlingException"))
        with pytest.raises(CatalogUnavailableError):
            await call


async def test_load_reads_one_object_of_the_storage(harness: DynamoDbHarness) -> None:
    table = await create(harness.catalog)
    read = []

    async def note(location: str) -> None:
        read.append(location)
        harness.storage.before_get = note

    harness.storage.before_get = note
    await harness.catalog.load(FLIGHTS)
    assert read == [table.metadata_location]


@pytest.mark.heavy
async def test_names_are_listed_to_the_last_page(
    harness: DynamoDbHarness, catalog: DynamoDbCatalog, items: Items
) -> None:
    # A page holds one megabyte: three of each.
    names = [f"{number:04d}{'t' * 950}" for number in range(2_200)]
    namespaces = [f"{number:04d}{'n' * 1_000}" for number in range(2_200)]
    await items.put_many([java_table(f"db.{name}", "x") for name in names])
    await items.put_many([{"identifier": "NAMESPACE", "namespace": one} for one in namespaces])
    harness.proxy.requests.clear()
    assert [table.name for table in await catalog.list_tables(("db",))] == names
    assert len(harness.proxy.requests) >= 3
    harness.proxy.requests.clear()
    assert await catalog.list_namespaces() == [(one,) for one in namespaces]
    assert len(harness.proxy.requests) >= 3


# --- The swap ------------------------------------------------------------------------------------


async def test_of_sixteen_swaps_of_one_base_exactly_one_wins_each_round(
    harness: DynamoDbHarness,
) -> None:
    base = await create(harness.catalog)
    clients = [await harness.another() for _ in range(4)]
    for _ in range(10):
        # Two of the clients know the version of the base, two only where its metadata is.
        await asyncio.gather(*(client.current_location(FLIGHTS) for client in clients[:2]))
        swaps = [build_swap(base, properties={"by": str(number)}) for number in range(16)]
        answers = await asyncio.gather(
            *(clients[number % 4].swap(swap) for number, swap in enumerate(swaps))
        )
        (won,) = [answer for answer in answers if isinstance(answer, Committed)]
        assert sum(isinstance(answer, Conflict) for answer in answers) == 15
        base = won.table
        assert await harness.catalog.current_location(FLIGHTS) == base.metadata_location


async def test_late_swap_does_not_land_on_a_pointer_that_was_set_back_to_its_base(
    harness: DynamoDbHarness, catalog: DynamoDbCatalog, items: Items
) -> None:
    await create(catalog)
    base = await catalog.load(FLIGHTS)
    harness.proxy.plan(b"UpdateItem", Fault.LANDS_LATE)
    assert isinstance(await catalog.swap(build_swap(base)), Unknown)
    assert isinstance(await catalog.swap(build_swap(base)), Committed)
    # An operator restores what was.
    await items.put(**java_table("db.flights", base.metadata_location))
    assert await harness.proxy.land_late() == [400]
    assert await catalog.current_location(FLIGHTS) == base.metadata_location
    assert isinstance(await catalog.swap(build_swap(base)), Committed)


async def test_version_that_others_changed_alone_is_a_conflict_until_it_is_read(
    catalog: DynamoDbCatalog, items: Items
) -> None:
    await create(catalog)
    base = await catalog.load(FLIGHTS)
    await items.put(**java_table("db.flights", base.metadata_location))
    assert isinstance(await catalog.swap(build_swap(base)), Conflict)
    await catalog.load(FLIGHTS)
    assert isinstance(await catalog.swap(build_swap(base)), Committed)


async def test_swap_that_was_sent_twice_below_us_is_committed(harness: DynamoDbHarness) -> None:
    catalog = harness.catalog
    first = build_swap(await create(catalog))
    harness.proxy.plan(b"UpdateItem", Fault.SENT_TWICE)
    answer = await catalog.swap(first)
    assert answer == Committed(LoadedTable(FLIGHTS, first.metadata, first.metadata_location))
    # The version that was kept is that of the item.
    second = build_swap(answer.table)
    assert isinstance(await catalog.swap(second), Committed)


async def test_swap_that_arrives_again_after_others_committed_upon_it_is_unknown(
    harness: DynamoDbHarness,
) -> None:
    swap = build_swap(await create(harness.catalog))
    harness.proxy.plan(b"UpdateItem", Fault.CUT_ANSWER)
    assert isinstance(await harness.catalog.swap(swap), Unknown)
    theirs = build_swap(LoadedTable(FLIGHTS, swap.metadata, swap.metadata_location))
    assert isinstance(await (await harness.another()).swap(theirs), Committed)
    assert isinstance(await harness.catalog.swap(swap), Unknown)


async def test_swap_without_an_answer_in_time_is_unknown_and_may_have_landed(
    harness: DynamoDbHarness,
) -> None:
    impatient = await harness.impatient()
    swap = build_swap(await create(harness.catalog))
    harness.proxy.plan(b"UpdateItem", Fault.HOLD_ANSWER)
    assert isinstance(await impatient.swap(swap), Unknown)
    assert await harness.catalog.current_location(FLIGHTS) == swap.metadata_location


@pytest.mark.parametrize(
    "answer",
    [
        Answer.aws_error(500, "InternalServerError"),
        Answer.aws_error(503, "ServiceUnavailable"),
        Answer(408, b"<html>a gateway has waited long enough</html>", "text/html"),
        Answer(502, b"<html>", "text/html"),
        Answer(200, b"<html>", "text/html"),
    ],
    ids=["500", "503", "408", "502", "200"],
)
async def test_swap_that_the_server_may_have_applied_is_unknown(
    harness: DynamoDbHarness, answer: Answer
) -> None:
    swap = build_swap(await create(harness.catalog))
    harness.proxy.plan(b"UpdateItem", answer)
    assert isinstance(await harness.catalog.swap(swap), Unknown)


async def test_swap_that_never_reaches_a_server_raises(
    harness: DynamoDbHarness, dynamodb_server: DynamoDbServer
) -> None:
    swap = build_swap(await create(harness.catalog))
    await harness.catalog.close()
    harness.catalog = await harness.client(harness.proxy.url)
    await harness.proxy.__aexit__(None, None, None)
    with pytest.raises(CatalogUnavailableError):
        await harness.catalog.swap(swap)
    with pytest.raises(CatalogUnavailableError):
        await harness.catalog.load(FLIGHTS)


# --- Creating and renaming in doubt --------------------------------------------------------------


async def test_create_whose_answer_was_lost_may_be_repeated(harness: DynamoDbHarness) -> None:
    catalog, table = harness.catalog, build_table(warehouse=WAREHOUSE)
    for step in (catalog.create_namespace(("db",)), catalog.create_table(table)):
        harness.proxy.plan(b"PutItem", Fault.CUT_ANSWER)
        with pytest.raises(CatalogUnavailableError):
            await step
    await catalog.create_namespace(("db",))
    await catalog.create_table(table)
    assert await catalog.load(FLIGHTS) == table


def canceled(*codes: str) -> Answer:
    reasons = [{"Code": code} for code in codes]
    return Answer.aws_error(400, "TransactionCanceledException", CancellationReasons=reasons)


async def test_rename_reads_again_what_changed_in_between(harness: DynamoDbHarness) -> None:
    await create(harness.catalog)
    harness.proxy.plan(b"TransactWriteItems", canceled("ConditionalCheckFailed", "None"))
    harness.proxy.requests.clear()
    await harness.catalog.rename_table(FLIGHTS, TRAINS)
    assert harness.proxy.requests.count("TransactWriteItems") == 2
    assert (await harness.catalog.load(TRAINS)).identifier == TRAINS


async def test_rename_of_a_table_that_never_rests_gives_up(harness: DynamoDbHarness) -> None:
    await create(harness.catalog)
    always = [canceled("ConditionalCheckFailed", "None")] * 10
    harness.proxy.plan(b"TransactWriteItems", *always)
    with pytest.raises(CatalogUnavailableError, match="faster"):
        await harness.catalog.rename_table(FLIGHTS, TRAINS)
    assert not harness.proxy.is_planned


async def test_a_transaction_in_the_way_of_a_rename_is_an_outage(harness: DynamoDbHarness) -> None:
    """In the way of a swap: `test_dynamodb_group.py`."""
    await create(harness.catalog)
    harness.proxy.plan(b"TransactWriteItems", canceled("None", "TransactionConflict"))
    with pytest.raises(CatalogUnavailableError, match="another transaction"):
        await harness.catalog.rename_table(FLIGHTS, TRAINS)
