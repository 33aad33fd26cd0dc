"""File system tables on memory, a local disk and S3: the swap, its doubts, the hint, folders."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from committer.catalog.hadoop.hadoop_catalog import HadoopCatalog
from committer.errors import (
    AlreadyExistsError,
    CatalogUnavailableError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    SettingsError,
    StorageUnavailableError,
    TableAlreadyExistsError,
    UnsupportedError,
)
from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.metadata.table_metadata import parse_table_metadata, print_metadata_file
from committer.iceberg.updates.metadata_update import AddSnapshot, apply_updates
from committer.ports.pointer_swap import Committed, Conflict, LoadedTable, Swap, Unknown
from committer.ports.storage import NewObject, Storage
from committer.real_world import RealWorld
from committer.request.table_identifier import TableIdentifier
from committer.storage.disk.local import LocalStorage
from committer.storage.s3.s3_storage import S3Storage
from tests.support.builders.table_builders import build_metadata, build_swap, build_table
from tests.support.faults.failing_creates import FailingCreates
from tests.support.faults.faulty_catalog import Fault
from tests.support.memory.memory_storage import MemoryStorage

FLIGHTS = TableIdentifier(("db",), "flights")


@dataclass(frozen=True)
class Place:
    """A warehouse, and a catalog of it."""

    warehouse: str
    storage: FailingCreates

    @property
    def catalog(self) -> HadoopCatalog:
        """A new client: nothing is remembered."""
        return HadoopCatalog(warehouse=self.warehouse, storage=self.storage, no_other_writers=True)

    @property
    def folder(self) -> str:
        return f"{self.warehouse}/db/flights/metadata"

    def at(self, version: int, ending: str = ".metadata.json") -> str:
        return f"{self.folder}/v{version}{ending}"

    async def create(
        self, name: str = "db.flights", properties: Mapping[str, str] | None = None
    ) -> LoadedTable:
        table = build_table(name, warehouse=self.warehouse, properties=properties)
        await self.catalog.create_namespace(table.identifier.namespace)
        await self.catalog.create_table(table)
        return await self.catalog.load(table.identifier)

    async def grown(self, versions: int) -> LoadedTable:
        """Create the table and swap it up to this version."""
        return await self.grown_on(await self.create(), versions)

    async def grown_on(self, table: LoadedTable, version: int) -> LoadedTable:
        """Swap the table up to this version."""
        while table.metadata_location != self.at(version):
            table = committed(await self.catalog.swap(build_swap(table)))
        return table

    async def put(self, location: str, content: bytes = b"x") -> None:
        await self.storage.inner.create([NewObject(location, content)])

    async def hint(self) -> str:
        return (await self.storage.get(f"{self.folder}/version-hint.text")).decode()


@pytest.fixture(params=["memory", "local", pytest.param("s3", marks=pytest.mark.server)])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    inner: Storage
    match request.param:
        case "memory":
            inner, warehouse = MemoryStorage(world=RealWorld()), "memory://bucket/warehouse"
        case "local":
            inner, warehouse = LocalStorage(), f"file://{tmp_path}/warehouse"
        case _:
            server = request.getfixturevalue("s3_server")
            inner, warehouse = S3Storage(server.options, world=RealWorld()), server.new_root()
    yield Place(warehouse, FailingCreates(inner))
    await inner.close()


def committed(answer: object) -> LoadedTable:
    assert isinstance(answer, Committed), answer
    return answer.table


def snapshot_swap(base: LoadedTable, number: int = 1) -> Swap:
    """Build a swap that adds a snapshot with a manifest list of its own."""
    snapshot = Snapshot(
        snapshot_id=number,
        sequence_number=base.metadata.last_sequence_number + 1,
        timestamp_ms=base.metadata.last_updated_ms,
        manifest_list=f"{base.metadata.location}/metadata/snap-{number}.avro",
        summary={"operation": "append"},
        schema_id=0,
    )
    swap = build_swap(base)
    updates = (AddSnapshot(snapshot),)
    metadata = apply_updates(
        base.metadata,
        updates,
        base_location=base.metadata_location,
        now_ms=base.metadata.last_updated_ms + 1,
    )
    return replace(swap, updates=updates, metadata=metadata)


# --- Names and the hint --------------------------------------------------------------------------


async def test_versions_count_from_one_and_the_hint_follows(place: Place) -> None:
    table = await place.create()
    assert table.metadata_location == place.at(1)
    assert await place.hint() == "1"
    second = committed(await place.catalog.swap(build_swap(table, properties={"a": "b"})))
    assert second.metadata_location == place.at(2)
    assert await place.hint() == "2"
    loaded = await place.catalog.load(FLIGHTS)
    assert loaded == second
    assert loaded.metadata.properties["a"] == "b"
    assert [one.metadata_file for one in loaded.metadata.metadata_log] == [place.at(1)]
    content = await place.storage.get(place.at(2))
    assert content.startswith(b"{")
    assert parse_table_metadata(content) == loaded.metadata


async def test_nothing_is_written_before_the_swap(place: Place) -> None:
    assert place.catalog.objects_before(build_swap(await place.create())) == ()


async def test_a_steady_swap_costs_two_looks_a_create_a_look_and_the_hint(place: Place) -> None:
    catalog, table = place.catalog, await place.create()
    table = committed(await catalog.swap(build_swap(table)))
    before = place.storage.calls.copy()
    committed(await catalog.swap(build_swap(table)))
    spent = place.storage.calls - before
    local = {"get": 2, "delete": 1} if place.warehouse.startswith("file:") else {}
    assert spent == {"get": 1, "names": 2, "create": 1, "replace": 1, **local}


@pytest.mark.parametrize(
    "hint",
    [b"7\n", b"0", b"", b"many words " * 100, b"\xff", b"-1"],
    ids=["higher", "zero", "empty", "long", "binary", "negative"],
)
async def test_no_hint_is_trusted_and_none_is_lowered(place: Place, hint: bytes) -> None:
    table = await place.grown(2)
    name = f"{place.folder}/version-hint.text"
    await place.storage.delete((name,))
    await place.put(name, hint)
    assert await place.catalog.current_location(FLIGHTS) == table.metadata_location
    committed(await place.catalog.swap(build_swap(table)))
    assert await place.hint() == ("7\n" if hint == b"7\n" else "3")


async def test_a_hint_that_cannot_be_written_fails_no_commit(place: Place) -> None:
    table = await place.create()

    class NoHints(FailingCreates):
        async def replace(self, location: str, content: bytes, *, etag: str | None) -> str:
            raise StorageUnavailableError("the test loses it")

    catalog = HadoopCatalog(
        warehouse=place.warehouse, storage=NoHints(place.storage), no_other_writers=True
    )
    table = committed(await catalog.swap(build_swap(table)))
    assert await place.hint() == "1"
    committed(await place.catalog.swap(build_swap(table)))
    assert await place.hint() == "3"


async def test_the_checksum_of_an_older_hint_is_removed(tmp_path: Path) -> None:
    """Hadoop's local file system moves a file whose checksum is wrong out of its folder."""
    place = Place(f"file://{tmp_path}", FailingCreates(LocalStorage()))
    table = await place.create()
    checksum = f"{place.folder}/.version-hint.text.crc"
    await place.put(checksum)
    committed(await place.catalog.swap(build_swap(table)))
    assert ".version-hint.text.crc" not in await place.storage.names(place.folder)


