"""A compaction in parts beside small requests of its table: neither starves the other."""

from __future__ import annotations

from committer.iceberg.manifest.manifest_list import decode_manifest_list
from committer.plan.batch.batch_policy import BatchPolicy
from committer.ports.pointer_swap import LoadedTable
from committer.request.request_format import EncodedRequest
from committer.service.tasks.steps import OFF_LOOP_BYTES, weight_bytes
from tests.support.builders.operation_requests import base_of, build_operation
from tests.support.builders.request_builders import build_request
from tests.support.service.outside import foreign_commit
from tests.support.service.scripted import branch_at
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True
FILES = 6


async def harness_with_files() -> tuple[ServiceHarness, LoadedTable, list[str]]:
    """Return a committer whose batches remove two files by name, a table, and its files."""
    harness = ServiceHarness()
    harness.policy = BatchPolicy(min_interval_ms=0, removed_files_max=2)
    table = await harness.create_table()
    await harness.publish(build_request(table, producer="loader", files_count=FILES))
    await harness.run_until_settled()
    loaded = await harness.catalog.inner.load(table.identifier)
    return harness, loaded, sorted(file.file_path for file in await harness.live_files())


def rewrite(
    table: LoadedTable, producer: str, removed: list[str], branch: str = "main"
) -> EncodedRequest:
    needs = {"removed-data-files": removed, **base_of(table.metadata)}
    return build_operation(
        table, "rewrite-files", producer=producer, branch=branch, files_count=1, needs=needs
    )


async def landed_at(harness: ServiceHarness, *producers: str) -> list[int]:
    """Return the sequence number that the request of each of them landed with."""
    receipts = [(await harness.receipts(one))[-1] for one in producers]
    assert all(one.sequence_number is not None for one in receipts), receipts
    return [one.sequence_number or 0 for one in receipts]


async def test_small_requests_land_with_the_first_part_of_a_compaction_and_all_of_it_lands() -> (
    None
):
    harness, table, files = await harness_with_files()
    swaps = len((await harness.load()).metadata_log)
    for part in range(3):
        await harness.publish(rewrite(table, f"part-{part}", files[2 * part : 2 * part + 2]))
    await harness.publish(build_request(table, producer="small"))
    await harness.run_until_settled()
    first, second, third, small = await landed_at(harness, "part-0", "part-1", "part-2", "small")
    assert first < small < second < third
    assert len((await harness.load()).metadata_log) - swaps == 3
    assert len(await harness.live_files()) == 3 + 1
    assert await harness.outstanding() == [] == await harness.quarantined()


async def test_a_compaction_of_another_branch_takes_no_room_in_a_batch() -> None:
    harness, table, files = await harness_with_files()
    head = table.metadata.current_snapshot_id
    assert head is not None
    await foreign_commit(harness, table, branch_at("audit", head))
    swaps = len((await harness.load()).metadata_log)
    await harness.publish(build_request(table, producer="small"))
    await harness.publish(rewrite(table, "aside", files[:2], branch="audit"))
    await harness.publish(rewrite(table, "part", files[:2]))
    await harness.run_until_settled()
    small, part, aside = await landed_at(harness, "small", "part", "aside")
    assert small < part < aside
    assert len((await harness.load()).metadata_log) - swaps == 2


async def test_branches_take_turns_however_long_the_queue_of_one_is() -> None:
    harness = ServiceHarness()
    harness.policy = BatchPolicy(min_interval_ms=1_000, files_max=2)
    table = await harness.create_table()
    await harness.publish(build_request(table, producer="loader"))
    await harness.run_until_settled()
    loaded = await harness.catalog.inner.load(table.identifier)
    head = loaded.metadata.current_snapshot_id
    assert head is not None
    await foreign_commit(harness, loaded, branch_at("audit", head))
    for producer in range(20):
        await harness.publish(build_request(table, producer=f"audit-{producer}", branch="audit"))
    await harness.publish(build_request(table, producer="main"))
    async with harness.running():
        await harness.settle(2.5)
        assert (await landed_at(harness, "main"))[0] > 0
        assert len(await harness.outstanding()) > 10
        await harness.settle(30.0)
        assert await harness.outstanding() == []


async def test_the_plan_of_a_large_table_does_not_hold_the_loop_however_small_its_manifests() -> (
    None
):
    """Entries that are alike deflate to a few bytes, and are decoded all the same."""
    harness = ServiceHarness()
    table = await harness.create_table()
    await harness.publish(build_request(table, producer="loader", files_count=1_000))
    await harness.run_until_settled()
    head = (await harness.load()).current_snapshot
    assert head is not None
    assert head.manifest_list is not None
    rows = decode_manifest_list(await harness.storage.get(head.manifest_list)).rows
    assert sum(row.manifest_length for row in rows) < OFF_LOOP_BYTES / 4
    assert weight_bytes(rows) > OFF_LOOP_BYTES
