"""The loop around the planner: batches, the four answers of a swap, counted calls."""

from __future__ import annotations

import pytest

from committer.iceberg.updates.metadata_update import SetProperties
from committer.ports.pointer_swap import Committed, Swap, SwapAnswer
from committer.reason import Reason
from committer.request.receipt_model import ReceiptState
from tests.support.builders.request_builders import build_request
from tests.support.faults.faulty_catalog import Fault, FaultyCatalog
from tests.support.service.outside import foreign_commit
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True


async def test_requests_of_many_producers_share_one_snapshot() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    for number in range(5):
        await harness.publish(build_request(table, producer=f"query-{number}", files_count=2))
    await harness.run_until_settled()
    metadata = await harness.load()
    assert len(metadata.snapshots) == 1
    assert len(await harness.live_files()) == 10
    assert await harness.outstanding() == []
    summary = metadata.snapshots[0].summary or {}
    assert (summary["operation"], summary["total-records"]) == ("append", "100")


async def test_a_steady_state_commit_reads_nothing_writes_once_and_swaps_once() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await harness.publish(build_request(table, epoch=0))
    async with harness.running():
        await harness.settle()
        for epoch in (1, 2, 3):
            harness.storage.calls.clear()
            harness.catalog.calls.clear()
            harness.inbox_storage.calls.clear()
            await harness.publish(build_request(table, epoch=epoch), durable=True)
            harness.inbox_storage.calls.clear()
            await harness.settle(1.0)
            assert dict(harness.storage.calls) == {"create": 1}
            assert dict(harness.catalog.calls) == {"swap": 1}
            # Off the path: what has landed is told to the high-water mark, then it leaves the
            # inbox.
            assert dict(harness.inbox_storage.calls) == {"replace": 1, "delete": 1}
    assert len(await harness.live_files()) == 4


async def test_every_producer_gets_a_receipt_that_names_the_snapshot() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    sealed = build_request(table)
    await harness.publish(sealed)
    await harness.run_until_settled()
    metadata = await harness.load()
    (receipt,) = await harness.receipts()
    assert receipt.state is ReceiptState.COMMITTED
    assert receipt.snapshot_id == metadata.current_snapshot_id
    assert receipt.sequence_number == 1
    assert receipt.attempt == str(sealed.request.attempt)
    assert not receipt.duplicate


async def test_the_minimum_interval_spaces_commits_but_the_first_goes_at_once() -> None:
    harness = ServiceHarness(min_interval_ms=1_000)
    table = await harness.create_table()
    async with harness.running():
        for epoch in range(4):
            await harness.publish(build_request(table, epoch=epoch))
            await harness.settle(0.3)
        await harness.settle()
    snapshots = (await harness.load()).snapshots
    starts = [snapshot.timestamp_ms for snapshot in snapshots]
    assert len(snapshots) == 2
    assert starts[1] - starts[0] == 1_000


async def test_the_tables_own_property_sets_its_interval() -> None:
    harness = ServiceHarness(min_interval_ms=60_000)
    table = await harness.create_table(properties={"frazil.commit.min-interval-ms": "0"})
    async with harness.running():
        for epoch in range(3):
            await harness.publish(build_request(table, epoch=epoch))
            await harness.settle(0.1)
    assert len((await harness.load()).snapshots) == 3


async def look_ups(producers: int) -> tuple[int, int]:
    """Return how many look-ups of single objects and of the inbox so many new producers cause."""
    harness = ServiceHarness()
    table = await harness.create_table()
    for number in range(producers):
        await harness.publish(build_request(table, producer=f"new-{number}"))
    await harness.publish(build_request(table, producer="gone"), durable=False)
    harness.inbox_storage.calls.clear()
    await harness.run_until_settled(seconds=5.0)
    assert len(await harness.live_files()) == producers
    return harness.inbox_storage.calls["head"], harness.inbox_storage.calls["list"]


async def test_many_new_producers_are_looked_up_by_one_listing() -> None:
    few_heads, few_lists = await look_ups(10)
    many_heads, many_lists = await look_ups(100)
    # One of them for the high-water mark.
    assert (few_heads, many_heads) == (12, 1)
    assert many_lists == few_lists + 1


# --- The four answers ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "faults",
    [
        [Fault.CONFLICT],
        [Fault.LOST_REPLY],
        [Fault.REQUEST_LOST],
        [Fault.UNAVAILABLE],
        [Fault.REJECTED],
        [Fault.LOST_REPLY, Fault.CONFLICT, Fault.REQUEST_LOST, Fault.LOST_REPLY],
        [Fault.REQUEST_LOST] * 6,
    ],
    ids=lambda faults: "-".join(fault.name for fault in faults),
)
async def test_whatever_a_swap_answers_each_request_lands_once(faults: list[Fault]) -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    for number in range(3):
        await harness.publish(build_request(table, producer=f"query-{number}"))
    harness.catalog.plan(*faults)
    await harness.run_until_settled(seconds=120.0)
    paths = [file.file_path for file in await harness.live_files()]
    assert len(paths) == len(set(paths)) == 3
    assert await harness.outstanding() == []
    assert await harness.quarantined() == []
    for number in range(3):
        (receipt,) = await harness.receipts(f"query-{number}")
        assert receipt.state is ReceiptState.COMMITTED
        assert not receipt.duplicate


