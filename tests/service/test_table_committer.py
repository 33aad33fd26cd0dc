"""The loop around the planner: batches, the four answers of a swap, the ledger, counted calls."""

from __future__ import annotations

import asyncio

import pytest

from committer.iceberg.metadata_update import (
    RemoveSnapshotRef,
    RemoveSnapshots,
    Update,
    apply_updates,
)
from committer.iceberg.snapshot import MAIN
from committer.ledger_entry import EpochRanges, parse_entry, property_key
from committer.ports import Committed, LoadedTable, Swap, SwapAnswer
from committer.reason import Reason
from committer.request import ReceiptState
from committer.service.ledger_upkeep import ONE_SHOT_KEPT_S
from committer.storage.inbox import QuarantineRecord
from tests.faulty_catalog import Fault, FaultyCatalog
from tests.request_builders import build_request
from tests.service.house import House
from tests.table_builders import build_swap

VIRTUAL_TIME = True


async def test_requests_of_many_producers_share_one_snapshot() -> None:
    house = House()
    table = await house.create_table()
    for number in range(5):
        await house.publish(build_request(table, producer=f"query-{number}", files_count=2))
    await house.run_until_settled()
    metadata = await house.load()
    assert len(metadata.snapshots) == 1
    assert len(await house.live_files()) == 10
    assert await house.outstanding() == []
    summary = metadata.snapshots[0].summary or {}
    assert (summary["operation"], summary["total-records"]) == ("append", "100")


async def test_a_steady_state_commit_reads_nothing_writes_once_and_swaps_once() -> None:
    house = House()
    table = await house.create_table()
    await house.publish(build_request(table, epoch=0))
    async with house.running():
        await house.settle()
        for epoch in (1, 2, 3):
            house.storage.calls.clear()
            house.catalog.calls.clear()
            house.inbox_storage.calls.clear()
            await house.publish(build_request(table, epoch=epoch), durable=True)
            house.inbox_storage.calls.clear()
            await house.settle(1.0)
            assert dict(house.storage.calls) == {"create": 1}
            assert dict(house.catalog.calls) == {"swap": 1}
            # Off the path: what has landed is told to the witness, then it leaves the inbox.
            assert dict(house.inbox_storage.calls) == {"replace": 1, "delete": 1}
    assert len(await house.live_files()) == 4


async def test_every_producer_gets_a_receipt_that_names_the_snapshot() -> None:
    house = House()
    table = await house.create_table()
    sealed = build_request(table)
    await house.publish(sealed)
    await house.run_until_settled()
    metadata = await house.load()
    (receipt,) = await house.receipts()
    assert receipt.state is ReceiptState.COMMITTED
    assert receipt.snapshot_id == metadata.current_snapshot_id
    assert receipt.sequence_number == 1
    assert receipt.attempt == str(sealed.request.attempt)
    assert not receipt.duplicate


async def test_the_minimum_interval_spaces_commits_but_the_first_goes_at_once() -> None:
    house = House(min_interval_ms=1_000)
    table = await house.create_table()
    async with house.running():
        for epoch in range(4):
            await house.publish(build_request(table, epoch=epoch))
            await house.settle(0.3)
        await house.settle()
    snapshots = (await house.load()).snapshots
    starts = [snapshot.timestamp_ms for snapshot in snapshots]
    assert len(snapshots) == 2
    assert starts[1] - starts[0] == 1_000


async def test_the_tables_own_property_sets_its_interval() -> None:
    house = House(min_interval_ms=60_000)
    table = await house.create_table(properties={"frazil.commit.min-interval-ms": "0"})
    async with house.running():
        for epoch in range(3):
            await house.publish(build_request(table, epoch=epoch))
            await house.settle(0.1)
    assert len((await house.load()).snapshots) == 3


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
    house = House()
    table = await house.create_table()
    for number in range(3):
        await house.publish(build_request(table, producer=f"query-{number}"))
    house.catalog.plan(*faults)
    await house.run_until_settled(seconds=120.0)
    paths = [file.file_path for file in await house.live_files()]
    assert len(paths) == len(set(paths)) == 3
    assert await house.outstanding() == []
    assert await house.quarantined() == []
    for number in range(3):
        (receipt,) = await house.receipts(f"query-{number}")
        assert receipt.state is ReceiptState.COMMITTED
        assert not receipt.duplicate