@pytest.mark.parametrize("ending", [".gz.metadata.json", ".metadata.json.gz"])
async def test_the_highest_version_is_current_in_any_spelling(place: Place, ending: str) -> None:
    table = await place.grown(9)
    gzip = place.at(10, ending)
    await place.put(gzip, print_metadata_file(table.metadata, gzip))
    assert await place.catalog.current_location(FLIGHTS) == gzip
    assert (await place.catalog.load(FLIGHTS)).metadata == table.metadata
    assert isinstance(await place.catalog.swap(build_swap(table)), Conflict)
    table = committed(await place.catalog.swap(build_swap(await place.catalog.load(FLIGHTS))))
    assert table.metadata_location == place.at(11)


async def test_of_two_spellings_of_a_version_the_plain_one_is_current(place: Place) -> None:
    await place.create()
    await place.put(place.at(1, ".gz.metadata.json"))
    await place.put(place.at(1, ".metadata.json.gz"))
    assert await place.catalog.current_location(FLIGHTS) == place.at(1)


async def test_other_names_are_no_versions(place: Place) -> None:
    await place.create()
    for name in ("v01.metadata.json", "v2.metadata.json.tmp", "v0.metadata.json", "v3.json"):
        await place.put(f"{place.folder}/{name}")
    await place.put(f"{place.folder}/v4.metadata.json.d/file")
    assert await place.catalog.current_location(FLIGHTS) == place.at(1)


