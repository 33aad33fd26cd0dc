"""Unnamed objects are found, and removed on request; objects that are or may be named stay."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from uuid import uuid4

import pytest

from committer.errors import UnsupportedError
from committer.iceberg.metadata.snapshot import MAIN
from committer.iceberg.updates.metadata_update import RemoveSnapshotRef, SetProperties, Update
from committer.plan.batch.adopted_paths import ADOPT_LOCATIONS_PROPERTY
from committer.plan.cleanup.orphan_search import Kind
from committer.ports.pointer_swap import LoadedTable
from committer.ports.storage import NewObject
from committer.request.request_format import EncodedRequest
from committer.request.table_identifier import TableIdentifier
from committer.service.admin.orphan_finder import Orphan, OrphanFinder, Sources
from committer.service.settle.high_water_mark_store import HighWaterMarkStore
from committer.storage.inbox.inbox import QuarantineRecord
from committer.storage.inbox.journal import GarbageEntry
from committer.storage.inbox.replays import Replays
from tests.support.builders.request_builders import (
    build_file,
    build_line,
    build_manifest,
    build_request,
    seal,
)
from tests.support.faults.faulty_catalog import FaultyCatalog
from tests.support.memory.requirements_catalog import RequirementsCatalog
from tests.support.service.outside import foreign_commit
from tests.support.service.service_harness import INBOX, WAREHOUSE, ServiceHarness

VIRTUAL_TIME = True

NAME = TableIdentifier.parse("db.flights")
DAY_MS = 86_400_000


class Yard:
    """A table that was committed to, in which files lie about."""

    def __init__(self) -> None:
        self.harness = ServiceHarness()
        self.epochs = count()

    async def open(self, properties: dict[str, str] | None = None) -> LoadedTable:
        self.table = await self.harness.create_table(properties=properties)
        async with self.harness.running():
            for _ in range(3):
                await self.publish(build_request(self.table, epoch=next(self.epochs)))
                await self.harness.settle(4.0)
        return self.table

    async def publish(self, sealed: EncodedRequest) -> None:
        """Publish with the files that the request names."""
        await self.drop(path_of(self.table, sealed))
        await self.harness.publish(sealed)

    async def drop(self, *names: str) -> list[str]:
        """Write objects, by their location or their name below the table's."""
        folder = f"{self.table.metadata.location}/"
        locations = [one if "://" in one else folder + one for one in names]
        await self.harness.storage.inner.create([NewObject(one, b"left") for one in locations])
        return locations

    async def swap_in(self, update: Update) -> None:
        """Commit as another engine."""
        await foreign_commit(self.harness, self.table, update)

    def later(self) -> None:
        self.harness.world.skew_ms += 4 * DAY_MS

    async def search(self) -> OrphanFinder:
        harness = self.harness
        sources = Sources(
            harness.catalog,
            harness.storage.inner,
            Replays(harness.storage.inner, INBOX),
            harness.journal,
            HighWaterMarkStore(harness.high_water_marks),
            harness.world,
            INBOX,
        )
        search = await OrphanFinder.of(sources, NAME)
        await search.look_around()
        await search.refresh()
        return search

    async def found(self, search: OrphanFinder | None = None) -> list[Orphan]:
        search = search or await self.search()
        before_ms = await search.storage_now_ms() - 3 * DAY_MS
        return [one async for one in search.find(before_ms=before_ms)]

    async def objects(self, prefix: str = WAREHOUSE) -> set[str]:
        return {one.location async for one in self.harness.storage.inner.list(prefix)}


def path_of(table: LoadedTable, sealed: EncodedRequest) -> str:
    """Return the one file that a request names."""
    return build_file(table.metadata, sealed.request.attempt).file_path


def adopting(table: LoadedTable, path: str) -> EncodedRequest:
    """Build a request for a file that existed before."""
    line = build_line(table, producer="adopter").model_copy(update={"adopt_existing": True})
    file = replace(build_file(table.metadata, line.attempt), file_path=path)
    return seal(line, [build_manifest(table.metadata, [file])])


def locations(found: list[Orphan]) -> set[str]:
    return {one.location for one in found}


# --- The report ----------------------------------------------------------------------------------


async def test_what_nothing_names_is_found_with_its_kind_and_nothing_else() -> None:
    yard = Yard()
    await yard.open()
    dropped = await yard.drop(
        "data/carrier=AA/00000-left.parquet",
        "metadata/00009-left.metadata.json",
        "metadata/snap-1-1-left.avro",
        "metadata/left-m0.avro",
        "metadata/left.stats",
        "data/_temporary/0/left.tmp",
    )
    yard.later()
    found = await yard.found()
    assert locations(found) == set(dropped)
    assert sorted(one.kind for one in found) == sorted(Kind)
    assert {one.location for one in found if one.why_it_stays} == {dropped[-1]}