async def test_an_attempt_that_lands_after_its_answer_was_lost_is_not_committed_twice() -> None:
    house = House()
    table = await house.create_table()
    await house.publish(build_request(table))
    house.catalog.plan(Fault.LANDS_LATE)
    async with house.running():
        await house.settle(0.001)
        answers = await house.catalog.land_late()
        await house.settle()
    assert len(await house.live_files()) == 1
    assert [type(answer) for answer in answers] == [Committed]


async def test_a_late_landing_behind_our_own_retry_loses() -> None:
    house = House()
    table = await house.create_table()
    await house.publish(build_request(table))
    house.catalog.plan(Fault.LANDS_LATE)
    await house.run_until_settled()
    answers = await house.catalog.land_late()
    assert not isinstance(answers[0], Committed)
    assert len(await house.live_files()) == 1


async def test_a_retry_keeps_snapshot_id_and_manifests_and_writes_only_what_is_new() -> None:
    house = House()
    table = await house.create_table()
    await house.publish(build_request(table))
    house.catalog.plan(Fault.REQUEST_LOST)
    await house.run_until_settled()
    listed = [info.location async for info in house.storage.inner.list(table.metadata.location)]
    manifests = [name for name in listed if "-m0.avro" in name]
    lists = [name.rsplit("/", 1)[1] for name in listed if "/snap-" in name]
    assert len(manifests) == 1
    assert [name.split("-")[2] for name in sorted(lists)] == ["1", "2"]
    assert len({name.split("-")[1] for name in lists}) == 1


async def test_a_request_that_the_catalog_rejects_is_found_by_halving() -> None:
    house = House()
    table = await house.create_table()
    for number in range(4):
        await house.publish(build_request(table, producer=f"query-{number}"))
    # The whole batch, a half, then the single request at fault.
    house.catalog.plan(Fault.REJECTED, Fault.REJECTED, Fault.REJECTED)
    await house.run_until_settled(seconds=120.0)
    (record,) = await house.quarantined()
    assert record.reason == Reason.COMMIT_REJECTED
    assert len(await house.live_files()) == 3


async def test_a_request_is_not_refused_while_an_attempt_with_it_may_still_land() -> None:
    house = House()
    table = await house.create_table()
    await house.publish(build_request(table))
    house.catalog.plan(Fault.LANDS_LATE, Fault.REJECTED)
    async with house.running():
        await house.settle(1.0)
        await house.catalog.land_late()
        await house.settle(60.0)
    assert await house.quarantined() == []
    assert len(await house.live_files()) == 1
    (receipt,) = await house.receipts()
    assert receipt.state is ReceiptState.COMMITTED


class CatalogWithABug(FaultyCatalog):
    """Trips after it has sent the first swap, which lands late."""

    async def swap(self, swap: Swap) -> SwapAnswer:
        answer = await super().swap(swap)
        if self.calls["swap"] == 1:
            raise RuntimeError("a bug of the adapter")
        return answer


async def test_a_swap_that_trips_over_a_bug_may_still_land() -> None:
    house = House()
    table = await house.create_table()
    house.catalog = CatalogWithABug(house.catalog.inner)
    house.catalog.plan(Fault.LANDS_LATE, Fault.REJECTED)
    await house.publish(build_request(table))
    async with house.running():
        await house.settle(30.0)
        await house.catalog.land_late()
        await house.settle(120.0)
    assert await house.quarantined() == []
    assert len(await house.live_files()) == 1


async def test_a_foreign_commit_between_ours_is_kept() -> None:
    house = House()
    table = await house.create_table()
    async with house.running():
        await house.publish(build_request(table, epoch=0))
        await house.settle(1.0)
        current = await house.catalog.inner.load(table.identifier)
        swap = build_swap(current, properties={"foreign": "1"})
        await house.storage.inner.create(house.catalog.inner.objects_before(swap))
        assert isinstance(await house.catalog.inner.swap(swap), Committed)
        await house.publish(build_request(table, epoch=1))
        await house.settle()
    metadata = await house.load()
    assert metadata.properties["foreign"] == "1"
    assert len(await house.live_files()) == 2


# --- The ledger ----------------------------------------------------------------------------------