# --- The four answers ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "place",
    ["memory", "local", pytest.param("s3", marks=[pytest.mark.server, pytest.mark.heavy])],
    indirect=True,
)
async def test_of_eight_swappers_exactly_one_wins_each_of_twenty_races(place: Place) -> None:
    table = await place.create()
    clients = [place.catalog for _ in range(8)]
    for number in range(20):
        swaps = [build_swap(table, properties={f"race-{number}": str(n)}) for n in range(8)]
        answers = await asyncio.gather(
            *(client.swap(swap) for client, swap in zip(clients, swaps, strict=True))
        )
        winners = [
            swap
            for swap, answer in zip(swaps, answers, strict=True)
            if isinstance(answer, Committed)
        ]
        assert len(winners) == 1
        assert sum(isinstance(answer, Conflict) for answer in answers) == 7
        table = await place.catalog.load(FLIGHTS)
        assert table.metadata == winners[0].metadata
    assert await place.catalog.current_location(FLIGHTS) == place.at(21)
    assert await place.hint() == "21"


@pytest.mark.parametrize("is_lost", [False, True])
async def test_a_foreign_file_in_the_place_of_the_next_version_is_a_conflict(
    place: Place, is_lost: bool
) -> None:
    table = await place.create()
    place.storage.before_create = lambda: place.put(place.at(2))
    place.storage.befalls = Fault.REQUEST_LOST if is_lost else None
    assert isinstance(await place.catalog.swap(snapshot_swap(table)), Conflict)


async def test_a_lost_answer_is_read_and_our_own_bytes_are_committed(place: Place) -> None:
    swap = snapshot_swap(await place.create())
    place.storage.befalls = Fault.LOST_REPLY
    assert committed(await place.catalog.swap(swap)).metadata_location == place.at(2)
    assert await place.hint() == "2"


async def test_a_resend_below_us_that_meets_our_own_bytes_is_committed(place: Place) -> None:
    swap = snapshot_swap(await place.create())
    place.storage.before_create = lambda: place.put(
        place.at(2), print_metadata_file(swap.metadata, place.at(2))
    )
    committed(await place.catalog.swap(swap))


async def test_equal_bytes_that_another_writer_could_have_written_are_unknown(
    place: Place,
) -> None:
    """Two operators set one property in one millisecond: one of them has not done it."""
    swap = build_swap(await place.create())
    place.storage.before_create = lambda: place.put(
        place.at(2), print_metadata_file(swap.metadata, place.at(2))
    )
    assert isinstance(await place.catalog.swap(swap), Unknown)


async def test_a_lost_request_is_unknown_and_may_land_late_once(place: Place) -> None:
    table = await place.create()
    late, again = snapshot_swap(table, 1), snapshot_swap(table, 2)
    place.storage.befalls = Fault.LANDS_LATE
    assert isinstance(await place.catalog.swap(late), Unknown)
    assert await place.catalog.current_location(FLIGHTS) == place.at(1)
    await place.storage.land_late()
    assert isinstance(await place.catalog.swap(again), Conflict)
    assert (await place.catalog.load(FLIGHTS)).metadata == late.metadata


async def test_a_late_request_cannot_land_once_the_next_attempt_has(place: Place) -> None:
    table = await place.create()
    late, again = snapshot_swap(table, 1), snapshot_swap(table, 2)
    place.storage.befalls = Fault.LANDS_LATE
    assert isinstance(await place.catalog.swap(late), Unknown)
    committed(await place.catalog.swap(again))
    with pytest.raises(AlreadyExistsError):
        await place.storage.land_late()
    assert (await place.catalog.load(FLIGHTS)).metadata == again.metadata


