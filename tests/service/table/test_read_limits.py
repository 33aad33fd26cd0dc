"""A table whose files are too large stops alone, says why, and goes on once they fit."""

from __future__ import annotations

from committer.iceberg.manifest.manifest_list import encode_manifest_list
from committer.ports.pointer_swap import LoadedTable
from committer.storage.bounded import BoundedStorage, ReadLimit, ReadLimits
from tests.support.builders.request_builders import SYNC, build_request
from tests.support.builders.table_builders import build_table
from tests.support.memory.memory_storage import MemoryStorage
from tests.support.service.outside import add_table
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True
KIB = 1024
LIMITS = ReadLimits(
    ReadLimit(40 * KIB, "expire snapshots"),
    ReadLimit(40 * KIB, "rewrite manifests"),
    ReadLimit(4_000 * KIB, "rewrite manifests to smaller ones"),
)
CONDITION = "table db.flights"


class Tables:
    """A committer that is bounded, and the files of its tables, which others write."""

    def __init__(self) -> None:
        self.files = MemoryStorage()
        self.harness = ServiceHarness(wrap=lambda _: BoundedStorage(self.files, LIMITS))

    async def replace(self, location: str, content: bytes) -> bytes:
        """Put other content in the place of a file's; return what was there."""
        before = await self.files.get(location)
        await self.files.replace(location, content, etag=(await self.files.head(location)).etag)
        return before

    async def publish(self, table: LoadedTable, producer: str) -> None:
        await self.harness.publish(build_request(table, producer=producer))

    async def landed(self, producer: str) -> bool:
        return bool(await self.harness.receipts(producer))


async def with_two_tables() -> tuple[Tables, LoadedTable, LoadedTable]:
    tables = Tables()
    large = await tables.harness.create_table()
    other = await add_table(tables.harness, build_table("db.other", warehouse="memory://warehouse"))
    return tables, large, other


async def test_a_metadata_file_beyond_the_limit_stops_its_table_alone() -> None:
    tables, large, other = await with_two_tables()
    location = large.metadata_location
    size_bytes = 40 * KIB + 1
    fits = await tables.replace(location, b"{" + b" " * (size_bytes - 1))
    async with tables.harness.running():
        await tables.publish(large, "waits")
        await tables.publish(other, "lands")
        await tables.harness.settle(120.0)
        assert tables.harness.health.conditions == {
            CONDITION: f"`{location}` has {size_bytes} bytes, and at most {40 * KIB} are read:"
            " expire snapshots"
        }
        assert not tables.harness.health.unreachable
        assert [await tables.landed(one) for one in ("waits", "lands")] == [False, True]
        await tables.replace(location, fits)
        await tables.harness.settle(120.0)
        assert tables.harness.health.conditions == {}
        assert await tables.landed("waits")
    assert await tables.harness.quarantined() == []


async def test_a_manifest_list_that_inflates_beyond_the_limit_stops_its_table_alone() -> None:
    tables, large, other = await with_two_tables()
    async with tables.harness.running():
        await tables.publish(large, "first")
        await tables.harness.settle(60.0)
    head = (await tables.harness.load()).current_snapshot
    assert head is not None
    assert head.manifest_list is not None
    content = encode_manifest_list(
        [b" " * KIB] * 41,
        format_version=2,
        snapshot_id=head.snapshot_id,
        parent_snapshot_id=None,
        sequence_number=1,
        first_row_id=None,
        sync=SYNC,
        extra_metadata={},
    )
    assert len(content) < 10 * KIB
    fits = await tables.replace(head.manifest_list, content)
    async with tables.harness.running():
        await tables.publish(large, "waits")
        await tables.publish(other, "lands")
        await tables.harness.settle(120.0)
        assert tables.harness.health.conditions == {
            CONDITION: f"`{head.manifest_list}` has {len(content)} bytes, and inflates to more than"
            f" the {40 * KIB} that are read: rewrite manifests"
        }
        assert [await tables.landed(one) for one in ("waits", "lands")] == [False, True]
        await tables.replace(head.manifest_list, fits)
        await tables.harness.settle(120.0)
        assert tables.harness.health.conditions == {}
        assert await tables.landed("waits")
    assert await tables.harness.quarantined() == []


async def test_a_table_that_grows_stops_before_it_writes_what_it_could_not_read_again() -> None:
    tables, large, other = await with_two_tables()
    async with tables.harness.running():
        for number in range(200):
            await tables.publish(large, f"producer-{number:060}")
            if number % 4 == 0:  # it stays well below the limit
                await tables.publish(other, f"other-{number}")
            await tables.harness.settle(1.0)
            if CONDITION in tables.harness.health.conditions:
                break
        await tables.publish(other, "lands")
        await tables.harness.settle(60.0)
        assert tables.harness.health.conditions[CONDITION].endswith(": expire snapshots")
        assert await tables.landed("lands")
    loaded = await tables.harness.catalog.inner.load(large.identifier)
    assert len(await tables.files.get(loaded.metadata_location)) <= 40 * KIB
    assert await tables.harness.quarantined() == []
