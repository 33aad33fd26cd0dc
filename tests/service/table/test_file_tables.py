"""A committer on file system tables: the catalog names the metadata files, and they stay."""

from __future__ import annotations

from committer.catalog.hadoop.hadoop_catalog import HadoopCatalog
from committer.iceberg.metadata.table_metadata import print_metadata_file
from committer.iceberg.updates.metadata_update import SetProperties
from committer.iceberg.values.locations import version_in_name
from committer.ports.storage import NewObject
from committer.request.table_identifier import TableIdentifier
from committer.service.admin.orphan_finder import OrphanFinder, Sources
from committer.service.settle.high_water_mark_store import HighWaterMarkStore
from committer.storage.inbox.replays import Replays
from tests.support.builders.request_builders import build_request
from tests.support.builders.table_builders import build_swap
from tests.support.faults.failing_creates import FailingCreates
from tests.support.faults.faulty_catalog import Fault
from tests.support.service.outside import foreign_commit
from tests.support.service.service_harness import INBOX, WAREHOUSE, ServiceHarness

VIRTUAL_TIME = True

NAME = TableIdentifier.parse("db.flights")
FOLDER = f"{WAREHOUSE}/db/flights/metadata"
DAY_MS = 86_400_000
# The log holds two versions; a catalog with a pointer would have the others deleted.
SHORT_LOG = {
    "write.metadata.previous-versions-max": "2",
    "write.metadata.delete-after-commit.enabled": "true",
}


def open_harness() -> tuple[ServiceHarness, FailingCreates]:
    """Open a service on file system tables, and the storage that its catalog writes to."""
    harness = ServiceHarness()
    storage = FailingCreates(harness.storage.inner)
    harness.catalog.inner = HadoopCatalog(
        warehouse=WAREHOUSE, storage=storage, no_other_writers=True
    )
    return harness, storage


async def versions(harness: ServiceHarness) -> list[int]:
    names = await harness.storage.inner.names(FOLDER, starts_with="v")
    return sorted(number for one in names if (number := version_in_name(one)) is not None)


async def test_each_commit_is_the_next_version_and_none_is_deleted() -> None:
    harness, _ = open_harness()
    table = await harness.create_table(properties=SHORT_LOG)
    async with harness.running():
        for epoch in range(6):
            await harness.publish(build_request(table, epoch=epoch))
            await harness.settle(4.0)
    assert await versions(harness) == [1, 2, 3, 4, 5, 6, 7]
    loaded = await harness.catalog.inner.load(NAME)
    assert loaded.metadata_location == f"{FOLDER}/v7.metadata.json"
    log = [one.metadata_file for one in loaded.metadata.metadata_log]
    assert log == [f"{FOLDER}/v{number}.metadata.json" for number in (5, 6)]
    assert len(await harness.live_files()) == 6
    assert await harness.outstanding() == []


async def test_a_steady_commit_loads_nothing() -> None:
    harness, _ = open_harness()
    table = await harness.create_table()
    async with harness.running():
        for epoch in range(3):
            harness.catalog.calls.clear()
            await harness.publish(build_request(table, epoch=epoch))
            await harness.settle(1.0)
    assert dict(harness.catalog.calls) == {"swap": 1}


async def test_a_commit_beside_another_engine_lands_on_its_version() -> None:
    harness, _ = open_harness()
    table = await harness.create_table()
    async with harness.running():
        await harness.publish(build_request(table, epoch=0))
        await harness.settle(4.0)
        await foreign_commit(harness, table, SetProperties({"by": "another"}))
        await harness.publish(build_request(table, epoch=1))
        await harness.settle(8.0)
    metadata = await harness.load()
    assert metadata.properties["by"] == "another"
    assert len(metadata.snapshots) == 2
    assert await versions(harness) == [1, 2, 3, 4]
    assert await harness.outstanding() == []