async def test_a_lost_answer_that_cannot_be_read_is_unknown(place: Place) -> None:
    table = await place.create()

    async def leave() -> None:
        place.storage.is_away = True

    place.storage.befalls, place.storage.after_create = Fault.LOST_REPLY, leave
    assert isinstance(await place.catalog.swap(snapshot_swap(table)), Unknown)


async def test_a_created_version_whose_folder_cannot_be_listed_is_unknown(place: Place) -> None:
    table = await place.create()

    async def leave() -> None:
        place.storage.is_away = True

    place.storage.after_create = leave
    answer = await place.catalog.swap(snapshot_swap(table))
    assert isinstance(answer, Unknown)
    assert "was created" in answer.cause


async def test_a_storage_that_is_away_has_surely_applied_nothing(place: Place) -> None:
    table = await place.create()
    place.storage.is_away = True
    with pytest.raises(CatalogUnavailableError):
        await place.catalog.swap(build_swap(table))
    with pytest.raises(CatalogUnavailableError):
        await place.catalog.current_location(FLIGHTS)
    place.storage.is_away = False
    committed(await place.catalog.swap(build_swap(table)))


# --- Versions that are used twice ----------------------------------------------------------------


async def test_a_version_that_was_cleaned_up_is_not_won_again_unnoticed(place: Place) -> None:
    """A writer that is far behind finds its base, and the next version deleted."""
    table = await place.create()
    await place.grown_on(table, 5)
    await place.storage.delete((place.at(2), place.at(3)))
    answer = await place.catalog.swap(snapshot_swap(table))
    assert isinstance(answer, Unknown)
    assert "v5.metadata.json" in answer.cause
    assert await place.catalog.current_location(FLIGHTS) == place.at(5)
    assert await place.hint() == "5"


async def test_a_base_that_is_gone_is_a_conflict(place: Place) -> None:
    table = await place.create()
    await place.grown_on(table, 5)
    await place.storage.delete((place.at(1), place.at(2)))
    assert isinstance(await place.catalog.swap(snapshot_swap(table)), Conflict)
    assert await place.catalog.current_location(FLIGHTS) == place.at(5)


async def test_a_table_that_is_dropped_while_its_next_version_is_created_is_unknown(
    place: Place,
) -> None:
    table = await place.create()
    place.storage.before_create = lambda: place.storage.delete((place.at(1),))
    assert isinstance(await place.catalog.swap(snapshot_swap(table)), Unknown)


async def test_a_version_that_exists_in_two_spellings_is_unknown(place: Place) -> None:
    table = await place.create()
    place.storage.before_create = lambda: place.put(place.at(2, ".gz.metadata.json"))
    answer = await place.catalog.swap(snapshot_swap(table))
    assert isinstance(answer, Unknown)
    assert "v2.gz.metadata.json" in answer.cause


async def test_a_version_that_a_renaming_engine_replaced_is_unknown(tmp_path: Path) -> None:
    place = Place(f"file://{tmp_path}", FailingCreates(LocalStorage()))
    table = await place.create()

    async def rename_over() -> None:
        await place.put(f"file://{tmp_path}/other")
        await asyncio.to_thread(os.rename, f"{tmp_path}/other", place.at(2)[len("file://") :])

    place.storage.after_create = rename_over
    answer = await place.catalog.swap(snapshot_swap(table))
    assert isinstance(answer, Unknown)
    assert "replaced" in answer.cause


@pytest.mark.parametrize("properties", [{}, {"write.metadata.compression-codec": "gzip"}])
async def test_a_base_of_a_later_table_of_the_name_is_a_conflict(
    place: Place, properties: dict[str, str]
) -> None:
    """A number does not say whose it is: the folder was deleted, and the name used again."""
    swap = snapshot_swap(await place.create())
    found = [info.location async for info in place.storage.list(f"{place.warehouse}/db/flights")]
    await place.storage.delete(found)
    later = build_table(warehouse=place.warehouse, properties=properties)
    await place.put(place.at(1), print_metadata_file(later.metadata, f"{place.at(1)}.gz"))
    assert isinstance(await place.catalog.swap(swap), Conflict)
    assert await place.catalog.current_location(FLIGHTS) == place.at(1)