async def test_an_attempt_that_lands_after_its_answer_was_lost_is_not_committed_twice() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await harness.publish(build_request(table))
    harness.catalog.plan(Fault.LANDS_LATE)
    async with harness.running():
        await harness.settle(0.001)
        answers = await harness.catalog.land_late()
        await harness.settle()
    assert len(await harness.live_files()) == 1
    assert [type(answer) for answer in answers] == [Committed]


async def test_a_late_landing_behind_our_own_retry_loses() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await harness.publish(build_request(table))
    harness.catalog.plan(Fault.LANDS_LATE)
    await harness.run_until_settled()
    answers = await harness.catalog.land_late()
    assert not isinstance(answers[0], Committed)
    assert len(await harness.live_files()) == 1


async def test_a_retry_keeps_snapshot_id_and_manifests_and_writes_only_what_is_new() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await harness.publish(build_request(table))
    harness.catalog.plan(Fault.REQUEST_LOST)
    await harness.run_until_settled()
    listed = [info.location async for info in harness.storage.inner.list(table.metadata.location)]
    manifests = [name for name in listed if "-m0.avro" in name]
    lists = [name.rsplit("/", 1)[1] for name in listed if "/snap-" in name]
    assert len(manifests) == 1
    assert [name.split("-")[2] for name in sorted(lists)] == ["1", "2"]
    assert len({name.split("-")[1] for name in lists}) == 1


async def test_a_request_that_the_catalog_rejects_is_found_by_halving() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    for number in range(4):
        await harness.publish(build_request(table, producer=f"query-{number}"))
    # The whole batch, a half, then the single request at fault.
    harness.catalog.plan(Fault.REJECTED, Fault.REJECTED, Fault.REJECTED)
    await harness.run_until_settled(seconds=120.0)
    (record,) = await harness.quarantined()
    assert record.reason == Reason.COMMIT_REJECTED
    assert len(await harness.live_files()) == 3


async def test_a_request_is_not_refused_while_an_attempt_with_it_may_still_land() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await harness.publish(build_request(table))
    harness.catalog.plan(Fault.LANDS_LATE, Fault.REJECTED)
    async with harness.running():
        await harness.settle(1.0)
        await harness.catalog.land_late()
        await harness.settle(60.0)
    assert await harness.quarantined() == []
    assert len(await harness.live_files()) == 1
    (receipt,) = await harness.receipts()
    assert receipt.state is ReceiptState.COMMITTED


class CatalogWithABug(FaultyCatalog):
    """Trips after it has sent the first swap, which lands late."""

    async def swap(self, swap: Swap) -> SwapAnswer:
        answer = await super().swap(swap)
        if self.calls["swap"] == 1:
            raise RuntimeError("a bug of the adapter")
        return answer


async def test_a_swap_that_trips_over_a_bug_may_still_land() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    harness.catalog = CatalogWithABug(harness.catalog.inner)
    harness.catalog.plan(Fault.LANDS_LATE, Fault.REJECTED)
    await harness.publish(build_request(table))
    async with harness.running():
        await harness.settle(30.0)
        await harness.catalog.land_late()
        await harness.settle(120.0)
    assert await harness.quarantined() == []
    assert len(await harness.live_files()) == 1
    samples = harness.metrics.instruments.samples()
    errors = [one for one in samples if one.name == "frazil_internal_errors_total" and one.value]
    assert [(one.labels, one.value) for one in errors] == [({"where": "swap"}, 1.0)]


async def test_a_foreign_commit_between_ours_is_kept() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running():
        await harness.publish(build_request(table, epoch=0))
        await harness.settle(1.0)
        await foreign_commit(harness, table, SetProperties({"foreign": "1"}))
        await harness.publish(build_request(table, epoch=1))
        await harness.settle()
    metadata = await harness.load()
    assert metadata.properties["foreign"] == "1"
    assert len(await harness.live_files()) == 2


# --- Two owners ----------------------------------------------------------------------------------


async def test_two_committers_on_one_table_land_each_request_once() -> None:
    first = ServiceHarness()
    table = await first.create_table()
    second = ServiceHarness(seed=1)
    second.storage, second.inbox_storage = first.storage, first.inbox_storage
    second.inbox, second.quarantine = first.inbox, first.quarantine
    second.catalog = first.catalog
    async with first.running(), second.running():
        for epoch in range(20):
            sealed = build_request(table, epoch=epoch)
            await first.inbox.put(sealed)
            for harness in (first, second):
                await harness.publisher_queue.announce([harness.doorbell(sealed)])
            await first.settle(0.01)
        await first.settle(60.0)
    paths = [file.file_path for file in await first.live_files()]
    assert len(paths) == len(set(paths)) == 20
    assert await first.outstanding() == []
    assert await first.quarantined() == []
