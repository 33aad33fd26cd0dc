"""The catalog of S3 Tables: what its calls are, races, answers in doubt, and what it refuses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from committer.aws.client import AwsOptions, close_client, open_client
from committer.catalog.s3_tables.s3_tables_catalog import S3TablesCatalog
from committer.errors import (
    AccessError,
    CatalogUnavailableError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    SettingsError,
    TableAlreadyExistsError,
    UnsupportedError,
)
from committer.ports.pointer_swap import Committed, Conflict, LoadedTable, Swap, SwapAnswer, Unknown
from committer.real_world import RealWorld
from committer.request.table_identifier import TableIdentifier
from tests.support.builders.table_builders import build_swap, build_table
from tests.support.catalogs.s3_tables_harness import ELSEWHERE
from tests.support.catalogs.s3_tables_harness import S3TablesHarness as Harness
from tests.support.memory.memory_storage import MemoryStorage
from tests.support.servers.http_proxy import Answer, Fault
from tests.support.servers.moto_server import MotoServer

pytestmark = pytest.mark.server

FLIGHTS = TableIdentifier(("db",), "flights")
TRAINS = TableIdentifier(("db",), "trains")
SWAP = b"PUT /tables"


def pointer(name: str) -> bytes:
    return f"/db/{name}/metadata-location".encode()


@pytest.fixture
async def harness(moto_server: MotoServer) -> AsyncIterator[Harness]:
    harness = await Harness.open(moto_server)
    yield harness
    await harness.close()


async def send(harness: Harness, swap: Swap, *, by: S3TablesCatalog | None = None) -> SwapAnswer:
    """Swap as a committer does: what must be durable first, then the swap."""
    catalog = by or harness.catalog
    await harness.storage.create(catalog.objects_before(swap))
    return await catalog.swap(swap)


async def create(harness: Harness, name: str = "db.flights") -> LoadedTable:
    table = build_table(name, warehouse=ELSEWHERE)
    await harness.catalog.create_namespace(table.identifier.namespace)
    await harness.catalog.create_table(table)
    return await harness.catalog.load(table.identifier)


async def test_created_table_is_where_the_service_wants_it_and_otherwise_as_it_was_built(
    harness: Harness,
) -> None:
    table = build_table(warehouse=ELSEWHERE)
    await harness.catalog.create_namespace(("db",))
    await harness.catalog.create_table(table)
    loaded = await harness.catalog.load(FLIGHTS)
    assert loaded.metadata == replace(table.metadata, location=loaded.metadata.location)
    assert loaded.metadata.location != table.metadata.location
    assert loaded.metadata_location.startswith(f"{loaded.metadata.location}/metadata/00000-")
    await harness.catalog.create_table(table)
    assert await harness.catalog.load(FLIGHTS) == loaded
    with pytest.raises(TableAlreadyExistsError, match=r"db\.flights"):
        await harness.catalog.create_table(build_table(warehouse=ELSEWHERE))
    with pytest.raises(NoSuchNamespaceError, match="absent"):
        await harness.catalog.create_table(build_table("absent.x", warehouse=ELSEWHERE))


@pytest.mark.parametrize("match", [b"PUT /tables", b"/db/flights/metadata-location"])
@pytest.mark.parametrize("fault", [Fault.CUT_ANSWER, Fault.CUT_REQUEST])
async def test_create_that_broke_off_anywhere_is_finished_by_its_repetition(
    harness: Harness, match: bytes, fault: Fault
) -> None:
    table = build_table(warehouse=ELSEWHERE)
    await harness.catalog.create_namespace(("db",))
    harness.proxy.plan(match, fault)
    with pytest.raises(CatalogUnavailableError):
        await harness.catalog.create_table(table)
    await harness.catalog.create_table(table)
    loaded = await harness.catalog.load(FLIGHTS)
    assert loaded.metadata.table_uuid == table.metadata.table_uuid


async def test_name_that_is_reserved_only_is_no_table(harness: Harness) -> None:
    await harness.catalog.create_namespace(("db",))
    client = await open_client("s3tables", harness.options)
    await client.create_table(
        tableBucketARN=harness.bucket.arn, namespace="db", name="flights", format="ICEBERG"
    )
    await close_client(client)
    for reading in (harness.catalog.load, harness.catalog.current_location):
        with pytest.raises(NoSuchTableError, match=r"db\.flights \(.*never created"):
            await reading(FLIGHTS)


async def test_steady_commit_is_one_call(harness: Harness) -> None:
    table = await create(harness)
    harness.proxy.requests.clear()
    for _ in range(3):
        answer = await send(harness, build_swap(table))
        assert isinstance(answer, Committed)
        table = answer.table
    assert len(harness.proxy.requests) == 3
    assert all(request.startswith("PUT ") for request in harness.proxy.requests)
    assert await harness.catalog.current_location(FLIGHTS) == table.metadata_location


@pytest.mark.heavy
async def test_of_eight_swaps_of_one_base_exactly_one_wins_each_round(harness: Harness) -> None:
    base = await create(harness)
    clients = [await harness.client(harness.options.endpoint_url) for _ in range(4)]
    for _ in range(20):
        await asyncio.gather(*(client.current_location(FLIGHTS) for client in clients[:2]))
        swaps = [build_swap(base, properties={"by": str(number)}) for number in range(8)]
        answers = await asyncio.gather(
            *(send(harness, swap, by=clients[number % 4]) for number, swap in enumerate(swaps))
        )
        (won,) = [answer for answer in answers if isinstance(answer, Committed)]
        assert sum(isinstance(answer, Conflict) for answer in answers) == 7
        base = won.table
        assert await harness.catalog.current_location(FLIGHTS) == base.metadata_location
    for client in clients:
        await client.close()


async def test_stale_base_and_absent_table_are_conflicts(harness: Harness) -> None:
    base = await create(harness)
    assert isinstance(await send(harness, build_swap(base)), Committed)
    assert isinstance(await send(harness, build_swap(base)), Conflict)
    absent = LoadedTable(TRAINS, base.metadata, base.metadata_location)
    assert isinstance(await send(harness, build_swap(absent)), Conflict)


async def test_swap_that_was_sent_twice_and_built_upon_is_unknown_and_never_a_conflict(
    harness: Harness,
) -> None:
    """It has landed: the answer that it never will would be untrue. The first delivery is that of
    another client here.
    """
    swap = build_swap(await create(harness))
    other = await harness.client(harness.options.endpoint_url)
    landed = await send(harness, swap, by=other)
    assert isinstance(landed, Committed)
    assert isinstance(await send(harness, build_swap(landed.table), by=other), Committed)
    harness.proxy.requests.clear()
    assert isinstance(await harness.catalog.swap(swap), Unknown)
    assert harness.proxy.requests[0].startswith("PUT "), "it was sent, and not judged before"
    await other.close()


async def test_swap_that_was_sent_twice_below_us_is_committed(harness: Harness) -> None:
    swap = build_swap(await create(harness))
    harness.proxy.plan(pointer("flights"), Fault.SENT_TWICE)
    answer = await send(harness, swap)
    assert isinstance(answer, Committed)
    assert isinstance(await send(harness, build_swap(answer.table)), Committed)


async def test_lost_answers_are_unknown_and_the_pointer_says_what_happened(
    harness: Harness,
) -> None:
    base = await create(harness)
    landed = build_swap(base)
    harness.proxy.plan(pointer("flights"), Fault.CUT_ANSWER)
    assert isinstance(await send(harness, landed), Unknown)
    assert await harness.catalog.current_location(FLIGHTS) == landed.metadata_location
    base = LoadedTable(FLIGHTS, landed.metadata, landed.metadata_location)
    harness.proxy.plan(pointer("flights"), Fault.LANDS_LATE)
    assert isinstance(await send(harness, build_swap(base)), Unknown)
    assert isinstance(await send(harness, build_swap(base)), Committed)
    assert await harness.proxy.land_late() == [409]


def refusal(status: int, code: str) -> Answer:
    body = json.dumps({"message": "said by the test"}).encode()
    return Answer(status, body, "application/json", (("x-amzn-errortype", code),))


@pytest.mark.parametrize(
    "answer",
    [
        refusal(409, "ConflictException"),
        refusal(500, "InternalServerErrorException"),
        Answer(502, b"<html>", "text/html"),
        Answer(200, b"<html>", "text/html"),
        Answer(200, b"{", "application/json"),
    ],
    ids=lambda answer: str(answer.status),
)
async def test_swap_that_may_have_been_applied_is_unknown(harness: Harness, answer: Answer) -> None:
    swap = build_swap(await create(harness))
    harness.proxy.plan(pointer("flights"), answer)
    assert isinstance(await send(harness, swap), Unknown)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (refusal(429, "TooManyRequestsException"), CatalogUnavailableError),
        (refusal(403, "ForbiddenException"), AccessError),
        (refusal(400, "BadRequestException"), AccessError),
    ],
    ids=["429", "403", "400"],
)
async def test_swap_that_was_refused_raises_and_nothing_was_applied(
    harness: Harness, answer: Answer, error: type[Exception]
) -> None:
    base = await create(harness)
    harness.proxy.plan(pointer("flights"), answer)
    with pytest.raises(error, match=r"s3tables:UpdateTableMetadataLocation of db\.flights"):
        await send(harness, build_swap(base))
    assert isinstance(await send(harness, build_swap(base)), Committed)


async def test_metadata_is_never_compressed_and_below_the_table_whatever_its_properties_say(
    harness: Harness,
) -> None:
    """The service would refuse the pointer, and every later commit of the table with it."""
    base = await create(harness)
    elsewhere = {
        "write.metadata.compression-codec": "gzip",
        "write.metadata.path": "s3://elsewhere/metadata",
    }
    for _ in range(2):
        answer = await send(harness, build_swap(base, properties=elsewhere, gzip=True))
        assert isinstance(answer, Committed)
        base = answer.table
        name = base.metadata_location.removeprefix(f"{base.metadata.location}/metadata/")
        assert "/" not in name and ".gz" not in name
        assert await harness.catalog.load(FLIGHTS) == base


async def test_renamed_table_is_the_same_under_another_name_only(harness: Harness) -> None:
    created = await create(harness)
    await create(harness, "db.trains")
    for to, error in (
        (TRAINS, TableAlreadyExistsError),
        (FLIGHTS, TableAlreadyExistsError),
        (TableIdentifier(("absent",), "x"), NoSuchNamespaceError),
    ):
        with pytest.raises(error):
            await harness.catalog.rename_table(FLIGHTS, to)
    ships = TableIdentifier(("db",), "ships")
    with pytest.raises(NoSuchTableError):
        await harness.catalog.rename_table(ships, TableIdentifier(("db",), "y"))
    await harness.catalog.rename_table(FLIGHTS, ships)
    assert isinstance(await send(harness, build_swap(created)), Conflict)
    loaded = await harness.catalog.load(ships)
    assert loaded.metadata_location == created.metadata_location
    assert isinstance(await send(harness, build_swap(loaded)), Committed)
    assert await harness.catalog.list_tables(("db",)) == [ships, TRAINS]


async def test_what_would_lose_files_or_needs_foreign_ones_is_refused(harness: Harness) -> None:
    created = await create(harness)
    with pytest.raises(UnsupportedError, match="deletes all files"):
        await harness.catalog.drop_table(FLIGHTS)
    with pytest.raises(UnsupportedError, match="from elsewhere"):
        await harness.catalog.register_table(TRAINS, created.metadata_location)
    assert await harness.catalog.load(FLIGHTS) == created


async def test_namespaces_are_of_one_level_without_properties(harness: Harness) -> None:
    catalog = harness.catalog
    await create(harness)
    await catalog.create_namespace(("a",))
    await catalog.create_namespace(("a",))
    assert await catalog.list_namespaces() == [("a",), ("db",)]
    assert await catalog.namespace_properties(("a",)) == {}
    with pytest.raises(UnsupportedError, match="propert"):
        await catalog.set_namespace_properties(("a",), {"owner": "ada"})
    with pytest.raises(NamespaceNotEmptyError):
        await catalog.drop_namespace(("db",))
    await catalog.drop_namespace(("a",))
    assert await catalog.list_namespaces() == [("db",)]
    with pytest.raises(UnsupportedError, match="no levels"):
        await catalog.create_namespace(("a", "b"))
    for absent in (("a",), ("A",), ("db", "x")):
        with pytest.raises(NoSuchNamespaceError):
            await catalog.list_tables(absent)


async def test_probe_leaves_nothing_and_refuses_a_server_that_ignores_tokens(
    harness: Harness,
) -> None:
    await harness.catalog.probe()
    assert await harness.catalog.list_namespaces() == []
    done = Answer(200, b'{"versionToken": "x"}', "application/json")
    harness.proxy.plan(b"versionToken", done, done)
    with pytest.raises(SettingsError, match="version token is stale"):
        await harness.catalog.probe()
    assert await harness.catalog.list_namespaces() == []


@pytest.mark.parametrize("warehouse", ["", "s3://lake", "arn:aws:s3:::lake"])
async def test_warehouse_that_is_no_table_bucket_is_refused(warehouse: str) -> None:
    with pytest.raises(SettingsError, match=r"`warehouse`.*ARN of a table bucket"):
        await S3TablesCatalog.open(
            bucket=warehouse,
            storage=MemoryStorage(),
            options=AwsOptions(region="eu-central-1"),
            world=RealWorld(),
        )