async def test_a_replayed_epoch_with_equal_fingerprint_is_acknowledged_and_not_added() -> None:
    house = House()
    table = await house.create_table()
    first = build_request(table, epoch=4)
    await house.publish(first)
    await house.run_until_settled()
    await house.publish(build_request(table, epoch=4))
    await house.run_until_settled()
    assert len(await house.live_files()) == 1
    _, replay = await house.receipts()
    assert (replay.state, replay.duplicate) == (ReceiptState.COMMITTED, True)
    assert await house.outstanding() == []


async def test_an_epoch_with_another_fingerprint_is_quarantined_never_skipped() -> None:
    house = House()
    table = await house.create_table()
    await house.publish(build_request(table, epoch=4))
    await house.run_until_settled()
    await house.publish(build_request(table, epoch=4, fingerprint="something else"))
    await house.run_until_settled()
    (record,) = await house.quarantined()
    assert record.reason == Reason.EPOCH_CONTENT_DIFFERS
    assert len(await house.live_files()) == 1


async def test_two_attempts_of_one_epoch_in_one_batch_land_as_one() -> None:
    house = House()
    table = await house.create_table()
    for _ in range(2):
        await house.publish(build_request(table, epoch=7, files_count=3))
    await house.run_until_settled()
    files = await house.live_files()
    assert len(files) == 3
    attempts = {file.file_path.rsplit("/", 1)[1][6:] for file in files}
    assert len(attempts) == 1
    assert sorted(receipt.duplicate for receipt in await house.receipts()) == [False, True]


async def test_an_epoch_that_only_a_manifest_list_still_knows_is_acknowledged() -> None:
    house = House()
    table = await house.create_table()
    for epoch in range(6):
        await house.publish(build_request(table, epoch=epoch))
        await house.run_until_settled(seconds=5.0)
    await house.publish(build_request(table, epoch=1))
    await house.run_until_settled()
    assert await house.quarantined() == []
    assert (await house.receipts())[-1].duplicate
    assert len(await house.live_files()) == 6


async def test_an_epoch_that_nothing_proves_any_more_is_quarantined_if_it_is_in_the_inbox() -> None:
    house = House()
    table = await house.create_table()
    for epoch in range(6):
        await house.publish(build_request(table, epoch=epoch))
        await house.run_until_settled(seconds=5.0)
    current = await house.catalog.inner.load(table.identifier)
    old = current.metadata.snapshots[:-1]
    await _foreign(house, current, RemoveSnapshots(tuple(one.snapshot_id for one in old)))
    await house.publish(build_request(table, epoch=1))
    await house.run_until_settled()
    (record,) = await house.quarantined()
    assert record.reason == Reason.EPOCH_LANDED_UNPROVEN
    assert len(await house.live_files()) == 6


async def test_an_old_doorbell_whose_object_is_gone_is_dropped() -> None:
    house = House()
    table = await house.create_table()
    old = build_request(table, epoch=1)
    for epoch in range(6):
        await house.publish(old if epoch == 1 else build_request(table, epoch=epoch))
        await house.run_until_settled(seconds=5.0)
    await house.publish(old, durable=False)
    await house.run_until_settled()
    assert await house.quarantined() == []
    assert len(await house.live_files()) == 6


async def test_a_late_epoch_may_still_land() -> None:
    house = House()
    table = await house.create_table()
    for epoch in (0, 3, 1):
        await house.publish(build_request(table, epoch=epoch))
        await house.run_until_settled(seconds=5.0)
    entry = parse_entry((await house.load()).properties[property_key("query-1")])
    assert str(entry.epochs) == "0-1,3"
    assert len(await house.live_files()) == 3


async def test_a_rolled_back_table_freezes_its_producers() -> None:
    house = House()
    table = await house.create_table()
    await house.publish(build_request(table, epoch=0))
    await house.run_until_settled()
    current = await house.catalog.inner.load(table.identifier)
    await _foreign(house, current, RemoveSnapshotRef(MAIN))
    await house.publish(build_request(table, epoch=1))
    await house.run_until_settled()
    (record,) = await house.quarantined()
    assert record.reason == Reason.PRODUCER_FROZEN