async def test_metadata_files_of_a_catalog_that_writes_them_are_never_removed() -> None:
    yard = Yard()
    harness = yard.harness
    inner = RequirementsCatalog(storage=harness.storage.inner, world=harness.world)
    harness.catalog = FaultyCatalog(inner)
    await yard.open()
    metadata_file, left = await yard.drop("metadata/00009-left.metadata.json", "metadata/l-m0.avro")
    yard.later()
    search = await yard.search()
    found = await yard.found(search)
    assert {one.location for one in found if one.why_it_stays} == {metadata_file}
    assert [one.location for one in await search.remove(found)] == [left]


async def test_what_is_young_is_not_told() -> None:
    yard = Yard()
    await yard.open()
    yard.later()
    await yard.drop("data/left.parquet")
    assert await yard.found() == []


@pytest.mark.parametrize("where", ["inbox", "quarantine", "replayed"])
async def test_files_of_a_request_that_has_not_ended_are_not_orphans(where: str) -> None:
    yard = Yard()
    table = await yard.open()
    sealed = build_request(table, producer="late", epoch=7)
    (path,) = await yard.drop(path_of(table, sealed))
    harness = yard.harness
    key = sealed.request.inbox_key
    record = QuarantineRecord(key=key, reason="x", message="y", quarantined_at_ms=0)
    match where:
        case "inbox":
            await harness.inbox.put(sealed)
        case "quarantine":
            await harness.quarantine.put(record, sealed.content)
        case _:
            await harness.inbox.put(sealed.replayed(harness.world.uuid()))
    yard.later()
    assert await yard.found() == []
    for folder in ("inbox", "quarantine"):
        left = [one.location async for one in harness.storage.inner.list(f"{INBOX}/{folder}/")]
        await harness.storage.inner.delete(left)
    assert locations(await yard.found()) == {path}


async def test_files_that_were_there_before_and_wait_to_be_adopted_are_not_orphans() -> None:
    yard = Yard()
    table = await yard.open()
    (path,) = await yard.drop("data/imported.parquet")
    yard.later()
    assert locations(await yard.found()) == {path}
    await yard.harness.inbox.put(adopting(table, path))
    assert await yard.found() == []


async def test_files_that_wait_for_a_dropped_table_stay_in_the_folder_of_a_new_one() -> None:
    yard = Yard()
    table = await yard.open()
    line = build_line(table).model_copy(update={"table_uuid": uuid4()})
    manifest = build_manifest(table.metadata, [build_file(table.metadata, line.attempt)])
    dropped = seal(line, [manifest])
    await yard.harness.inbox.put(dropped)
    await yard.drop(path_of(table, dropped))
    yard.later()
    (found,) = await yard.found()
    assert found.why_it_stays == "a file of this name is in use, or waits to be"


async def test_a_file_of_a_waiting_attempt_stays_although_its_request_does_not_name_it() -> None:
    yard = Yard()
    table = await yard.open()
    sealed = build_request(table, producer="late", epoch=7)
    await yard.harness.inbox.put(sealed)
    await yard.drop(f"data/00001-{sealed.request.attempt}.parquet")
    yard.later()
    (found,) = await yard.found()
    assert found.why_it_stays is not None


async def test_what_a_note_of_upkeep_names_is_left_to_upkeep() -> None:
    yard = Yard()
    table = await yard.open()
    (path,) = await yard.drop("metadata/noted-m0.avro")
    await yard.harness.journal.put(
        GarbageEntry(
            entry_id=yard.harness.world.uuid(),
            table_uuid=table.metadata.require_uuid(),
            proven_in="",
            written_at_ms=0,
            own_files=(),
            manifests=(path,),
            bases=("memory://warehouse/base",),
            after_sequence_number=0,
        )
    )
    yard.later()
    assert await yard.found() == []


async def test_a_file_of_a_live_ones_name_is_told_and_stays() -> None:
    """The folder may be the same by another path: a link, a mount, an alias of the bucket."""
    yard = Yard()
    await yard.open()
    live = (await yard.harness.live_files())[0].file_path
    (copy,) = await yard.drop(f"elsewhere/{live.rpartition('/')[2]}")
    yard.later()
    search = await yard.search()
    (found,) = await yard.found(search)
    assert (found.location, found.why_it_stays is None) == (copy, False)
    assert await search.remove([found]) == []
    assert copy in await yard.objects()


# --- Other tables --------------------------------------------------------------------------------


async def test_another_tables_folder_within_is_not_looked_at() -> None:
    yard = Yard()
    table = await yard.open()
    inner = await yard.harness.create_table("db.flights.inner")
    assert inner.metadata.location.startswith(table.metadata.location)
    await yard.harness.storage.inner.create(
        [NewObject(f"{inner.metadata.location}/data/foreign.parquet", b"")]
    )
    yard.later()
    assert await yard.found() == []


