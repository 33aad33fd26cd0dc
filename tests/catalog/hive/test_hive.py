"""The Hive catalog beyond the contract: Java's entries, answers in doubt, races, a dead server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from committer.catalog.hive import hive_layout as layout
from committer.catalog.hive.hive_catalog import HiveCatalog
from committer.catalog.hive.thrift_connection import Connection
from committer.catalog.hive.thrift_values import Struct, struct, text, text_map
from committer.errors import (
    CatalogUnavailableError,
    NoSuchTableError,
    TableAlreadyExistsError,
    UnsupportedError,
)
from committer.ports.pointer_swap import Committed, Conflict, Rejected, Swap, Unknown
from committer.real_world import RealWorld
from committer.request.table_identifier import TableIdentifier
from tests.support.builders.table_builders import build_table
from tests.support.catalogs.hive_harness import ALTER, HiveHarness
from tests.support.faults.fault_proxy import Fault, Spoiled

pytestmark = pytest.mark.server

FLIGHTS = TableIdentifier(("db",), "flights")
READ = b"get_table_req"


@pytest.fixture(params=["hive_server", pytest.param("hive_2_server", marks=pytest.mark.heavy)])
async def harness(request: pytest.FixtureRequest) -> AsyncIterator[HiveHarness]:
    harness = await HiveHarness.open(request.getfixturevalue(request.param))
    yield harness
    await harness.close()


def call(harness: HiveHarness, name: str, arguments: Struct) -> Struct:
    """Call the metastore as another client does."""
    connection = Connection(*harness.server.address, connect_timeout_s=10, read_timeout_s=60)
    try:
        return connection.call(name, arguments)
    finally:
        connection.close()


def entry(harness: HiveHarness) -> Struct:
    request = {1: struct({1: text("db"), 2: text("flights")})}
    answer: Struct = call(harness, "get_table_req", request)[0].value[1].value
    return answer


# --- Entries -------------------------------------------------------------------------------------


async def test_entry_has_the_parameters_that_java_gives_it(harness: HiveHarness) -> None:
    base = await harness.create(color="blue")
    uuid = str(base.metadata.table_uuid)
    found = layout.parameters_of(entry(harness))
    assert found.pop("transient_lastDdlTime").isdigit()
    assert found.pop("current-schema").startswith('{"type":"struct","schema-id":0,"fields":[')
    expected = {
        **base.metadata.properties,
        "EXTERNAL": "TRUE",
        "table_type": "ICEBERG",
        "metadata_location": base.metadata_location,
        "uuid": uuid,
        "snapshot-count": "0",
    }
    assert found == expected
    assert entry(harness)[12].value == "EXTERNAL_TABLE"
    swap = await harness.written(base, color="red")
    assert isinstance(await harness.catalog.swap(swap), Committed)
    found = layout.parameters_of(entry(harness))
    assert (found["color"], found["metadata_location"]) == ("red", swap.metadata_location)
    assert found["previous_metadata_location"] == base.metadata_location


async def test_swap_keeps_what_others_wrote_into_the_entry(harness: HiveHarness) -> None:
    base = await harness.create()
    before = entry(harness)
    theirs = layout.parameters_of(before) | {"comment": "of another tool"}
    changed = {**before, 3: text("ada"), 9: text_map(theirs)}
    context = struct({1: text_map({"DO_NOT_UPDATE_STATS": "true"})})
    arguments = {1: text("db"), 2: text("flights"), 3: struct(changed), 4: context}
    call(harness, ALTER.decode(), arguments)
    assert isinstance(await harness.catalog.swap(await harness.written(base)), Committed)
    after = entry(harness)
    assert layout.parameters_of(after)["comment"] == "of another tool"
    assert {key: after[key] for key in before if key != 9} == {
        key: changed[key] for key in before if key != 9
    }
    assert after[3].value == "ada"


async def test_views_and_tables_of_other_formats_are_left_alone(harness: HiveHarness) -> None:
    await harness.catalog.create_namespace(("db",))
    call(harness, "create_table", {1: struct(layout.probe_entry("flights", "db"))})
    assert await harness.catalog.list_tables(("db",)) == []
    for refused in (harness.catalog.load(FLIGHTS), harness.catalog.drop_table(FLIGHTS)):
        with pytest.raises(NoSuchTableError, match="no Iceberg table"):
            await refused
    with pytest.raises(TableAlreadyExistsError):
        await harness.create()


async def test_property_whose_name_is_too_long_is_refused_before_it_is_sent(
    harness: HiveHarness,
) -> None:
    base = await harness.create()
    with pytest.raises(UnsupportedError, match="257 characters"):
        await harness.catalog.create_table(
            build_table("db.other", warehouse=harness.storage.warehouse, properties={"k" * 257: ""})
        )
    answer = await harness.catalog.swap(await harness.written(base, **{"k" * 257: "v"}))
    assert isinstance(answer, Rejected)
    assert "257 characters" in answer.reason
    longest = await harness.written(base, **{"k" * 256: "v" * 300_000})
    assert isinstance(await harness.catalog.swap(longest), Committed)


async def test_table_that_the_metastore_refuses_leaves_no_file(harness: HiveHarness) -> None:
    await harness.catalog.create_namespace(("db",))
    table = build_table("db.nowhere", warehouse="unknown://warehouse")
    table = replace(table, metadata_location=f"{harness.storage.warehouse}/0.metadata.json")
    with pytest.raises(CatalogUnavailableError, match="No FileSystem for scheme"):
        await harness.catalog.create_table(table)
    found = [one.location async for one in harness.storage.list(harness.storage.warehouse)]
    assert found == []


async def test_server_that_is_no_metastore_is_named_with_what_is_not_supported(
    harness: HiveHarness,
) -> None:
    harness.proxy.spoil(b"get_all_databases", Fault.CUT_REQUEST)
    with pytest.raises(CatalogUnavailableError, match=r"catalog uri.*Kerberos"):
        await harness.client(f"thrift://{harness.proxy.host}:{harness.proxy.port}")


async def test_folders_of_new_databases_are_below_the_warehouse(harness: HiveHarness) -> None:
    warehouse = f"{harness.storage.warehouse}/elsewhere"
    catalog = await HiveCatalog.open(
        uri=harness.server.uri, storage=harness.storage, world=RealWorld(), warehouse=warehouse
    )
    await catalog.create_namespace(("placed",))
    await catalog.close()
    assert await harness.catalog.default_location(("placed",)) == f"{warehouse}/placed.db"
    with pytest.raises(UnsupportedError, match="keeps it for itself"):
        await harness.catalog.drop_namespace(("default",))


# --- Answers -------------------------------------------------------------------------------------


async def held_read(harness: HiveHarness, swap: Swap) -> tuple[asyncio.Task[object], Spoiled]:
    """Begin a swap, and hold it between its read and its alter."""
    held = harness.proxy.spoil(READ, Fault.HOLD_ANSWER)
    task: asyncio.Task[object] = asyncio.create_task(harness.catalog.swap(swap))
    await held.wait()
    return task, held


async def test_swap_that_loses_between_its_read_and_its_alter_is_a_conflict(
    harness: HiveHarness,
) -> None:
    base = await harness.create()
    other = await harness.another()
    ours, theirs = await harness.written(base, by="us"), await harness.written(base, by="them")
    task, held = await held_read(harness, ours)
    won = await other.swap(theirs)
    assert isinstance(won, Committed)
    held.release()
    assert await task == Conflict(won.table)


async def test_swap_of_a_table_dropped_between_its_read_and_its_alter_is_a_conflict(
    harness: HiveHarness,
) -> None:
    swap = await harness.written(await harness.create())
    task, held = await held_read(harness, swap)
    await (await harness.another()).drop_table(FLIGHTS)
    held.release()
    assert await task == Conflict()


async def test_swap_that_is_sent_twice_below_us_is_committed(harness: HiveHarness) -> None:
    swap = await harness.written(await harness.create())
    harness.proxy.spoil(ALTER, Fault.SENT_TWICE)
    assert isinstance(await harness.catalog.swap(swap), Committed)
    assert await harness.catalog.current_location(FLIGHTS) == swap.metadata_location


async def test_swap_that_was_sent_twice_and_built_upon_is_unknown_and_never_a_conflict(
    harness: HiveHarness,
) -> None:
    """Its files are in the table: a conflict would have them deleted."""
    ours = await harness.written(await harness.create())
    other = await harness.another()
    task, held = await held_read(harness, ours)
    landed = await other.swap(ours)
    assert isinstance(landed, Committed)
    assert isinstance(await other.swap(await harness.written(landed.table)), Committed)
    held.release()
    assert isinstance(await task, Unknown)


@pytest.mark.heavy
async def test_each_of_twenty_races_of_eight_swappers_has_one_winner(harness: HiveHarness) -> None:
    base = await harness.create()
    clients = [await harness.another() for _ in range(8)]
    for number in range(20):
        swaps = [await harness.written(base, by=f"{number}-{place}") for place in range(8)]
        answers = await asyncio.gather(
            *(client.swap(swap) for client, swap in zip(clients, swaps, strict=True))
        )
        (winner,) = [answer for answer in answers if isinstance(answer, Committed)]
        assert sum(isinstance(answer, Conflict) for answer in answers) == 7
        base = winner.table
        assert await harness.catalog.current_location(FLIGHTS) == base.metadata_location


# --- The server's death, and its addresses -------------------------------------------------------


async def test_swap_whose_server_is_killed_is_unknown_and_a_dead_server_unavailable(
    harness: HiveHarness,
) -> None:
    base = await harness.create()
    swap = await harness.written(base)
    held = harness.proxy.spoil(ALTER, Fault.HOLD_ANSWER)
    task = asyncio.create_task(harness.catalog.swap(swap))
    await held.wait()
    harness.server.kill()
    await harness.proxy.turn_to(harness.server.address)
    assert isinstance(await task, Unknown)
    with pytest.raises(CatalogUnavailableError):
        await harness.catalog.swap(swap)
    direct = HiveCatalog.open(uri=harness.server.uri, storage=harness.storage, world=RealWorld())
    with pytest.raises(CatalogUnavailableError, match="no Hive metastore can be reached"):
        await direct
    # A server ends with the thread that has started it.
    harness.server.start()
    assert await harness.catalog.current_location(FLIGHTS) == swap.metadata_location
    landed = await harness.catalog.load(FLIGHTS)
    assert isinstance(await harness.catalog.swap(await harness.written(landed)), Committed)


async def test_first_address_that_answers_is_used(harness: HiveHarness) -> None:
    await harness.create()
    uris = f"thrift://127.0.0.1:1,{harness.server.uri}"
    client = await HiveCatalog.open(
        uri=uris, storage=harness.storage, world=RealWorld(), ugi="ada:staff,flyers"
    )
    assert await client.list_tables(("db",)) == [FLIGHTS]
    await client.close()


async def test_rename_of_a_table_that_moves_meanwhile_takes_the_newest(
    harness: HiveHarness,
) -> None:
    base = await harness.create()
    moved = replace(FLIGHTS, name="moved")
    other = await harness.another()
    held = harness.proxy.spoil(READ, Fault.HOLD_ANSWER)
    task = asyncio.create_task(harness.catalog.rename_table(FLIGHTS, moved))
    await held.wait()
    swap = await harness.written(base)
    assert isinstance(await other.swap(swap), Committed)
    held.release()
    await task
    assert await harness.catalog.current_location(moved) == swap.metadata_location