async def test_a_ledger_property_of_another_table_claims_nothing() -> None:
    house = House()
    other = await house.create_table("db.other")
    await house.publish(build_request(other, epoch=0))
    await house.run_until_settled()
    key = property_key("query-1")
    copied = (await house.load("db.other")).properties[key]
    table = await house.create_table(properties={key: copied})
    await house.publish(build_request(table, epoch=0))
    await house.run_until_settled()
    assert len(await house.live_files()) == 1


async def _forget_shot(house: House, table: LoadedTable) -> None:
    """Let so much time go by, with commits in it, that nobody sends the request again."""
    for epoch in range(3):
        await house.settle(ONE_SHOT_KEPT_S / 2)
        await house.publish(build_request(table, producer="query-1", epoch=epoch))
        await house.settle(1.0)


async def test_a_one_shot_producers_entry_is_dropped_once_its_object_is_long_gone() -> None:
    house = House()
    table = await house.create_table()
    await house.publish(build_request(table, producer="shot", one_shot=True))
    async with house.running(reconcile_interval_s=5.0):
        await house.settle(20.0)
        assert await house.outstanding() == []
        await _forget_shot(house, table)
    properties = (await house.load()).properties
    assert property_key("shot") not in properties
    assert property_key("query-1") in properties
    assert len(await house.live_files()) == 4


async def test_a_one_shot_request_that_is_sent_again_when_it_has_left_the_inbox_lands_once() -> (
    None
):
    """Its publisher did not hear that it was durable, and knows nothing of its end."""
    house = House()
    table = await house.create_table()
    shot = build_request(table, producer="shot", one_shot=True)
    await house.publish(shot, announce=False)
    async with house.running(reconcile_interval_s=5.0):
        await house.settle(20.0)
        assert await house.outstanding() == []
        await house.publish(build_request(table, producer="query-1"))
        await house.settle(ONE_SHOT_KEPT_S / 2)
        await house.publish(shot)
        await house.settle(20.0)
    assert len(await house.live_files()) == 2
    assert await house.outstanding() == []


@pytest.mark.parametrize("clock_ahead_s", [0, 1_350], ids=["", "that-looks-new"])
async def test_a_doorbell_of_a_forgotten_one_shot_producer_does_not_land_again(
    clock_ahead_s: int,
) -> None:
    house = House()
    table = await house.create_table()
    published_at_ms = house.world.now_ms() + clock_ahead_s * 1_000
    shot = build_request(table, producer="shot", one_shot=True, published_at_ms=published_at_ms)
    await house.publish(shot)
    async with house.running(reconcile_interval_s=5.0):
        await _forget_shot(house, table)
        assert property_key("shot") not in (await house.load()).properties
        await house.publish(shot, durable=False)
        await house.settle()
    assert len(await house.live_files()) == 4


async def _land_with_gaps(house: House, table: LoadedTable) -> EpochRanges:
    """Every other epoch; return what the ledger says of them once their gaps are too many."""
    async with house.running(reconcile_interval_s=5.0):
        for epoch in range(0, 24, 2):
            await house.publish(build_request(table, epoch=epoch))
            await house.settle(1.0)
        await house.settle(20.0)
        await house.publish(build_request(table, epoch=24))
        await house.settle(1.0)
    return parse_entry((await house.load()).properties[property_key("query-1")]).epochs


async def test_gaps_of_empty_micro_batches_are_closed_when_there_are_many() -> None:
    house = House()
    table = await house.create_table()
    assert str(await _land_with_gaps(house, table)).startswith("0-22")


async def test_the_gap_of_an_epoch_in_quarantine_stays_open() -> None:
    house = House()
    table = await house.create_table()
    refused = build_request(table, epoch=7)
    record = QuarantineRecord(
        key=refused.request.inbox_key, reason="", message="", quarantined_at_ms=0
    )
    await house.quarantine.put(record, refused.content)
    assert 7 not in await _land_with_gaps(house, table)


# --- What is durable is found --------------------------------------------------------------------


async def test_what_was_never_announced_is_found_by_the_reconciler() -> None:
    house = House()
    table = await house.create_table()
    async with house.running(reconcile_interval_s=10.0):
        await house.settle(1.0)
        await house.publish(build_request(table), announce=False)
        await house.settle()
    assert len(await house.live_files()) == 1
    assert await house.outstanding() == []