async def test_lost_answers_and_late_landings_commit_each_request_once() -> None:
    for fault in (Fault.LOST_REPLY, Fault.REQUEST_LOST, Fault.LANDS_LATE):
        harness, storage = open_harness()
        table = await harness.create_table()
        async with harness.running():
            await harness.publish(build_request(table, epoch=0))
            await harness.settle(4.0)
            storage.befalls = fault
            if fault is Fault.LANDS_LATE:
                storage.after_create = storage.land_late
            await harness.publish(build_request(table, epoch=1))
            await harness.settle(8.0)
        assert len((await harness.load()).snapshots) == 2, fault
        assert len(await harness.live_files()) == 2, fault
        assert await harness.outstanding() == [], fault


async def test_a_version_that_is_won_again_ends_no_request() -> None:
    """The committer is far behind: its base is there, and what followed was cleaned up."""
    harness, storage = open_harness()
    table = await harness.create_table()
    async with harness.running():
        await harness.publish(build_request(table, epoch=0))
        await harness.settle(4.0)
        for number in range(3):
            await foreign_commit(harness, table, SetProperties({"number": str(number)}))
        await storage.inner.delete([f"{FOLDER}/v{number}.metadata.json" for number in (3, 4)])
        await harness.publish(build_request(table, epoch=1))
        await harness.settle(20.0)
    assert await versions(harness) == [1, 2, 3, 5, 6]
    assert (await harness.load()).properties["number"] == "2"
    assert len(await harness.live_files()) == 2
    assert await harness.outstanding() == []


async def test_a_property_that_moves_versions_stops_the_table_and_keeps_its_requests() -> None:
    harness, storage = open_harness()
    table = await harness.create_table()
    loaded = await harness.catalog.inner.load(NAME)
    async with harness.running():
        await harness.publish(build_request(table, epoch=0))
        await harness.settle(4.0)
        await _set_gzip(harness, storage)
        await harness.publish(build_request(table, epoch=1))
        await harness.settle(20.0)
        assert len(await harness.outstanding()) == 1
    assert loaded.metadata.table_uuid == (await harness.load()).table_uuid


async def _set_gzip(harness: ServiceHarness, storage: FailingCreates) -> None:
    """Set the codec as an engine does that Frazil does not stop."""
    current = await harness.catalog.inner.load(NAME)
    swap = build_swap(current, properties={"write.metadata.compression-codec": "gzip"})
    location = f"{FOLDER}/v3.metadata.json"
    content = print_metadata_file(swap.metadata, location)
    await storage.inner.create([NewObject(location, content)])


# --- The orphan search ---------------------------------------------------------------------------


async def test_the_orphan_search_removes_what_fell_off_the_log_and_no_version_that_counts() -> None:
    harness, storage = open_harness()
    table = await harness.create_table(properties=SHORT_LOG)
    async with harness.running():
        for epoch in range(6):
            await harness.publish(build_request(table, epoch=epoch))
            await harness.settle(4.0)
    harness.world.skew_ms += 4 * DAY_MS
    search = await _search(harness)
    # What has come since the table was read.
    later = ("v6.gz.metadata.json", "v8.metadata.json", "left-m0.avro")
    await storage.inner.create([NewObject(f"{FOLDER}/{name}", b"left") for name in later])
    found = [one async for one in search.find(before_ms=harness.world.now_ms() + DAY_MS)]
    stays = {one.location.rpartition("/")[2] for one in found if one.why_it_stays}
    assert stays == {"v6.gz.metadata.json", "v8.metadata.json", "version-hint.text"}
    await storage.inner.delete([f"{FOLDER}/{name}" for name in later[:2]])
    removed = await search.remove(found)
    assert {one.location.rpartition("/")[2] for one in removed} == {
        *(f"v{number}.metadata.json" for number in (1, 2, 3, 4)),
        "left-m0.avro",
    }
    assert (
        await harness.catalog.inner.load(NAME)
    ).metadata_location == f"{FOLDER}/v7.metadata.json"


async def _search(harness: ServiceHarness) -> OrphanFinder:
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