# --- What is refused -----------------------------------------------------------------------------


async def test_an_object_store_is_read_only_unless_the_operator_vouches_for_it() -> None:
    place = Place("memory://bucket", FailingCreates(MemoryStorage()))
    table = await place.create()
    catalog = HadoopCatalog(warehouse=place.warehouse, storage=place.storage)
    assert await catalog.load(FLIGHTS) == table
    assert await catalog.list_tables(("db",)) == [FLIGHTS]
    refused = (
        catalog.swap(build_swap(table)),
        catalog.create_table(build_table("db.other", warehouse=place.warehouse)),
        catalog.register_table(FLIGHTS, table.metadata_location),
        catalog.create_namespace(("other",)),
        catalog.drop_namespace(("db",)),
        catalog.probe(),
    )
    for call in refused:
        with pytest.raises(SettingsError, match=r"hadoop\.no-other-writers"):
            await call
    assert await place.catalog.load(FLIGHTS) == table


async def test_a_local_disk_needs_no_word_of_the_operator(tmp_path: Path) -> None:
    storage = LocalStorage()
    for warehouse in (f"{tmp_path}/a", f"file:{tmp_path}/b", f"file://{tmp_path}/c/"):
        catalog = HadoopCatalog(warehouse=warehouse, storage=storage)
        await catalog.probe()
        table = build_table(warehouse=warehouse.rstrip("/"))
        await catalog.create_namespace(("db",))
        await catalog.create_table(table)
        committed(await catalog.swap(build_swap(await catalog.load(FLIGHTS))))
    await storage.close()


REFUSED = {
    "write.metadata.path": "memory://elsewhere",
    "write.metadata.compression-codec": "gzip",
}


@pytest.mark.parametrize("key", REFUSED)
async def test_a_property_that_moves_versions_is_refused(place: Place, key: str) -> None:
    table = await place.create()
    with pytest.raises(UnsupportedError, match=key):
        await place.catalog.swap(build_swap(table, properties={key: REFUSED[key]}))
    with pytest.raises(UnsupportedError, match=key):
        await place.create("db.other", {key: REFUSED[key]})
    assert await place.catalog.list_tables(("db",)) == [FLIGHTS]
    # Another engine has set it.
    metadata = build_swap(table, properties={key: REFUSED[key]}).metadata
    await place.put(place.at(2), print_metadata_file(metadata, place.at(2)))
    loaded = await place.catalog.load(FLIGHTS)
    with pytest.raises(UnsupportedError, match=key):
        await place.catalog.swap(build_swap(loaded, properties={"a": "b"}))
    with pytest.raises(UnsupportedError, match=key):
        await place.catalog.swap(
            replace(build_swap(loaded), metadata=replace(metadata, properties={}))
        )
    assert await place.catalog.current_location(FLIGHTS) == place.at(2)


async def test_a_table_that_lies_elsewhere_is_refused(place: Place) -> None:
    await place.catalog.create_namespace(("db",))
    elsewhere = replace(
        build_table(warehouse=place.warehouse),
        metadata=build_metadata(location=f"{place.warehouse}/elsewhere"),
    )
    with pytest.raises(UnsupportedError, match="elsewhere"):
        await place.catalog.create_table(elsewhere)
    await place.put(place.at(1), print_metadata_file(elsewhere.metadata, place.at(1)))
    with pytest.raises(UnsupportedError, match="elsewhere"):
        await place.catalog.swap(build_swap(await place.catalog.load(FLIGHTS)))
    assert await place.catalog.current_location(FLIGHTS) == place.at(1)