async def test_without_a_queue_the_inbox_alone_is_enough() -> None:
    house = House(with_queue=False)
    table = await house.create_table()
    async with house.running():
        for epoch in range(3):
            await house.publish(build_request(table, epoch=epoch), announce=False)
            await house.settle(2.0)
    assert len(await house.live_files()) == 3


async def test_while_the_queue_is_away_requests_land_all_the_same() -> None:
    house = House()
    table = await house.create_table()
    async with house.running():
        await house.settle(1.0)
        house.server.available = False
        await house.publish(build_request(table), announce=False)
        await house.settle(30.0)
        assert len(await house.live_files()) == 1
        assert "queue" in house.health.troubles
        house.server.available = True
        await house.settle(60.0)
        assert house.health.troubles == {}


async def test_a_flushed_queue_loses_nothing() -> None:
    house = House(min_interval_ms=1_000)
    table = await house.create_table()
    async with house.running(reconcile_interval_s=5.0):
        for epoch in range(10):
            await house.publish(build_request(table, epoch=epoch))
            if epoch in (3, 6):
                house.server.flush()
            await house.settle(0.2)
        await house.settle()
    assert len(await house.live_files()) == 10
    assert await house.outstanding() == []


async def test_a_crash_at_any_moment_loses_and_doubles_nothing() -> None:
    house = House()
    table = await house.create_table()
    for epoch in range(8):
        await house.publish(build_request(table, epoch=epoch, producer=f"query-{epoch % 3}"))
    for _ in range(12):
        async with house.running():
            for _ in range(7):
                await asyncio.sleep(0)
    await house.run_until_settled(seconds=700.0)
    paths = [file.file_path for file in await house.live_files()]
    assert len(paths) == len(set(paths)) == 8
    assert await house.outstanding() == []


async def test_storage_that_is_away_delays_and_loses_nothing() -> None:
    house = House()
    table = await house.create_table()
    async with house.running():
        house.storage.is_away = True
        await house.publish(build_request(table))
        await house.settle(30.0)
        assert not house.health.is_ready
        assert await house.quarantined() == []
        house.storage.is_away = False
        await house.settle(60.0)
    assert len(await house.live_files()) == 1
    assert house.health.troubles == {}


# --- Two owners ----------------------------------------------------------------------------------


async def test_two_committers_on_one_table_land_each_request_once() -> None:
    first = House()
    table = await first.create_table()
    second = House(seed=1)
    second.storage, second.inbox_storage = first.storage, first.inbox_storage
    second.inbox, second.quarantine = first.inbox, first.quarantine
    second.catalog = first.catalog
    async with first.running(), second.running():
        for epoch in range(20):
            sealed = build_request(table, epoch=epoch)
            await first.inbox.put(sealed)
            for house in (first, second):
                await house.publisher_queue.announce([house.doorbell(sealed)])
            await first.settle(0.01)
        await first.settle(60.0)
    paths = [file.file_path for file in await first.live_files()]
    assert len(paths) == len(set(paths)) == 20
    assert await first.outstanding() == []
    assert await first.quarantined() == []


async def _foreign(house: House, current: LoadedTable, *updates: Update) -> None:
    metadata = apply_updates(
        current.metadata,
        updates,
        base_location=current.metadata_location,
        now_ms=current.metadata.last_updated_ms + 1,
    )
    location = current.metadata_location.replace(".metadata.json", "x.metadata.json")
    swap = Swap(current, (), updates, metadata, location)
    await house.storage.inner.create(house.catalog.inner.objects_before(swap))
    assert isinstance(await house.catalog.inner.swap(swap), Committed)


async def look_ups(producers: int) -> tuple[int, int]:
    """How often single objects and the inbox were looked at for so many producers that are new."""
    house = House()
    table = await house.create_table()
    for number in range(producers):
        await house.publish(build_request(table, producer=f"new-{number}"))
    await house.publish(build_request(table, producer="gone"), durable=False)
    house.inbox_storage.calls.clear()
    await house.run_until_settled(seconds=5.0)
    assert len(await house.live_files()) == producers
    return house.inbox_storage.calls["head"], house.inbox_storage.calls["list"]


async def test_many_new_producers_are_looked_up_by_one_listing() -> None:
    few_heads, few_lists = await look_ups(10)
    many_heads, many_lists = await look_ups(100)
    # One of them for the witness.
    assert (few_heads, many_heads) == (12, 1)
    assert many_lists == few_lists + 1
