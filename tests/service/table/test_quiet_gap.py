"""Other engines beside a committer under full load: they get through, and it hardly waits.

The other engine is a slow one: two seconds from its read to its swap, four more tries after 100,
200, 400 and 800 ms as Iceberg has them by default, then the whole operation anew.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import count
from math import inf

import pytest

from committer.iceberg.metadata.snapshot import MAIN, Snapshot, SnapshotRef
from committer.iceberg.updates.metadata_update import AddSnapshot, SetSnapshotRef, Update
from committer.plan.ledger.quiet_gap import GapPolicy
from committer.ports.pointer_swap import Committed, LoadedTable
from committer.ports.storage import Storage
from committer.request.table_identifier import TableIdentifier
from tests.support.builders.flights import foreign_swap
from tests.support.builders.request_builders import build_request
from tests.support.faults.stopping_storage import StoppingStorage
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True

NAME = TableIdentifier.parse("db.flights")
COMMIT_S = 0.2
FOREIGN_S = 2.0
RETRIES = 4


@pytest.fixture(autouse=True)
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep all work on the loop: virtual time does not count for threads."""
    monkeypatch.setattr("committer.service.tasks.steps.OFF_LOOP_BYTES", 10**9)


def slow(inner: Storage) -> StoppingStorage:
    storage = StoppingStorage(inner, lambda kind, locations: False)
    storage.delay_s = COMMIT_S
    return storage


async def open_harness(
    gap: GapPolicy | None = None, properties: dict[str, str] | None = None
) -> tuple[ServiceHarness, LoadedTable]:
    harness = ServiceHarness(wrap=slow)
    harness.policy = replace(harness.policy, gap=gap or GapPolicy())
    return harness, await harness.create_table(properties=properties)


class OtherEngine:
    """Commits a snapshot of its own, the slow way."""

    def __init__(self, harness: ServiceHarness) -> None:
        self._catalog = harness.catalog.inner
        self._storage = harness.storage.inner
        self._ids = count(1)
        self.operations = 0

    async def operation(self) -> bool:
        """Run one operation with its retries; return False if it gave up."""
        self.operations += 1
        for attempt in range(RETRIES + 1):
            if attempt:
                await asyncio.sleep(0.1 * 2 ** (attempt - 1))
            table = await self._catalog.load(NAME)
            await asyncio.sleep(FOREIGN_S)
            swap = foreign_swap(table, *self._append(table))
            await self._storage.create(self._catalog.objects_before(swap))
            if isinstance(await self._catalog.swap(swap), Committed):
                return True
        return False

    async def until_landed(self) -> None:
        """Retry as a user does: the job fails, and runs again."""
        while not await self.operation():
            pass

    def _append(self, table: LoadedTable) -> tuple[Update, Update]:
        metadata = table.metadata
        head = metadata.current_snapshot
        assert head is not None
        snapshot = Snapshot(
            snapshot_id=next(self._ids),
            parent_snapshot_id=head.snapshot_id,
            sequence_number=metadata.last_sequence_number + 1,
            timestamp_ms=metadata.last_updated_ms,
            manifest_list=head.manifest_list,
            summary={"operation": "append"},
            schema_id=0,
        )
        return AddSnapshot(snapshot), SetSnapshotRef(MAIN, SnapshotRef(snapshot.snapshot_id))


async def full_load(harness: ServiceHarness, table: LoadedTable) -> None:
    """Publish without end, so that a request always waits."""
    for epoch in count():
        await harness.publish(build_request(table, epoch=epoch))
        await asyncio.sleep(0.1)


async def seconds_to_land(
    harness: ServiceHarness, table: LoadedTable, *, patience_s: float
) -> list[float]:
    """Return how long each of three foreign commits takes beside full load, each started at another
    time of the committer's round; the first one has a quiet table.
    """
    engine, taken = OtherEngine(harness), list[float]()
    async with harness.running():
        await harness.publish(build_request(table, producer="first"))
        await harness.settle(5.0)
        assert await engine.operation()
        load = asyncio.create_task(full_load(harness, table))
        try:
            for pause_s in (1.0, 17.0, 7.3):
                await harness.settle(pause_s)
                start = harness.world.monotonic_s()
                try:
                    await asyncio.wait_for(engine.until_landed(), patience_s)
                except TimeoutError:
                    return [*taken, inf]
                taken.append(harness.world.monotonic_s() - start)
        finally:
            load.cancel()
    return taken


async def test_a_slow_engine_gets_through_within_half_a_minute() -> None:
    harness, table = await open_harness()
    taken = await seconds_to_land(harness, table, patience_s=200.0)
    assert max(taken) <= 30.0 + 1.0


@pytest.mark.thorough
async def test_without_the_gap_a_slow_engine_starves() -> None:
    harness, table = await open_harness(GapPolicy(length_ms=0))
    assert await seconds_to_land(harness, table, patience_s=60.0) == [inf]


async def test_a_table_whose_property_asks_for_gaps_has_them_before_anybody_was_seen() -> None:
    harness, table = await open_harness(
        GapPolicy(length_ms=0), {"frazil.commit.yield-to-others-ms": "5000"}
    )
    async with harness.running():
        load = asyncio.create_task(full_load(harness, table))
        await harness.settle(3.0)
        try:
            async with asyncio.timeout(31.0):
                await OtherEngine(harness).until_landed()
        finally:
            load.cancel()


async def test_a_gap_ends_when_somebody_has_got_through() -> None:
    harness, table = await open_harness(GapPolicy(length_ms=20_000, period_ms=60_000))
    async with harness.running():
        await harness.publish(build_request(table, producer="first"))
        await harness.settle(5.0)
        engine = OtherEngine(harness)
        assert await engine.operation()
        await harness.publish(build_request(table, epoch=0))
        await harness.settle(4.0)
        assert len(await harness.receipts()) == 1
        start = harness.world.monotonic_s()
        landing = asyncio.create_task(engine.operation())
        await harness.publish(build_request(table, epoch=1))
        assert await harness.publisher_queue.wait_for_receipts("query-1", wait_s=60.0)
        assert await landing
        assert FOREIGN_S < harness.world.monotonic_s() - start < 20.0 / 2


async def test_commits_wait_for_gaps_only_where_others_commit() -> None:
    harness, table = await open_harness()
    async with harness.running():
        for epoch in range(50):
            start = harness.world.monotonic_s()
            await harness.publish(build_request(table, epoch=epoch))
            assert await harness.publisher_queue.wait_for_receipts("query-1", wait_s=60.0)
            assert harness.world.monotonic_s() - start < 2.0
    assert harness.catalog.calls["current_location"] == 0
