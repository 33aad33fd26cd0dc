"""The Glue catalog beyond the contract: what Glue holds, calls, races, and answers in doubt."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from committer.aws.client import close_client, open_client
from committer.catalog.glue.glue_catalog import GlueCatalog
from committer.errors import (
    AccessError,
    CatalogUnavailableError,
    InvalidMetadataError,
    NamespaceNotEmptyError,
    NoSuchTableError,
    SettingsError,
    TableAlreadyExistsError,
    UnsupportedError,
)
from committer.ports.pointer_swap import Committed, Conflict, LoadedTable, Swap, Unknown
from committer.real_world import RealWorld
from committer.request.table_identifier import TableIdentifier
from tests.support.builders.table_builders import build_swap, build_table
from tests.support.catalogs.glue_harness import GlueHarness
from tests.support.servers.http_proxy import Answer, Fault
from tests.support.servers.moto_server import MotoServer

pytestmark = pytest.mark.server

WAREHOUSE = "memory://warehouse"
FLIGHTS = TableIdentifier(("db",), "flights")
UPDATE = b"AWSGlue.UpdateTable"


@pytest.fixture
async def harness(moto_server: MotoServer) -> AsyncIterator[GlueHarness]:
    harness = await GlueHarness.open(moto_server)
    yield harness
    await harness.close()


@pytest.fixture
def catalog(harness: GlueHarness) -> GlueCatalog:
    return harness.catalog


@pytest.fixture
async def glue(harness: GlueHarness) -> AsyncIterator[Any]:
    """Yield a client of Glue as any other program has one."""
    client = await open_client("glue", harness.options)
    yield client
    await close_client(client)


async def create(catalog: GlueCatalog, name: str = "db.flights") -> LoadedTable:
    table = build_table(name, warehouse=WAREHOUSE)
    await catalog.create_namespace(table.identifier.namespace)
    await catalog.create_table(table)
    return table


async def held(glue: Any, name: str = "flights") -> dict[str, Any]:
    """Return the table as Glue holds it, without what Glue itself adds."""
    answer: dict[str, Any] = (await glue.get_table(DatabaseName="db", Name=name))["Table"]
    own = ("CreateTime", "UpdateTime", "CatalogId", "DatabaseName")
    return {key: value for key, value in answer.items() if key not in own}


def glue_column(name: str, kind: str, number: int) -> dict[str, Any]:
    return {
        "Name": name,
        "Type": kind,
        "Parameters": {
            "iceberg.field.id": str(number),
            "iceberg.field.optional": "true",
            "iceberg.field.current": "true",
        },
    }


# --- What Glue holds -----------------------------------------------------------------------------


async def test_table_has_the_shape_that_java_gives_it(catalog: GlueCatalog, glue: Any) -> None:
    table = await create(catalog)
    created = await held(glue)
    assert created == {
        "Name": "flights",
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {"table_type": "ICEBERG", "metadata_location": table.metadata_location},
        "StorageDescriptor": {
            "Columns": [glue_column("id", "bigint", 1), glue_column("name", "string", 2)],
            "Location": table.metadata.location,
        },
        "VersionId": created["VersionId"],
    }
    swap = build_swap(table, properties={"not": "copied"})
    assert isinstance(await catalog.swap(swap), Committed)
    swapped = await held(glue)
    assert swapped == created | {
        "VersionId": swapped["VersionId"],
        "Parameters": {
            "table_type": "ICEBERG",
            "metadata_location": swap.metadata_location,
            "previous_metadata_location": table.metadata_location,
        },
    }
    assert swapped["VersionId"] != created["VersionId"]


async def test_swap_keeps_what_others_have_written_into_the_table(
    catalog: GlueCatalog, glue: Any
) -> None:
    base = await create(catalog)
    theirs = await held(glue)
    del theirs["VersionId"]
    theirs |= {"Owner": "ada", "Description": "departures", "Retention": 3, "PartitionKeys": []}
    theirs["Parameters"] |= {"classification": "iceberg", "note": "not ours"}
    descriptor = theirs["StorageDescriptor"]
    descriptor |= {
        "AdditionalLocations": ["s3://elsewhere/data"],
        "SerdeInfo": {"Name": "none"},
        "Parameters": {"of": "others"},
    }
    descriptor["Columns"][0]["Comment"] = "said by a person"
    descriptor["Columns"][0]["Parameters"]["tag"] = "not ours"
    await glue.update_table(DatabaseName="db", TableInput=theirs)
    swap = build_swap(base)
    assert isinstance(await catalog.swap(swap), Committed)
    swapped = await held(glue)
    del swapped["VersionId"]
    theirs["Parameters"] |= {
        "metadata_location": swap.metadata_location,
        "previous_metadata_location": base.metadata_location,
    }
    assert swapped == theirs


async def test_all_that_an_update_takes_is_sent_back_as_it_was_read(glue: Any) -> None:
    """Glue may get a new field of tables: it is kept without a change of the adapter."""
    model = glue.meta.service_model
    taken = set(model.shape_for("TableInput").members)
    answered = set(model.shape_for("Table").members)
    from committer.catalog.glue import glue_layout

    standing = {name: f"of others: {name}" for name in answered} | {
        "Parameters": {"table_type": "ICEBERG", "metadata_location": "memory://a"},
        "StorageDescriptor": {},
    }
    table = build_table(warehouse=WAREHOUSE)
    parsed = glue_layout.parse_table(FLIGHTS, standing)  # type: ignore[arg-type]  # as if answered
    call = glue_layout.update_table(parsed, build_swap(table), fields=taken, skip_archive=True)
    assert set(call["TableInput"]) == taken & answered


@pytest.mark.parametrize("skip_archive", [True, False])
async def test_swap_sends_the_version_that_was_read_and_whether_to_archive(
    harness: GlueHarness, glue: Any, skip_archive: bool
) -> None:
    catalog = await GlueCatalog.open(
        storage=harness.storage,
        options=(await proxied(harness)),
        world=RealWorld(),
        skip_archive=skip_archive,
    )
    base = await create(catalog)
    version = (await held(glue))["VersionId"]
    assert isinstance(await catalog.swap(build_swap(base)), Committed)
    sent = json.loads(harness.proxy.received[-1].body)
    assert (sent["VersionId"], sent["SkipArchive"]) == (version, skip_archive)
    await catalog.close()


async def proxied(harness: GlueHarness) -> Any:
    from dataclasses import replace

    return replace(harness.options, endpoint_url=harness.proxy.url)


async def test_every_call_names_the_catalog_of_another_account(harness: GlueHarness) -> None:
    catalog = await GlueCatalog.open(
        storage=harness.storage,
        options=await proxied(harness),
        world=RealWorld(),
        catalog_id="111122223333",
    )
    base = await create(catalog)
    await catalog.swap(build_swap(base))
    await catalog.list_namespaces()
    await catalog.list_tables(("db",))
    await catalog.drop_table(FLIGHTS)
    sent = [json.loads(request.body).get("CatalogId") for request in harness.proxy.received]
    assert len(sent) >= 7
    assert set(sent) == {"111122223333"}
    await catalog.close()


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"table_type": "HIVE"}, "`table_type` is `HIVE`, expected `ICEBERG`"),
        ({}, "`table_type` is missing, expected `ICEBERG`"),
        ({"table_type": "iceberg"}, "`metadata_location` is missing"),
    ],
)
async def test_table_of_another_format_is_named_so_and_left_alone(
    catalog: GlueCatalog, glue: Any, parameters: dict[str, str], said: str
) -> None:
    await catalog.create_namespace(("db",))
    await glue.create_table(
        DatabaseName="db", TableInput={"Name": "flights", "Parameters": parameters}
    )
    theirs = await held(glue)
    for call in (
        catalog.load(FLIGHTS),
        catalog.current_location(FLIGHTS),
        catalog.drop_table(FLIGHTS),
        catalog.swap(build_swap(build_table(warehouse=WAREHOUSE))),
    ):
        with pytest.raises(InvalidMetadataError, match=rf"db\.flights: .*{said}"):
            await call
    with pytest.raises(TableAlreadyExistsError):
        await catalog.create_table(build_table(warehouse=WAREHOUSE))
    with pytest.raises(NamespaceNotEmptyError):
        await catalog.drop_namespace(("db",))
    assert await held(glue) == theirs


async def test_views_and_tables_of_other_formats_are_not_listed(
    catalog: GlueCatalog, glue: Any
) -> None:
    await create(catalog)
    for name, kind in (("a_view", "ICEBERG_VIEW"), ("hive", "HIVE")):
        table = {"Name": name, "Parameters": {"table_type": kind}}
        await glue.create_table(DatabaseName="db", TableInput=table)
    assert await catalog.list_tables(("db",)) == [FLIGHTS]


async def test_database_names_the_folder_of_its_tables(catalog: GlueCatalog, glue: Any) -> None:
    await glue.create_database(DatabaseInput={"Name": "db", "LocationUri": "s3://b/x"})
    assert await catalog.default_location(("db",)) == "s3://b/x"
    assert await catalog.namespace_properties(("db",)) == {"location": "s3://b/x"}


async def test_location_and_comment_of_a_namespace_are_those_of_the_database(
    catalog: GlueCatalog, glue: Any
) -> None:
    await catalog.create_namespace(("db",))
    properties = {"location": "s3://b/x", "comment": "flights", "owner": "ada"}
    await catalog.set_namespace_properties(("db",), properties)
    database = (await glue.get_database(Name="db"))["Database"]
    assert (database["LocationUri"], database["Description"]) == ("s3://b/x", "flights")
    assert database["Parameters"] == {"owner": "ada"}
    assert await catalog.namespace_properties(("db",)) == properties


@pytest.mark.parametrize(
    "properties", [{"x" * 256: "1"}, {"x": "1" * 512_001}, {"comment": "1" * 2_049}]
)
async def test_property_of_a_namespace_that_glue_would_refuse_is_unsupported(
    catalog: GlueCatalog, properties: dict[str, str]
) -> None:
    await catalog.create_namespace(("db",))
    with pytest.raises(UnsupportedError, match="Glue takes names of up to 255"):
        await catalog.set_namespace_properties(("db",), properties)


@pytest.mark.parametrize("name", ["Flights", "a-b", "x" * 256, "é"])
async def test_name_that_glue_would_fold_or_refuse_is_refused_before_any_call(
    harness: GlueHarness, name: str
) -> None:
    catalog, identifier = harness.catalog, TableIdentifier(("db",), name)
    table = build_table(warehouse=WAREHOUSE)
    table = LoadedTable(identifier, table.metadata, table.metadata_location)
    harness.proxy.requests.clear()
    for call in (
        catalog.create_table(table),
        catalog.register_table(identifier, "x"),
        catalog.swap(build_swap(table)),
    ):
        with pytest.raises(UnsupportedError, match="lower-case letters"):
            await call
    for reading in (catalog.load, catalog.current_location, catalog.drop_table):
        with pytest.raises(NoSuchTableError, match="lower-case letters"):
            await reading(identifier)
    assert harness.proxy.requests == []


# --- Calls ---------------------------------------------------------------------------------------


async def test_each_method_makes_as_few_calls_as_it_can(harness: GlueHarness) -> None:
    catalog, requests = harness.catalog, harness.proxy.requests

    def made() -> list[str]:
        found = requests.copy()
        requests.clear()
        return found

    made()
    await catalog.create_namespace(("db",))
    assert made() == ["CreateDatabase"]
    table = build_table(warehouse=WAREHOUSE)
    await catalog.create_table(table)
    assert made() == ["GetDatabase", "CreateTable"]
    await catalog.load(FLIGHTS)
    assert made() == ["GetTable"]
    await catalog.current_location(FLIGHTS)
    assert made() == ["GetTable"]
    assert isinstance(await catalog.swap(build_swap(table)), Committed)
    assert made() == ["GetTable", "UpdateTable"]
    assert isinstance(await catalog.swap(build_swap(table)), Conflict)
    assert made() == ["GetTable"]
    assert await catalog.list_tables(("db",)) == [FLIGHTS]
    assert made() == ["GetTables"]
    assert await catalog.list_namespaces() == [("db",)]
    assert made() == ["GetDatabases"]
    await catalog.drop_table(FLIGHTS)
    assert made() == ["GetTable", "DeleteTable"]
    await catalog.register_table(FLIGHTS, table.metadata_location)
    assert made() == ["GetDatabase", "CreateTable"]


def page(**answer: Any) -> Answer:
    return Answer(200, json.dumps(answer).encode(), "application/x-amz-json-1.1")


async def test_names_are_listed_to_the_last_page(harness: GlueHarness) -> None:
    catalog = harness.catalog
    await create(catalog)
    ours = {"Name": "a", "Parameters": {"table_type": "iceberg"}}
    harness.proxy.plan(b"GetTables", page(TableList=[ours], NextToken="more"))
    assert [table.name for table in await catalog.list_tables(("db",))] == ["a", "flights"]
    harness.proxy.plan(b"GetDatabases", page(DatabaseList=[{"Name": "a"}], NextToken="more"))
    assert await catalog.list_namespaces() == [("a",), ("db",)]
    assert b'"NextToken": "more"' in harness.proxy.received[-1].body


# --- The swap ------------------------------------------------------------------------------------


@pytest.mark.heavy
async def test_of_eight_swaps_of_one_base_exactly_one_wins_each_round(
    harness: GlueHarness,
) -> None:
    base = await create(harness.catalog)
    clients = [await harness.another() for _ in range(4)]
    for _ in range(20):
        swaps = [build_swap(base, properties={"by": str(number)}) for number in range(8)]
        answers = await asyncio.gather(
            *(clients[number % 4].swap(swap) for number, swap in enumerate(swaps))
        )
        (won,) = [answer for answer in answers if isinstance(answer, Committed)]
        assert sum(isinstance(answer, Conflict) for answer in answers) == 7
        base = won.table
        assert await harness.catalog.current_location(FLIGHTS) == base.metadata_location


async def test_swap_that_was_sent_twice_below_us_is_committed(harness: GlueHarness) -> None:
    catalog = harness.catalog
    first = build_swap(await create(catalog))
    harness.proxy.plan(UPDATE, Fault.SENT_TWICE)
    answer = await catalog.swap(first)
    assert answer == Committed(LoadedTable(FLIGHTS, first.metadata, first.metadata_location))
    assert isinstance(await catalog.swap(build_swap(answer.table)), Committed)


async def test_refusal_for_a_change_at_once_proves_nothing_while_the_base_is_current(
    harness: GlueHarness,
) -> None:
    base = await create(harness.catalog)
    harness.proxy.plan(UPDATE, Answer.aws_error(400, "ConcurrentModificationException"))
    assert isinstance(await harness.catalog.swap(build_swap(base)), Unknown)
    assert await harness.catalog.current_location(FLIGHTS) == base.metadata_location


async def test_refusal_that_cannot_be_looked_into_is_unknown(harness: GlueHarness) -> None:
    base = await create(harness.catalog)
    harness.proxy.plan(UPDATE, Answer.aws_error(400, "ConcurrentModificationException"))
    # The first GetTable is that of the swap.
    harness.proxy.plan(b"AWSGlue.GetTable", Fault.SENT_TWICE, Fault.CUT_REQUEST)
    assert isinstance(await harness.catalog.swap(build_swap(base)), Unknown)
    assert not harness.proxy.is_planned


async def interleaved(harness: GlueHarness, theirs: Swap | None) -> GlueCatalog:
    """Open a catalog; between its read and its update another client swaps, or drops the table."""
    client = await open_client("glue", harness.options)
    rival = harness.catalog

    async def act(**_: object) -> None:
        if theirs is None:
            await rival.drop_table(FLIGHTS)
        else:
            assert isinstance(await rival.swap(theirs), Committed)

    client.meta.events.register("before-call.glue.UpdateTable", act)  # type: ignore[arg-type]  # awaited, though not typed so
    return GlueCatalog(client=client, storage=harness.storage, world=RealWorld(), skip_archive=True)


async def test_commit_of_another_between_read_and_update_is_a_conflict(
    harness: GlueHarness,
) -> None:
    base = await create(harness.catalog)
    theirs = build_swap(base, properties={"by": "them"})
    catalog = await interleaved(harness, theirs)
    assert isinstance(await catalog.swap(build_swap(base)), Conflict)
    assert await catalog.current_location(FLIGHTS) == theirs.metadata_location
    await catalog.close()


async def test_table_that_is_dropped_between_read_and_update_is_a_conflict(
    harness: GlueHarness,
) -> None:
    base = await create(harness.catalog)
    catalog = await interleaved(harness, None)
    assert isinstance(await catalog.swap(build_swap(base)), Conflict)
    await catalog.close()


async def test_late_swap_does_not_land_on_a_pointer_that_was_set_back_to_its_base(
    harness: GlueHarness, catalog: GlueCatalog, glue: Any
) -> None:
    base = await create(catalog)
    before = await held(glue)
    del before["VersionId"]
    harness.proxy.plan(UPDATE, Fault.LANDS_LATE)
    assert isinstance(await catalog.swap(build_swap(base)), Unknown)
    assert isinstance(await catalog.swap(build_swap(base)), Committed)
    await glue.update_table(DatabaseName="db", TableInput=before)
    assert await harness.proxy.land_late() == [400]
    assert await catalog.current_location(FLIGHTS) == base.metadata_location
    assert isinstance(await catalog.swap(build_swap(base)), Committed)


async def test_swap_that_arrives_again_after_others_committed_upon_it_is_unknown(
    harness: GlueHarness,
) -> None:
    swap = build_swap(await create(harness.catalog))
    harness.proxy.plan(UPDATE, Fault.CUT_ANSWER)
    assert isinstance(await harness.catalog.swap(swap), Unknown)
    theirs = build_swap(LoadedTable(FLIGHTS, swap.metadata, swap.metadata_location))
    assert isinstance(await (await harness.another()).swap(theirs), Committed)
    assert isinstance(await harness.catalog.swap(swap), Unknown)


async def test_swap_without_an_answer_in_time_is_unknown_and_may_have_landed(
    harness: GlueHarness,
) -> None:
    impatient = await harness.impatient()
    swap = build_swap(await create(harness.catalog))
    harness.proxy.plan(UPDATE, Fault.HOLD_ANSWER)
    assert isinstance(await impatient.swap(swap), Unknown)
    assert await harness.catalog.current_location(FLIGHTS) == swap.metadata_location


@pytest.mark.parametrize(
    "answer",
    [
        Answer.aws_error(400, "OperationTimeoutException"),
        Answer.aws_error(400, "FederationSourceException"),
        Answer.aws_error(400, "FederationSourceRetryableException"),
        Answer.aws_error(400, "InternalServiceException"),
        Answer.aws_error(500, "InternalServiceException"),
        Answer.aws_error(503, "ServiceUnavailable"),
        Answer(502, b"<html>", "text/html"),
        Answer(200, b"<html>", "text/html"),
        Answer(200, b"{", "application/x-amz-json-1.1"),
    ],
    ids=lambda answer: f"{answer.status}-{answer.body[:40].decode()}",
)
async def test_swap_that_glue_may_have_applied_is_unknown(
    harness: GlueHarness, answer: Answer
) -> None:
    swap = build_swap(await create(harness.catalog))
    harness.proxy.plan(UPDATE, answer)
    assert isinstance(await harness.catalog.swap(swap), Unknown)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("ThrottlingException", CatalogUnavailableError),
        ("ResourceNotReadyException", CatalogUnavailableError),
        ("AccessDeniedException", AccessError),
        ("InvalidInputException", AccessError),
        ("ResourceNumberLimitExceededException", AccessError),
        ("GlueEncryptionException", AccessError),
    ],
)
async def test_swap_that_glue_refused_raises_and_names_call_and_table(
    harness: GlueHarness, code: str, error: type[Exception]
) -> None:
    base = await create(harness.catalog)
    harness.proxy.plan(UPDATE, Answer.aws_error(400, code))
    with pytest.raises(error, match=r"glue:UpdateTable of db\.flights in region eu-central-1"):
        await harness.catalog.swap(build_swap(base))
    assert isinstance(await harness.catalog.swap(build_swap(base)), Committed)


async def test_swap_that_cannot_read_the_table_first_raises(harness: GlueHarness) -> None:
    base = await create(harness.catalog)
    harness.proxy.plan(b"AWSGlue.GetTable", Fault.CUT_ANSWER)
    with pytest.raises(CatalogUnavailableError):
        await harness.catalog.swap(build_swap(base))


# --- Creating in doubt ---------------------------------------------------------------------------


async def test_create_whose_answer_was_lost_may_be_repeated(harness: GlueHarness) -> None:
    catalog, table = harness.catalog, build_table(warehouse=WAREHOUSE)
    for match, step in (
        (b"CreateDatabase", catalog.create_namespace(("db",))),
        (b"CreateTable", catalog.create_table(table)),
    ):
        harness.proxy.plan(match, Fault.CUT_ANSWER)
        with pytest.raises(CatalogUnavailableError):
            await step
    await catalog.create_namespace(("db",))
    await catalog.create_table(table)
    assert await catalog.load(FLIGHTS) == table


# --- Probe ---------------------------------------------------------------------------------------


async def test_server_that_ignores_the_version_is_refused_and_nothing_stays(
    harness: GlueHarness,
) -> None:
    done = page()
    harness.proxy.plan(UPDATE, done, done)
    with pytest.raises(SettingsError, match="`VersionId` is stale"):
        await harness.catalog.probe()
    assert await harness.catalog.list_namespaces() == []


async def test_right_that_the_probe_lacks_is_named(harness: GlueHarness) -> None:
    harness.proxy.plan(b"CreateDatabase", Answer.aws_error(400, "AccessDeniedException"))
    with pytest.raises(AccessError, match="lacks the permission"):
        await harness.catalog.probe()