async def test_rename_and_drop_are_refused_with_what_to_do(place: Place) -> None:
    table = await place.create()
    with pytest.raises(UnsupportedError, match="cannot be renamed"):
        await place.catalog.rename_table(FLIGHTS, TableIdentifier(("db",), "trains"))
    with pytest.raises(UnsupportedError, match=f"purge db.flights.*`{place.warehouse}/db/flights`"):
        await place.catalog.drop_table(FLIGHTS)
    assert await place.catalog.load(FLIGHTS) == table
    absent = TableIdentifier(("db",), "absent")
    with pytest.raises(NoSuchTableError):
        await place.catalog.drop_table(absent)
    with pytest.raises(NoSuchTableError):
        await place.catalog.rename_table(absent, FLIGHTS)


# --- Creating and registering --------------------------------------------------------------------


async def test_create_may_be_repeated_and_another_table_of_the_name_is_refused(
    place: Place,
) -> None:
    table = build_table(warehouse=place.warehouse)
    await place.catalog.create_namespace(("db",))
    place.storage.befalls = Fault.LOST_REPLY
    with pytest.raises(CatalogUnavailableError):
        await place.catalog.create_table(table)
    await place.catalog.create_table(table)
    assert await place.hint() == "1"
    await place.catalog.create_table(table)
    with pytest.raises(TableAlreadyExistsError, match=r"db\.flights"):
        await place.catalog.create_table(build_table(warehouse=place.warehouse))
    loaded = await place.catalog.load(FLIGHTS)
    assert loaded.metadata == table.metadata
    committed(await place.catalog.swap(build_swap(loaded)))
    with pytest.raises(TableAlreadyExistsError, match=r"v2\.metadata\.json"):
        await place.catalog.create_table(table)


async def test_of_two_concurrent_creates_of_one_name_exactly_one_returns(place: Place) -> None:
    await place.catalog.create_namespace(("db",))
    tables = [build_table(warehouse=place.warehouse) for _ in range(2)]
    outcomes = await asyncio.gather(
        *(place.catalog.create_table(table) for table in tables), return_exceptions=True
    )
    (refused,) = [one for one in outcomes if one is not None]
    assert isinstance(refused, TableAlreadyExistsError)
    winner = tables[outcomes.index(None)]
    assert (await place.catalog.load(FLIGHTS)).metadata == winner.metadata


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("inner/metadata/v1.metadata.json", "inner/"),
        (".frazil-namespace", "frazil-namespace"),
        ("notes.txt", "notes"),
    ],
)
async def test_a_folder_that_is_in_use_becomes_no_table(place: Place, name: str, why: str) -> None:
    await place.catalog.create_namespace(("db",))
    await place.put(f"{place.warehouse}/db/flights/{name}")
    with pytest.raises(TableAlreadyExistsError, match=why):
        await place.catalog.create_table(build_table(warehouse=place.warehouse))
    with pytest.raises(NoSuchTableError):
        await place.catalog.load(FLIGHTS)


async def test_a_folder_of_another_catalogs_table_becomes_none(place: Place) -> None:
    await place.catalog.create_namespace(("db",))
    await place.put(f"{place.folder}/00000-0b1a3c9e-aa7b-4d3f-8f3e-1f2f3f4f5f6f.metadata.json")
    with pytest.raises(TableAlreadyExistsError, match="another catalog"):
        await place.catalog.create_table(build_table(warehouse=place.warehouse))


async def test_data_that_is_there_before_the_table_does_not_matter(place: Place) -> None:
    await place.put(f"{place.warehouse}/db/flights/data/a.parquet")
    await place.create()


async def test_registered_metadata_in_the_tables_own_folder_becomes_its_first_version(
    place: Place,
) -> None:
    await place.catalog.create_namespace(("db",))
    table = build_table(warehouse=place.warehouse)
    content = print_metadata_file(table.metadata, table.metadata_location)
    await place.put(table.metadata_location, content)
    for _ in range(2):
        registered = await place.catalog.register_table(FLIGHTS, table.metadata_location)
        assert registered == LoadedTable(FLIGHTS, table.metadata, place.at(1))
        assert await place.catalog.load(FLIGHTS) == registered
    assert await place.storage.get(table.metadata_location) == content
    second = committed(await place.catalog.swap(build_swap(registered)))
    assert await place.catalog.register_table(FLIGHTS, place.at(2)) == second
    with pytest.raises(TableAlreadyExistsError):
        await place.catalog.register_table(FLIGHTS, table.metadata_location)
    with pytest.raises(UnsupportedError, match="lies at"):
        await place.catalog.register_table(TableIdentifier(("db",), "trains"), place.at(1))


