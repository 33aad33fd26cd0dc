"""The contract of `Catalog`, one test an obligation, on every adapter."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from committer.errors import (
    CatalogUnavailableError,
    InvalidMetadataError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NotFoundError,
    TableAlreadyExistsError,
    UnsupportedError,
)
from committer.iceberg.metadata.table_metadata import parse_table_metadata
from committer.ports.catalog import Catalog
from committer.ports.pointer_swap import (
    Committed,
    Conflict,
    LoadedTable,
    Rejected,
    Swap,
    SwapAnswer,
    Unknown,
)
from committer.ports.storage import NewObject
from committer.request.table_identifier import TableIdentifier
from committer.storage.scheme import scheme_of
from tests.support.builders.table_builders import build_head_swap as build_swap
from tests.support.builders.table_builders import build_table
from tests.support.catalogs.catalogs import (
    ADAPTERS,
    COMPRESSING,
    FENCED,
    FLAT,
    FOLDERS,
    JUDGING,
    NESTED,
    NESTED_WITH_PROPERTIES,
    POINTERS,
    REGISTERING,
    RENAMING,
    RESENDING,
    WITH_NAMESPACE_PROPERTIES,
    WITHOUT_NAMESPACE_PROPERTIES,
    WITHOUT_REGISTER,
    WITHOUT_RENAME,
    CatalogHarness,
    open_harness,
)
from tests.support.catalogs.files_harness import OWN_FILES
from tests.support.faults.faulty_catalog import Fault

FLIGHTS = TableIdentifier(("db",), "flights")
TRAINS = TableIdentifier(("db",), "trains")


@pytest.fixture(params=ADAPTERS)
async def harness(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[CatalogHarness]:
    harness = await open_harness(request.param, tmp_path, request.getfixturevalue)
    yield harness
    await harness.close()


async def create(harness: CatalogHarness, name: str = "db.flights") -> LoadedTable:
    table = build_table(name, warehouse=harness.warehouse)
    await harness.catalog.create_namespace(table.identifier.namespace)
    await harness.catalog.create_table(table)
    return await as_created(harness, table)


async def as_created(harness: CatalogHarness, table: LoadedTable) -> LoadedTable:
    """Return a table where its catalog has put it."""
    if not harness.catalog.capabilities.chooses_locations:
        return replace(table, metadata_location=harness.first_location(table))
    loaded = await harness.catalog.load(table.identifier)
    moved = replace(table.metadata, location=loaded.metadata.location)
    file = table.metadata_location.rpartition("/")[2]
    return LoadedTable(table.identifier, moved, f"{moved.location}/metadata/{file}")


async def drop(harness: CatalogHarness, identifier: TableIdentifier = FLIGHTS) -> None:
    """Drop a table; where it is its folder, delete that as an operator does."""
    if harness.catalog.capabilities.drops_pointer_only:
        await harness.catalog.drop_table(identifier)
        return
    folder = (await harness.catalog.load(identifier)).metadata.location
    found = [info.location async for info in harness.storage.list(folder)]
    await harness.storage.delete(found)


async def send(harness: CatalogHarness, swap: Swap, *, by: Catalog | None = None) -> SwapAnswer:
    """Swap as a committer does: what must be durable first, then the swap."""
    catalog = by or harness.catalog
    await harness.storage.create(catalog.objects_before(swap))
    return await catalog.swap(swap)


async def location(harness: CatalogHarness) -> str:
    return await harness.catalog.current_location(FLIGHTS)


async def is_current(harness: CatalogHarness, swap: Swap) -> bool:
    """Return whether the table is what the swap made of it, and under its pointer where the swap
    names that.
    """
    loaded = await harness.catalog.load(FLIGHTS)
    if harness.catalog.capabilities.metadata_writer == "committer":
        return loaded == LoadedTable(FLIGHTS, swap.metadata, swap.metadata_location)
    same = ("current_snapshot_id", "snapshots", "properties", "table_uuid", "location")
    return all(getattr(loaded.metadata, name) == getattr(swap.metadata, name) for name in same)


async def locations(harness: CatalogHarness) -> list[str]:
    """List the files of all tables, also where the catalog chooses a bucket for each; without those
    by which a file system catalog finds its way.
    """
    place = harness.warehouse
    if harness.catalog.capabilities.chooses_locations:
        place = f"{scheme_of(place)}://"
    found = [info.location async for info in harness.storage.list(place)]
    return [one for one in found if not one.endswith(OWN_FILES)]


async def namespaces(harness: CatalogHarness) -> list[tuple[str, ...]]:
    """List the namespaces but the one that a Hive metastore keeps for itself."""
    return [one for one in await harness.catalog.list_namespaces() if one != ("default",)]


# --- Reading -------------------------------------------------------------------------------------


async def test_created_table_is_loaded_as_it_was_created(harness: CatalogHarness) -> None:
    created = await create(harness)
    assert await harness.catalog.load(FLIGHTS) == created
    assert await location(harness) == created.metadata_location


async def test_absent_table_is_named_so_by_every_reading_method(harness: CatalogHarness) -> None:
    await create(harness)
    absent = TableIdentifier(("db",), "trains")
    with pytest.raises(NoSuchTableError, match=r"db\.trains"):
        await harness.catalog.load(absent)
    with pytest.raises(NoSuchTableError, match=r"db\.trains"):
        await harness.catalog.current_location(absent)


ODD_NAMES = (
    (("../..",), "x"),
    (("..",), ".."),
    (("a.b",), "c"),
    (("a", ""), "c"),
    (("db",), ""),
    (("db",), "a/b"),
    (("db",), "'; drop table iceberg_tables; --"),
    (("db",), "%"),
    (("NAMESPACE",), "NAMESPACE"),
    (("\N{SNOWMAN}" * 255,), "\N{SNOWMAN}" * 255),
    (("x" * 255,) * 16, "x" * 255),
)


@pytest.mark.parametrize(("namespace", "name"), ODD_NAMES)
async def test_a_name_that_no_table_can_have_is_that_of_none(
    harness: CatalogHarness, namespace: tuple[str, ...], name: str
) -> None:
    """A request that names such a table would wait for ever behind any other error."""
    await create(harness)
    identifier = TableIdentifier(namespace, name)
    with pytest.raises(NoSuchTableError):
        await harness.catalog.load(identifier)
    with pytest.raises(NoSuchTableError):
        await harness.catalog.current_location(identifier)


@pytest.mark.parametrize("harness", POINTERS, indirect=True)
async def test_table_whose_metadata_file_is_gone_breaks_the_specification(
    harness: CatalogHarness,
) -> None:
    created = await create(harness)
    await harness.storage.delete((created.metadata_location,))
    with pytest.raises(InvalidMetadataError, match="does not exist"):
        await harness.catalog.load(FLIGHTS)


@pytest.mark.parametrize("harness", POINTERS, indirect=True)
async def test_table_whose_metadata_file_is_broken_is_named_with_the_file(
    harness: CatalogHarness,
) -> None:
    created = await create(harness)
    etag = (await harness.storage.head(created.metadata_location)).etag
    await harness.storage.replace(created.metadata_location, b'{"format-version": 2', etag=etag)
    with pytest.raises(InvalidMetadataError, match=created.metadata_location):
        await harness.catalog.load(FLIGHTS)


@pytest.mark.parametrize("harness", POINTERS, indirect=True)
async def test_load_follows_a_pointer_that_moved_while_the_old_file_was_deleted(
    harness: CatalogHarness,
) -> None:
    created = await create(harness)
    swap = build_swap(created)

    async def move(location: str) -> None:
        await send(harness, swap)
        await harness.storage.delete((location,))

    harness.storage.before_get = move
    assert (await harness.catalog.load(FLIGHTS)).metadata_location == swap.metadata_location


# --- The swap and its four answers ---------------------------------------------------------------


@pytest.mark.parametrize("harness", COMPRESSING, indirect=True)
@pytest.mark.parametrize("gzip", [False, True])
async def test_objects_before_a_swap_are_the_metadata_file_that_it_names(
    harness: CatalogHarness, gzip: bool
) -> None:
    swap = build_swap(await create(harness), gzip=gzip)
    (written,) = harness.catalog.objects_before(swap)
    assert written.location == swap.metadata_location
    assert parse_table_metadata(written.content) == swap.metadata
    assert (written.content[:2] == b"\x1f\x8b") is gzip
    assert harness.catalog.objects_before(swap) == (written,)


async def test_swap_of_a_current_base_is_committed_and_returns_what_is_current(
    harness: CatalogHarness,
) -> None:
    swap = build_swap(await create(harness), properties={"color": "blue"})
    answer = await send(harness, swap)
    assert answer == Committed(await harness.catalog.load(FLIGHTS))
    assert await is_current(harness, swap)


async def test_swap_of_a_stale_base_is_a_conflict_and_changes_nothing(
    harness: CatalogHarness,
) -> None:
    base = await create(harness)
    first, second = (
        build_swap(base, properties={"by": "first"}),
        build_swap(base, properties={"by": "second"}),
    )
    assert isinstance(await send(harness, first), Committed)
    assert isinstance(await send(harness, second), Conflict)
    assert await is_current(harness, first)


async def test_of_two_concurrent_swaps_of_one_base_exactly_one_is_committed(
    harness: CatalogHarness,
) -> None:
    base = await create(harness)
    rival = await harness.another()
    for _ in range(20):
        ours, theirs = (
            build_swap(base, properties={"by": "us"}),
            build_swap(base, properties={"by": "them"}),
        )
        answers = await asyncio.gather(send(harness, ours), send(harness, theirs, by=rival))
        (winner,) = [answer for answer in answers if isinstance(answer, Committed)]
        (_,) = [answer for answer in answers if isinstance(answer, Conflict)]
        base = winner.table
        assert await location(harness) == base.metadata_location


@pytest.mark.parametrize("harness", REGISTERING, indirect=True)
async def test_swap_of_a_dropped_table_is_a_conflict(harness: CatalogHarness) -> None:
    swap = build_swap(await create(harness))
    await drop(harness)
    assert isinstance(await send(harness, swap), Conflict)
    with pytest.raises(NoSuchTableError):
        await location(harness)


@pytest.mark.parametrize("harness", REGISTERING, indirect=True)
async def test_swap_of_a_dropped_and_recreated_table_is_a_conflict(harness: CatalogHarness) -> None:
    swap = build_swap(await create(harness))
    await drop(harness)
    recreated = await create(harness)
    assert isinstance(await send(harness, swap), Conflict)
    assert await location(harness) == recreated.metadata_location


async def test_swap_that_was_applied_but_whose_answer_was_lost_is_unknown_and_has_landed(
    harness: CatalogHarness,
) -> None:
    base = await create(harness)
    swap = build_swap(base)
    with harness.befall(Fault.LOST_REPLY):
        assert isinstance(await send(harness, swap), Unknown)
    assert await is_current(harness, swap)
    assert isinstance(await send(harness, build_swap(base)), Conflict)
    assert await is_current(harness, swap)


async def test_swap_whose_request_was_lost_is_unknown_and_its_base_stays_usable(
    harness: CatalogHarness,
) -> None:
    base = await create(harness)
    with harness.befall(Fault.REQUEST_LOST):
        assert isinstance(await send(harness, build_swap(base)), Unknown)
    assert await location(harness) == base.metadata_location
    assert isinstance(await send(harness, build_swap(base)), Committed)


async def test_late_swap_lands_while_its_base_is_current_and_shuts_out_the_next_attempt(
    harness: CatalogHarness,
) -> None:
    base = await create(harness)
    late, again = (
        build_swap(base, properties={"attempt": "1"}),
        build_swap(base, properties={"attempt": "2"}),
    )
    with harness.befall(Fault.LANDS_LATE):
        assert isinstance(await send(harness, late), Unknown)
    assert await location(harness) == base.metadata_location
    await harness.land_late()
    assert await is_current(harness, late)
    assert isinstance(await send(harness, again), Conflict)
    assert await is_current(harness, late)


@pytest.mark.parametrize("harness", FENCED, indirect=True)
async def test_late_swap_cannot_land_once_the_next_attempt_has(harness: CatalogHarness) -> None:
    base = await create(harness)
    late, again = (
        build_swap(base, properties={"attempt": "1"}),
        build_swap(base, properties={"attempt": "2"}),
    )
    with harness.befall(Fault.LANDS_LATE):
        assert isinstance(await send(harness, late), Unknown)
    assert isinstance(await send(harness, again), Committed)
    await harness.land_late()
    assert await is_current(harness, again)


@pytest.mark.parametrize("harness", RESENDING, indirect=True)
async def test_swap_that_a_layer_below_sends_twice_is_no_conflict_and_has_landed(
    harness: CatalogHarness,
) -> None:
    """A conflict would say that this attempt never lands."""
    swap = build_swap(await create(harness))
    with harness.befall(Fault.RESENT):
        answer = await send(harness, swap)
    assert isinstance(answer, Committed | Unknown)
    assert await is_current(harness, swap)


@pytest.mark.parametrize("harness", JUDGING, indirect=True)
async def test_swap_that_the_back_end_refuses_is_rejected_and_changes_nothing(
    harness: CatalogHarness,
) -> None:
    base = await create(harness)
    with harness.befall(Fault.REJECTED):
        answer = await send(harness, build_swap(base))
    assert isinstance(answer, Rejected)
    assert "refused by the test" in answer.reason
    assert await location(harness) == base.metadata_location
    assert isinstance(await send(harness, build_swap(base)), Committed)


async def test_swap_on_an_unavailable_back_end_raises_and_nothing_was_applied(
    harness: CatalogHarness,
) -> None:
    base = await create(harness)
    with harness.befall(Fault.UNAVAILABLE), pytest.raises(CatalogUnavailableError):
        await send(harness, build_swap(base))
    await harness.land_late()
    assert await location(harness) == base.metadata_location
    assert isinstance(await send(harness, build_swap(base)), Committed)


# --- Creating and dropping -----------------------------------------------------------------------


async def test_taken_name_is_refused_and_the_refused_table_leaves_no_file(
    harness: CatalogHarness,
) -> None:
    standing = await create(harness)
    before = await locations(harness)
    with pytest.raises(TableAlreadyExistsError, match=r"db\.flights"):
        await create(harness)
    assert await harness.catalog.load(FLIGHTS) == standing
    assert await locations(harness) == before


async def test_create_may_be_repeated_with_the_same_table(harness: CatalogHarness) -> None:
    created = await create(harness)
    await harness.catalog.create_table(created)
    assert await harness.catalog.load(FLIGHTS) == created


async def test_create_repeated_after_a_later_swap_keeps_what_is_current(
    harness: CatalogHarness,
) -> None:
    created = await create(harness)
    swap = build_swap(created)
    await send(harness, swap)
    with pytest.raises(TableAlreadyExistsError):
        await harness.catalog.create_table(created)
    assert await is_current(harness, swap)
    assert created.metadata_location in await locations(harness)


async def test_of_two_concurrent_creates_of_one_name_exactly_one_returns(
    harness: CatalogHarness,
) -> None:
    rival = await harness.another()
    await harness.catalog.create_namespace(("db",))
    tables = [build_table(warehouse=harness.warehouse) for _ in range(2)]
    outcomes = await asyncio.gather(
        harness.catalog.create_table(tables[0]),
        rival.create_table(tables[1]),
        return_exceptions=True,
    )
    (refused,) = [error for error in outcomes if error is not None]
    assert isinstance(refused, TableAlreadyExistsError)
    winner = tables[outcomes.index(None)]
    assert await harness.catalog.load(FLIGHTS) == await as_created(harness, winner)


async def test_table_in_a_missing_namespace_is_refused_and_leaves_no_file(
    harness: CatalogHarness,
) -> None:
    await harness.catalog.create_namespace(("db2",))
    with pytest.raises(NoSuchNamespaceError, match="db"):
        await harness.catalog.create_table(build_table(warehouse=harness.warehouse))
    assert await locations(harness) == []


@pytest.mark.parametrize("harness", REGISTERING, indirect=True)
async def test_dropped_table_is_gone_but_its_files_stay(harness: CatalogHarness) -> None:
    created = await create(harness)
    assert await harness.catalog.drop_table(FLIGHTS) in (None, created.metadata_location)
    with pytest.raises(NoSuchTableError):
        await harness.catalog.load(FLIGHTS)
    assert await locations(harness) == [created.metadata_location]
    with pytest.raises(NoSuchTableError):
        await harness.catalog.drop_table(FLIGHTS)


@pytest.mark.parametrize("harness", FOLDERS, indirect=True)
async def test_catalog_whose_tables_are_folders_refuses_what_a_folder_cannot_do(
    harness: CatalogHarness,
) -> None:
    created = await create(harness)
    can = harness.catalog.capabilities
    assert not can.drops_pointer_only
    assert not can.has_atomic_rename
    assert not can.has_namespace_properties
    with pytest.raises(UnsupportedError, match=r"db\.flights.*purge"):
        await harness.catalog.drop_table(FLIGHTS)
    with pytest.raises(UnsupportedError, match=r"db\.flights.*db\.trains.*copy"):
        await harness.catalog.rename_table(FLIGHTS, TRAINS)
    with pytest.raises(UnsupportedError, match=r"its metadata says"):
        await harness.catalog.register_table(TRAINS, created.metadata_location)
    with pytest.raises(UnsupportedError, match="keeps no properties"):
        await harness.catalog.set_namespace_properties(("db",), {"owner": "ada"})
    assert await harness.catalog.load(FLIGHTS) == created
    assert await harness.catalog.list_tables(("db",)) == [FLIGHTS]


# --- Renaming and registering --------------------------------------------------------------------


@pytest.mark.parametrize("harness", RENAMING, indirect=True)
async def test_renamed_table_is_the_same_table_under_another_name_only(
    harness: CatalogHarness,
) -> None:
    created = await create(harness)
    await harness.catalog.create_namespace(("other",))
    moved = TableIdentifier(("other",), "moved")
    await harness.catalog.rename_table(FLIGHTS, moved)
    loaded = await harness.catalog.load(moved)
    assert loaded == LoadedTable(moved, created.metadata, created.metadata_location)
    with pytest.raises(NoSuchTableError):
        await harness.catalog.load(FLIGHTS)
    assert await harness.catalog.list_tables(("db",)) == []
    assert await harness.catalog.list_tables(("other",)) == [moved]
    assert isinstance(await send(harness, build_swap(loaded)), Committed)


@pytest.mark.parametrize("harness", RENAMING, indirect=True)
async def test_swap_under_the_old_name_of_a_renamed_table_is_a_conflict(
    harness: CatalogHarness,
) -> None:
    created = await create(harness)
    await harness.catalog.rename_table(FLIGHTS, TRAINS)
    assert isinstance(await send(harness, build_swap(created)), Conflict)
    assert await harness.catalog.current_location(TRAINS) == created.metadata_location
    with pytest.raises(NoSuchTableError):
        await location(harness)


@pytest.mark.parametrize("harness", RENAMING, indirect=True)
async def test_rename_that_cannot_be_done_changes_nothing(harness: CatalogHarness) -> None:
    flights, trains = await create(harness), await create(harness, "db.trains")
    with pytest.raises(TableAlreadyExistsError, match=r"db\.trains"):
        await harness.catalog.rename_table(FLIGHTS, TRAINS)
    with pytest.raises(TableAlreadyExistsError, match=r"db\.flights"):
        await harness.catalog.rename_table(FLIGHTS, FLIGHTS)
    with pytest.raises(NoSuchTableError, match=r"db\.ships"):
        await harness.catalog.rename_table(TableIdentifier(("db",), "ships"), TRAINS)
    with pytest.raises(NoSuchNamespaceError, match="db2"):
        await harness.catalog.rename_table(FLIGHTS, TableIdentifier(("db2",), "flights"))
    assert await harness.catalog.load(FLIGHTS) == flights
    assert await harness.catalog.load(TRAINS) == trains


@pytest.mark.parametrize("harness", WITHOUT_RENAME, indirect=True)
async def test_catalog_without_a_rename_refuses_it_with_a_remedy_and_changes_nothing(
    harness: CatalogHarness,
) -> None:
    created = await create(harness)
    assert not harness.catalog.capabilities.has_atomic_rename
    with pytest.raises(UnsupportedError, match=r"db\.flights.*register.*db\.trains"):
        await harness.catalog.rename_table(FLIGHTS, TRAINS)
    assert await harness.catalog.load(FLIGHTS) == created
    assert await harness.catalog.list_tables(("db",)) == [FLIGHTS]


@pytest.mark.parametrize("harness", REGISTERING, indirect=True)
async def test_registered_metadata_file_becomes_a_table_as_it_is(harness: CatalogHarness) -> None:
    created = await create(harness)
    await harness.catalog.drop_table(FLIGHTS)
    registered = await harness.catalog.register_table(TRAINS, created.metadata_location)
    assert registered == LoadedTable(TRAINS, created.metadata, created.metadata_location)
    assert await harness.catalog.load(TRAINS) == registered
    assert await harness.catalog.register_table(TRAINS, created.metadata_location) == registered
    assert await locations(harness) == [created.metadata_location]
    assert isinstance(await send(harness, build_swap(registered)), Committed)


@pytest.mark.parametrize("harness", REGISTERING, indirect=True)
async def test_metadata_file_that_is_absent_or_broken_is_not_registered(
    harness: CatalogHarness,
) -> None:
    await harness.catalog.create_namespace(("db",))
    absent, broken = (
        f"{harness.warehouse}/absent.metadata.json",
        f"{harness.warehouse}/broken.metadata.json",
    )
    await harness.storage.create((NewObject(broken, b"{}"),))
    with pytest.raises(NotFoundError, match=absent) as error:
        await harness.catalog.register_table(FLIGHTS, absent)
    assert not isinstance(error.value, NoSuchTableError | NoSuchNamespaceError)
    with pytest.raises(InvalidMetadataError, match=broken):
        await harness.catalog.register_table(FLIGHTS, broken)
    with pytest.raises(NoSuchTableError):
        await location(harness)


@pytest.mark.parametrize("harness", REGISTERING, indirect=True)
async def test_refused_registration_leaves_the_name_and_the_file_as_they_were(
    harness: CatalogHarness,
) -> None:
    flights, trains = await create(harness), await create(harness, "db.trains")
    with pytest.raises(TableAlreadyExistsError, match=r"db\.flights"):
        await harness.catalog.register_table(FLIGHTS, trains.metadata_location)
    with pytest.raises(NoSuchNamespaceError, match="db2"):
        await harness.catalog.register_table(
            TableIdentifier(("db2",), "flights"), trains.metadata_location
        )
    assert await harness.catalog.load(FLIGHTS) == flights
    assert await harness.catalog.load(TRAINS) == trains


@pytest.mark.parametrize("harness", WITHOUT_REGISTER, indirect=True)
async def test_catalog_whose_tables_are_their_files_refuses_to_drop_and_to_register(
    harness: CatalogHarness,
) -> None:
    created = await create(harness)
    can = harness.catalog.capabilities
    assert not can.registers_tables and not can.drops_pointer_only
    with pytest.raises(UnsupportedError, match=r"db\.flights.*deletes all files"):
        await harness.catalog.drop_table(FLIGHTS)
    with pytest.raises(NoSuchTableError, match=r"db\.trains"):
        await harness.catalog.drop_table(TRAINS)
    with pytest.raises(UnsupportedError, match=r"db\.trains.*from elsewhere"):
        await harness.catalog.register_table(TRAINS, created.metadata_location)
    assert await harness.catalog.load(FLIGHTS) == created
    assert await harness.catalog.list_tables(("db",)) == [FLIGHTS]


# --- Names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("harness", NESTED, indirect=True)
async def test_tables_of_a_namespace_are_listed_sorted_and_without_those_below_it(
    harness: CatalogHarness,
) -> None:
    for name in ("db.trains", "db.flights", "db.Buses", "db.deep.ships", "db2.cars"):
        await create(harness, name)
    listed = await harness.catalog.list_tables(("db",))
    assert [table.name for table in listed] == ["Buses", "flights", "trains"]
    assert await harness.catalog.list_tables(("db", "deep")) == [
        TableIdentifier(("db", "deep"), "ships")
    ]


@pytest.mark.parametrize("harness", FLAT, indirect=True)
async def test_namespaces_of_one_level_are_listed_sorted_with_their_tables_and_not_nested(
    harness: CatalogHarness,
) -> None:
    for name in ("db.trains", "db.flights", "db2.cars"):
        await create(harness, name)
    listed = await harness.catalog.list_tables(("db",))
    assert [table.name for table in listed] == ["flights", "trains"]
    assert await namespaces(harness) == [("db",), ("db2",)]
    assert harness.catalog.capabilities.namespace_levels_max == 1
    with pytest.raises(UnsupportedError, match="no levels"):
        await harness.catalog.create_namespace(("db", "deep"))
    with pytest.raises(NamespaceNotEmptyError, match="db2"):
        await harness.catalog.drop_namespace(("db2",))


async def test_empty_namespace_lists_no_tables_and_an_absent_one_is_an_error(
    harness: CatalogHarness,
) -> None:
    await harness.catalog.create_namespace(("d_b",))
    assert await harness.catalog.list_tables(("d_b",)) == []
    for absent in (("dxb",), ("D_B",), ("d_",), ("d_b", "c")):
        with pytest.raises(NoSuchNamespaceError):
            await harness.catalog.list_tables(absent)


@pytest.mark.parametrize("harness", NESTED, indirect=True)
async def test_namespaces_are_listed_sorted_with_the_parents_that_they_imply(
    harness: CatalogHarness,
) -> None:
    await create(harness, "z.deep.er.flights")
    await harness.catalog.create_namespace(("a",))
    assert await namespaces(harness) == [
        ("a",),
        ("z",),
        ("z", "deep"),
        ("z", "deep", "er"),
    ]


async def test_namespace_created_twice_stays_as_it_was(harness: CatalogHarness) -> None:
    created = await create(harness)
    await harness.catalog.create_namespace(("db",))
    assert await harness.catalog.list_tables(("db",)) == [created.identifier]
    assert await namespaces(harness) == [("db",)]


async def test_namespace_without_properties_names_no_folder_for_its_tables(
    harness: CatalogHarness,
) -> None:
    await harness.catalog.create_namespace(("db",))
    assert await harness.catalog.default_location(("db",)) == harness.default_location("db")
    assert await harness.catalog.default_location(("absent",)) is None


@pytest.mark.parametrize("namespace", [(), ("",), ("a", ""), ("a.b",)])
async def test_namespace_that_a_dotted_name_cannot_carry_is_unsupported(
    harness: CatalogHarness, namespace: tuple[str, ...]
) -> None:
    with pytest.raises(UnsupportedError, match="levels"):
        await harness.catalog.create_namespace(namespace)
    with pytest.raises(UnsupportedError, match="levels"):
        await harness.catalog.list_tables(namespace)
    with pytest.raises(UnsupportedError, match="levels"):
        await harness.catalog.default_location(namespace)


# --- Dropping a namespace, and its properties ----------------------------------------------------


@pytest.mark.parametrize("harness", WITH_NAMESPACE_PROPERTIES, indirect=True)
async def test_empty_namespace_is_dropped_with_its_properties(harness: CatalogHarness) -> None:
    await harness.catalog.create_namespace(("db",))
    await harness.catalog.set_namespace_properties(("db",), {"owner": "ada"})
    await harness.catalog.drop_namespace(("db",))
    assert await namespaces(harness) == []
    with pytest.raises(NoSuchNamespaceError, match="db"):
        await harness.catalog.drop_namespace(("db",))
    await harness.catalog.create_namespace(("db",))
    assert await harness.catalog.namespace_properties(("db",)) == harness.own_properties("db")


@pytest.mark.parametrize("harness", NESTED, indirect=True)
async def test_namespace_that_holds_a_table_or_a_namespace_is_not_dropped(
    harness: CatalogHarness,
) -> None:
    created = await create(harness)
    await harness.catalog.create_namespace(("outer", "inner"))
    for held in (("db",), ("outer",)):
        with pytest.raises(NamespaceNotEmptyError, match=held[0]):
            await harness.catalog.drop_namespace(held)
    assert await harness.catalog.load(FLIGHTS) == created
    assert await namespaces(harness) == [("db",), ("outer",), ("outer", "inner")]
    await drop(harness)
    await harness.catalog.drop_namespace(("db",))
    assert ("db",) not in await namespaces(harness)


async def test_namespaces_of_similar_names_do_not_keep_one_another(
    harness: CatalogHarness,
) -> None:
    for name in ("a_b", "axb", "a_bc"):
        await create(harness, f"{name}.flights")
    await harness.catalog.create_namespace(("a",))
    await harness.catalog.drop_namespace(("a",))
    assert await namespaces(harness) == [("a_b",), ("a_bc",), ("axb",)]


@pytest.mark.parametrize("harness", WITH_NAMESPACE_PROPERTIES, indirect=True)
async def test_properties_of_a_namespace_are_set_and_removed_one_by_one(
    harness: CatalogHarness,
) -> None:
    catalog, db = harness.catalog, ("db",)
    await catalog.create_namespace(db)
    assert await catalog.namespace_properties(db) == harness.own_properties("db")
    await catalog.set_namespace_properties(db, {"owner": "ada", "a.b-c d": "é☃"})
    await catalog.set_namespace_properties(db, {"owner": "grace"}, removed=("absent",))
    assert await catalog.namespace_properties(db) == {
        **harness.own_properties("db"),
        "owner": "grace",
        "a.b-c d": "é☃",
    }
    await catalog.set_namespace_properties(db, {}, removed=("owner", "a.b-c d"))
    assert await catalog.namespace_properties(db) == harness.own_properties("db")
    assert await namespaces(harness) == [db]


@pytest.mark.parametrize("harness", WITHOUT_NAMESPACE_PROPERTIES, indirect=True)
async def test_namespace_that_keeps_no_properties_refuses_to_set_one(
    harness: CatalogHarness,
) -> None:
    await harness.catalog.create_namespace(("db",))
    assert not harness.catalog.capabilities.has_namespace_properties
    with pytest.raises(UnsupportedError, match="keep no properties"):
        await harness.catalog.set_namespace_properties(("db",), {"owner": "ada"})
    await harness.catalog.set_namespace_properties(("db",), {}, removed=("owner",))
    assert await harness.catalog.namespace_properties(("db",)) == {}
    await harness.catalog.drop_namespace(("db",))
    assert await namespaces(harness) == []


@pytest.mark.parametrize("harness", NESTED_WITH_PROPERTIES, indirect=True)
async def test_namespace_that_only_its_tables_imply_takes_properties(
    harness: CatalogHarness,
) -> None:
    await create(harness, "outer.inner.flights")
    await harness.catalog.set_namespace_properties(("outer",), {"owner": "ada"})
    assert await harness.catalog.namespace_properties(("outer",)) == {
        **harness.own_properties("outer"),
        "owner": "ada",
    }


async def test_properties_of_an_absent_namespace_are_an_error(harness: CatalogHarness) -> None:
    await harness.catalog.create_namespace(("db",))
    for absent in (("d",), ("DB",), ("db", "c")):
        with pytest.raises(NoSuchNamespaceError):
            await harness.catalog.namespace_properties(absent)
        with pytest.raises(NoSuchNamespaceError):
            await harness.catalog.set_namespace_properties(absent, {"owner": "ada"})
    assert await namespaces(harness) == [("db",)]


@pytest.mark.parametrize("harness", WITH_NAMESPACE_PROPERTIES, indirect=True)
async def test_property_without_a_name_is_unsupported(harness: CatalogHarness) -> None:
    await harness.catalog.create_namespace(("db",))
    with pytest.raises(UnsupportedError, match="property"):
        await harness.catalog.set_namespace_properties(("db",), {"owner": "ada", "": "x"})
    assert await harness.catalog.namespace_properties(("db",)) == harness.own_properties("db")


# --- Probe and close -----------------------------------------------------------------------------


async def test_probe_passes_and_leaves_nothing_behind(harness: CatalogHarness) -> None:
    await harness.catalog.probe()
    await harness.catalog.probe()
    assert await namespaces(harness) == []
    assert await locations(harness) == []


async def test_close_may_be_repeated(harness: CatalogHarness) -> None:
    await harness.catalog.close()
    await harness.catalog.close()
