"""Manifests are merged behind the commits: no commit waits for it, fails by it, or reads for it."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from committer.errors import StorageUnavailableError
from committer.iceberg.metadata.snapshot import MAIN, SnapshotRef
from committer.iceberg.updates.metadata_update import SetSnapshotRef
from committer.ports.pointer_swap import Committed
from committer.ports.storage import NewObject
from tests.support.builders.request_builders import build_request
from tests.support.faults.faulty_catalog import Fault
from tests.support.service.merging import FEW, Merging
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True


@pytest.mark.parametrize("format_version", [1, 2, 3])
async def test_the_commit_that_takes_a_merge_along_costs_no_extra_round_trip(
    format_version: int,
) -> None:
    merging = Merging()
    harness = merging.harness
    await merging.create(format_version=format_version)
    async with merging.running():
        await merging.commit(3)
        harness.storage.calls.clear()
        await merging.commit()
        # The commit, and behind it four reads and a write: the commit after it has not begun.
        assert dict(harness.storage.calls) == {"create": 2, "get": 4}
        harness.storage.calls.clear()
        harness.catalog.calls.clear()
        await merging.commit()
        assert dict(harness.storage.calls) == {"create": 1}
        assert dict(harness.catalog.calls) == {"swap": 1}
        await merging.commit()
    rows = await merging.rows()
    assert [row.existing_files_count for row in rows] == [0, 0, 8]
    assert (await merging.manifests_counted())[-3:] == [(1, 3, 0), (2, 0, 4), (1, 2, 0)]
    await merging.assert_each_file_once()


async def test_many_commits_leave_few_manifests() -> None:
    merging = Merging()
    await merging.create()
    async with merging.running():
        await merging.commit(60)
    assert len(await merging.rows()) < 4 + 6
    await merging.assert_each_file_once()


async def test_a_table_that_does_not_want_it_is_not_merged() -> None:
    merging = Merging()
    await merging.create({**FEW, "commit.manifest-merge.enabled": "false"})
    async with merging.running():
        await merging.commit(12)
        assert merging.harness.storage.calls["get"] == 0
    assert len(await merging.rows()) == 12


@pytest.mark.parametrize(
    "faults",
    [
        [Fault.CONFLICT],
        [Fault.LOST_REPLY],
        [Fault.REQUEST_LOST],
        [Fault.UNAVAILABLE],
        [Fault.REQUEST_LOST, Fault.CONFLICT, Fault.LOST_REPLY],
    ],
    ids=lambda faults: "-".join(fault.name for fault in faults),
)
async def test_whatever_the_swap_answers_a_merge_lands_once_and_no_file_twice(
    faults: list[Fault],
) -> None:
    merging = Merging()
    await merging.create()
    async with merging.running():
        await merging.commit(4)
        merging.harness.catalog.plan(*faults)
        await merging.commit()
        await merging.harness.settle(30.0)
        await merging.commit(2)
    replaced = [replaced for _, _, replaced in await merging.manifests_counted()]
    assert replaced == [0, 0, 0, 0, 4, 0, 0]
    assert merging.counted() == {"merged": 4}
    await merging.assert_each_file_once()


async def test_a_merge_that_is_finished_while_an_attempt_is_on_its_way_waits_for_the_next() -> None:
    merging = Merging()
    await merging.create()
    async with merging.running():
        merging.storage.is_open.clear()
        await merging.commit(4)
        merging.harness.catalog.plan(Fault.CONFLICT)
        await merging.publish()
        await merging.harness.settle(0.001)
        merging.storage.is_open.set()
        await merging.harness.settle(1.0)
        assert merging.storage.calls["get"] == 4
        await merging.commit()
    assert (await merging.manifests_counted())[-2:] == [(1, 4, 0), (2, 1, 4)]
    await merging.assert_each_file_once()


async def test_an_attempt_with_a_merge_that_lands_late_is_not_merged_twice() -> None:
    merging = Merging()
    await merging.create()
    async with merging.running():
        await merging.commit(4)
        merging.harness.catalog.plan(Fault.LANDS_LATE)
        await merging.publish()
        await merging.harness.settle(0.001)
        (answer,) = await merging.harness.catalog.land_late()
        assert isinstance(answer, Committed)
        await merging.commit(2)
    replaced = [replaced for _, _, replaced in await merging.manifests_counted()]
    assert replaced == [0, 0, 0, 0, 4, 0, 0]
    await merging.assert_each_file_once()


async def test_a_merge_of_manifests_that_a_foreign_commit_replaced_is_dropped() -> None:
    merging = Merging()
    harness = merging.harness
    await merging.create()
    async with merging.running():
        await merging.commit(4)
        # Behind the fourth commit four manifests are merged; then main goes back to the second.
        second = (await harness.load()).snapshots[1]
        await merging.foreign(SetSnapshotRef(MAIN, SnapshotRef(second.snapshot_id, "branch")))
        sealed = build_request(
            merging.table, producer="another", epoch=0, partition=("AA",), files_count=2
        )
        await harness.publish(sealed)
        await harness.settle(5.0)
        assert [row.existing_files_count for row in await merging.rows()] == [0, 0, 0]
        assert await merging.manifests_counted() == [(1, n, 0) for n in (0, 1, 2, 3, 2)]
        # The unusable merge is not offered again; the next one takes the current manifests.
        for epoch in (1, 2):
            sealed = build_request(
                merging.table, producer="another", epoch=epoch, partition=("AA",), files_count=2
            )
            await harness.publish(sealed)
            await harness.settle(5.0)
    assert (await merging.manifests_counted())[-1] == (2, 0, 4)
    paths = [file.file_path for file in await harness.live_files()]
    assert len(paths) == len(set(paths)) == 2 * 5


async def test_commits_go_on_while_a_merge_is_slow_and_there_is_never_a_second_one() -> None:
    merging = Merging()
    await merging.create()
    async with merging.running():
        merging.storage.is_open.clear()
        await merging.commit(9)
        assert merging.storage.reading_max == 4
        assert len(await merging.rows()) == 9
        merging.storage.is_open.set()
        await merging.commit()
        await merging.commit()
    assert (2, 6, 4) in await merging.manifests_counted()
    await merging.assert_each_file_once()


async def test_a_merge_that_fails_leaves_commits_alone_and_is_tried_again_later() -> None:
    merging = Merging()
    harness = merging.harness
    await merging.create()
    async with merging.running():
        merging.storage.error = StorageUnavailableError("the test keeps manifests away")
        await merging.commit(6)
        assert harness.health.conditions == {}
        assert merging.counted() == {"failed": 1}
        merging.storage.error = None
        await merging.commit()
        # One try, and no other before the pause is over.
        assert harness.storage.calls["get"] == 4
        await harness.settle(60.0)
        await merging.commit(2)
    assert [replaced for _, _, replaced in await merging.manifests_counted()][-1] == 8
    await merging.assert_each_file_once()


async def test_a_bug_in_a_merge_is_survived() -> None:
    merging = Merging()
    await merging.create()
    async with merging.running():
        merging.storage.error = ZeroDivisionError("a bug of ours, that the test plays")
        await merging.commit(6)
        merging.storage.error = None
    assert merging.counted() == {"failed": 1, "internal errors": 1}
    assert len(await merging.rows()) == 6
    await merging.assert_each_file_once()


async def test_a_manifest_that_cannot_be_read_is_left_alone_and_the_others_are_merged() -> None:
    merging = Merging()
    harness = merging.harness
    await merging.create()
    async with merging.running():
        await merging.commit(3)
        broken = (await merging.rows())[0]
        whole = await harness.storage.inner.get(broken.manifest_path)
        await harness.storage.inner.delete([broken.manifest_path])
        await merging.commit()
        await harness.settle(120.0)
        await merging.commit()
        await merging.commit()
    await _create(harness, broken.manifest_path, whole)
    assert (await merging.manifests_counted())[-1] == (2, 1, 4)
    await merging.assert_each_file_once()


async def _create(harness: ServiceHarness, location: str, content: bytes) -> None:
    await harness.storage.inner.create([NewObject(location, content)])


async def test_a_crash_while_merging_loses_and_doubles_nothing() -> None:
    merging = Merging()
    await merging.create()
    for _ in range(8):
        merging.storage.is_open.clear()
        async with merging.running():
            await merging.commit(2)
            merging.storage.is_open.set()
            await asyncio.sleep(0)
    async with merging.running():
        await merging.commit(2)
    assert any(replaced for _, _, replaced in await merging.manifests_counted())
    await merging.assert_each_file_once()


async def test_a_stop_does_not_wait_for_a_merge() -> None:
    merging = Merging()
    harness = merging.harness
    await merging.create()
    async with merging.running():
        merging.storage.is_open.clear()
        await merging.commit(4)
        assert merging.storage.reading == 4
        started_s = harness.world.monotonic_s()
        await harness.tables.stop()
        assert harness.world.monotonic_s() == started_s
        assert merging.storage.reading == 0


async def test_a_merge_that_waits_too_long_is_left_out_for_its_file_may_be_gone() -> None:
    """Nothing names the merged manifest yet: an orphan clean-up takes it after some days."""
    merging = Merging()
    harness = merging.harness
    table = await merging.create()
    async with merging.running():
        await merging.commit(4)
        head = (await harness.load()).current_snapshot_id or 0
        listed = {row.manifest_path for row in await merging.rows()}
        written = [one.location async for one in harness.storage.inner.list("memory://warehouse")]
        (merged,) = (one for one in written if one.endswith("-m0.avro") and one not in listed)
        await merging.foreign(SetSnapshotRef("audit", SnapshotRef(head)))
        for epoch in range(10):
            audit = build_request(
                table, producer="audit", epoch=epoch, branch="audit", partition=("AA",)
            )
            await harness.publish(audit)
            await harness.settle(500.0)
        await harness.storage.inner.delete((merged,))
        await merging.commit(3)
        assert merged not in {row.manifest_path for row in await merging.rows()}
    await merging.assert_each_file_once()
    assert (await merging.rows())[-1].existing_files_count


# --- Clustered by partition ----------------------------------------------------------------------

CARRIERS = tuple(f"C{number}" for number in range(6))
CLUSTERED = {
    "commit.manifest.min-count-to-merge": "24",
    "commit.manifest.target-size-bytes": "10000",
}
COMMITS, FILES = 24, 20


@pytest.mark.parametrize("format_version", [1, 2, 3])
async def test_a_merge_into_several_manifests_lets_a_scan_of_a_partition_open_few(
    format_version: int,
) -> None:
    merging = Merging()
    await merging.create(CLUSTERED, format_version=format_version)
    async with merging.running():
        for _ in range(COMMITS):
            await merging.publish_to(CARRIERS, files_count=FILES)
        before = await merging.live_entries()
        assert [await merging.manifests_of(carrier) for carrier in CARRIERS] == [COMMITS] * 6
        await merging.publish_to(CARRIERS[:1], files_count=1)
    rows = [row for row in await merging.rows() if row.existing_files_count]
    assert len(rows) >= 2
    assert sum(row.existing_files_count or 0 for row in rows) == len(before) == COMMITS * 6 * FILES
    opened = [await merging.manifests_of(carrier) for carrier in CARRIERS[1:]]
    # Neighbors share one partition at most.
    assert sum(opened) < len(opened) + len(rows)
    after = await merging.live_entries()
    assert {path: after[path] for path in before} == before
    assert len(after) == len(before) + 1
    if format_version == 3:
        ids = [entry.data_file.first_row_id for entry in after.values()]
        assert None not in ids and len(set(ids)) == len(ids)
    created, kept, replaced = (await merging.manifests_counted())[-1]
    assert (created, kept, replaced) == (1 + len(rows), 0, COMMITS)
    assert merging.counted() == {"merged": COMMITS}


async def test_a_table_that_does_not_want_it_is_not_clustered() -> None:
    merging = Merging()
    await merging.create({**CLUSTERED, "frazil.manifests.cluster": "false"})
    async with merging.running():
        for _ in range(COMMITS + 1):
            await merging.publish_to(CARRIERS, files_count=FILES)
    opened = [await merging.manifests_of(carrier) for carrier in CARRIERS]
    assert set(opened) == {len(await merging.rows())}


async def test_clustered_manifests_that_a_lost_race_makes_useless_are_all_garbage() -> None:
    merging = Merging()
    await merging.create(CLUSTERED)
    async with merging.running():
        for _ in range(COMMITS):
            await merging.publish_to(CARRIERS, files_count=FILES)
        second = (await merging.harness.load()).snapshots[1]
        await merging.foreign(SetSnapshotRef(MAIN, SnapshotRef(second.snapshot_id, "branch")))
        sealed = build_request(merging.table, producer="another", epoch=0, partition=("C0",))
        with capture_logs() as events:
            await merging.harness.publish(sealed)
            await merging.harness.settle(5.0)
    superseded = [one["path"] for one in events if one["event"] == "merge.superseded"]
    assert len(superseded) == len(set(superseded)) >= 2