# --- Namespaces ----------------------------------------------------------------------------------


async def test_tables_and_namespaces_are_folders(place: Place) -> None:
    for name in ("db.trains", "db.flights", "db.deep.er.ships", "other.cars"):
        await place.create(name)
    await place.put(f"{place.warehouse}/db/shared/metadata/00000-x.metadata.json")
    await place.put(f"{place.warehouse}/notes.txt")
    names = [(one.namespace, one.name) for one in await place.catalog.list_tables(("db",))]
    assert names == [(("db",), "flights"), (("db",), "trains")]
    assert await place.catalog.list_namespaces() == [
        ("db",),
        ("db", "deep"),
        ("db", "deep", "er"),
        ("other",),
    ]
    for absent in (("db", "flights"), ("d",), ("absent",), ("db", "shared")):
        with pytest.raises(NoSuchNamespaceError):
            await place.catalog.list_tables(absent)


async def test_a_namespace_of_another_client_needs_no_mark(place: Place) -> None:
    table = build_table(warehouse=place.warehouse)
    await place.put(place.at(1), print_metadata_file(table.metadata, place.at(1)))
    assert await place.catalog.list_tables(("db",)) == [FLIGHTS]
    assert await place.catalog.list_namespaces() == [("db",)]
    await place.catalog.create_namespace(("db",))
    assert await place.catalog.list_namespaces() == [("db",)]


async def test_a_namespace_is_dropped_once_it_is_empty(place: Place) -> None:
    await place.catalog.create_namespace(("a", "b"))
    with pytest.raises(NamespaceNotEmptyError):
        await place.catalog.drop_namespace(("a",))
    await place.catalog.drop_namespace(("a", "b"))
    assert await place.catalog.list_namespaces() == []
    with pytest.raises(NoSuchNamespaceError):
        await place.catalog.drop_namespace(("a", "b"))
    await place.create()
    with pytest.raises(NamespaceNotEmptyError):
        await place.catalog.drop_namespace(("db",))


async def test_a_namespace_keeps_no_properties(place: Place) -> None:
    await place.catalog.create_namespace(("db",))
    await place.catalog.set_namespace_properties(("db",), {}, removed=("a",))
    with pytest.raises(UnsupportedError, match="no properties"):
        await place.catalog.set_namespace_properties(("db",), {"a": "b"})
    assert await place.catalog.namespace_properties(("db",)) == {}


async def test_no_namespace_is_made_in_the_folder_of_a_table(place: Place) -> None:
    await place.create()
    for inside in (("db", "flights"), ("db", "flights", "deep")):
        with pytest.raises(TableAlreadyExistsError, match="folder of a table"):
            await place.catalog.create_namespace(inside)
        with pytest.raises(NoSuchNamespaceError):
            await place.catalog.create_table(
                build_table(".".join((*inside, "x")), warehouse=place.warehouse)
            )


@pytest.mark.parametrize(
    "level", ["..", ".", ".hidden", "a/b", "a\\b", "a:b", "", "a\nb", "\ud800", "x" * 256]
)
async def test_a_name_that_no_folder_can_have_is_refused(place: Place, level: str) -> None:
    with pytest.raises(UnsupportedError):
        await place.catalog.create_namespace((level,))
    with pytest.raises(NoSuchTableError):
        await place.catalog.load(TableIdentifier(("db",), level))
    await place.catalog.create_namespace(("db",))
    table = replace(
        build_table(warehouse=place.warehouse), identifier=TableIdentifier(("db",), level)
    )
    with pytest.raises(UnsupportedError):
        await place.catalog.create_table(table)


async def test_the_probe_passes_and_leaves_nothing(place: Place) -> None:
    await place.catalog.probe()
    assert [found async for found in place.storage.list(place.warehouse)] == []
    assert await place.catalog.list_namespaces() == []