async def test_a_folder_that_another_table_writes_to_is_not_looked_at() -> None:
    yard = Yard()
    shared = f"{WAREHOUSE}/shared"
    await yard.open({"write.data.path": shared})
    await yard.harness.create_table("db.other", properties={"write.data.path": f"{shared}/"})
    await yard.drop(f"{shared}/whose.parquet")
    yard.later()
    search = await yard.search()
    assert (await search.look_around()).shared == (shared,)
    assert await yard.found(search) == []


async def test_a_folder_from_which_another_table_adopts_files_is_not_looked_at() -> None:
    yard = Yard()
    await yard.open()
    (adopted, left) = await yard.drop("data/old/adopted.parquet", "data/left.parquet")
    folder = adopted.rpartition("/")[0]
    await yard.harness.create_table("db.other", properties={ADOPT_LOCATIONS_PROPERTY: folder})
    yard.later()
    assert locations(await yard.found()) == {left}


async def test_an_own_folder_outside_the_location_is_looked_at_and_said_to_be_outside() -> None:
    yard = Yard()
    await yard.open({"write.data.path": f"{WAREHOUSE}/apart"})
    (path,) = await yard.drop(f"{WAREHOUSE}/apart/left.parquet")
    yard.later()
    (found,) = await yard.found()
    assert (found.location, found.is_outside) == (path, True)


async def test_a_table_that_nobody_can_read_stops_the_report() -> None:
    yard = Yard()
    await yard.open()
    other = await yard.harness.create_table("db.other")
    await yard.harness.storage.inner.delete([other.metadata_location])
    with pytest.raises(UnsupportedError, match=r"db\.other"):
        await yard.search()


# --- Removing ------------------------------------------------------------------------------------


async def test_what_is_removed_is_gone_and_the_table_is_whole() -> None:
    yard = Yard()
    await yard.open()
    dropped = await yard.drop("data/left.parquet", "metadata/left-m0.avro")
    before = await yard.objects()
    yard.later()
    search = await yard.search()
    removed = await search.remove(await yard.found(search))
    assert locations(removed) == set(dropped)
    assert await yard.objects() == before - set(dropped)
    assert len(await yard.harness.live_files()) == 3


async def test_what_somebody_came_to_name_since_the_report_stays() -> None:
    yard = Yard()
    table = await yard.open()
    landing = build_request(table, producer="other")
    landed = path_of(table, landing)
    path, _, gone = await yard.drop("data/a.parquet", landed, "data/c.parquet")
    yard.later()
    search = await yard.search()
    found = await yard.found(search)
    assert len(found) == 3
    await yard.harness.inbox.put(adopting(table, path))
    async with yard.harness.running():
        await yard.harness.publish(landing)
        await yard.harness.settle(1.0)
    removed = await search.remove(found)
    assert locations(removed) == {gone}
    assert {path, landed} <= await yard.objects()


@pytest.mark.parametrize("reason", ["unreadable", "frozen", "gc", "put back"])
async def test_nothing_is_removed_where_somebody_may_need_it(reason: str) -> None:
    yard = Yard()
    table = await yard.open()
    await yard.drop("data/left.parquet")
    yard.later()
    match reason:
        case "unreadable":
            sealed = build_request(table, producer="late", epoch=7)
            await yard.harness.storage.inner.create(
                [NewObject(f"{INBOX}/inbox/{sealed.request.inbox_key}", b"{}\n")]
            )
        case "gc":
            await yard.swap_in(SetProperties({"gc.enabled": "false"}))
        case "put back":
            catalog = yard.harness.catalog.inner
            older = (await catalog.load(NAME)).metadata.metadata_log[1].metadata_file
            await catalog.drop_table(NAME)
            await catalog.register_table(NAME, older)
        case _:
            await yard.swap_in(RemoveSnapshotRef(MAIN))
    search = await yard.search()
    found = await yard.found(search)
    with pytest.raises(UnsupportedError, match="nothing more is removed"):
        await search.remove(found)
    assert locations(found) <= await yard.objects()


async def test_a_file_of_checksums_is_an_orphan_where_its_file_is_named_by_nothing() -> None:
    yard = Yard()
    await yard.open()
    loaded = await yard.harness.catalog.load(NAME)
    current = loaded.metadata_location.rpartition("/")[2]
    (gone,) = await yard.drop("metadata/.00099-gone.metadata.json.crc")
    (kept,) = await yard.drop(f"metadata/.{current}.crc")
    yard.later()
    search = await yard.search()
    now_ms = yard.harness.world.now_ms()
    found = {one.location: one async for one in search.find(before_ms=now_ms)}
    assert kept not in found
    assert found[gone].kind is Kind.METADATA_FILE
    assert [one.location for one in await search.remove(list(found.values()))] == [gone]
