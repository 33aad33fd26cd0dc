"""The ledger, asked by a running committer: replays, late epochs, rollbacks, one-shot producers."""

from __future__ import annotations

import pytest

from committer.iceberg.metadata.snapshot import MAIN
from committer.iceberg.updates.metadata_update import RemoveSnapshotRef, RemoveSnapshots
from committer.ledger_entry import EpochRanges, parse_entry, property_key
from committer.ports.pointer_swap import LoadedTable
from committer.reason import Reason
from committer.request.receipt_model import ReceiptState
from committer.service.upkeep.ledger_upkeep import ONE_SHOT_KEPT_S
from committer.storage.inbox.inbox import QuarantineRecord
from tests.support.builders.request_builders import build_request
from tests.support.service.outside import foreign_commit
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True


async def test_a_replayed_epoch_with_equal_fingerprint_is_acknowledged_and_not_added() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    first = build_request(table, epoch=4)
    await harness.publish(first)
    await harness.run_until_settled()
    await harness.publish(build_request(table, epoch=4))
    await harness.run_until_settled()
    assert len(await harness.live_files()) == 1
    _, replay = await harness.receipts()
    assert (replay.state, replay.duplicate) == (ReceiptState.COMMITTED, True)
    assert await harness.outstanding() == []


async def test_an_epoch_with_another_fingerprint_is_quarantined_never_skipped() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await harness.publish(build_request(table, epoch=4))
    await harness.run_until_settled()
    await harness.publish(build_request(table, epoch=4, fingerprint="something else"))
    await harness.run_until_settled()
    (record,) = await harness.quarantined()
    assert record.reason == Reason.EPOCH_CONTENT_DIFFERS
    assert len(await harness.live_files()) == 1


async def test_two_attempts_of_one_epoch_in_one_batch_land_as_one() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    for _ in range(2):
        await harness.publish(build_request(table, epoch=7, files_count=3))
    await harness.run_until_settled()
    files = await harness.live_files()
    assert len(files) == 3
    attempts = {file.file_path.rsplit("/", 1)[1][6:] for file in files}
    assert len(attempts) == 1
    assert sorted(receipt.duplicate for receipt in await harness.receipts()) == [False, True]


async def test_an_epoch_that_only_a_manifest_list_still_knows_is_acknowledged() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await harness.land_in_turn(*(build_request(table, epoch=epoch) for epoch in range(6)))
    await harness.publish(build_request(table, epoch=1))
    await harness.run_until_settled()
    assert await harness.quarantined() == []
    assert (await harness.receipts())[-1].duplicate
    assert len(await harness.live_files()) == 6


async def test_an_epoch_that_nothing_proves_any_more_is_quarantined_if_it_is_in_the_inbox() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await harness.land_in_turn(*(build_request(table, epoch=epoch) for epoch in range(6)))
    old = (await harness.load()).snapshots[:-1]
    await foreign_commit(harness, table, RemoveSnapshots(tuple(one.snapshot_id for one in old)))
    await harness.publish(build_request(table, epoch=1))
    await harness.run_until_settled()
    (record,) = await harness.quarantined()
    assert record.reason == Reason.EPOCH_LANDED_UNPROVEN
    assert len(await harness.live_files()) == 6


async def test_an_old_doorbell_whose_object_is_gone_is_dropped() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    old = build_request(table, epoch=1)
    others = [build_request(table, epoch=epoch) for epoch in (0, 2, 3, 4, 5)]
    await harness.land_in_turn(others[0], old, *others[1:])
    await harness.publish(old, durable=False)
    await harness.run_until_settled()
    assert await harness.quarantined() == []
    assert len(await harness.live_files()) == 6


async def test_a_late_epoch_may_still_land() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    for epoch in (0, 3, 1):
        await harness.publish(build_request(table, epoch=epoch))
        await harness.run_until_settled(seconds=5.0)
    entry = parse_entry((await harness.load()).properties[property_key("query-1")])
    assert str(entry.epochs) == "0-1,3"
    assert len(await harness.live_files()) == 3


async def test_a_rolled_back_table_freezes_its_producers() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await harness.publish(build_request(table, epoch=0))
    await harness.run_until_settled()
    await foreign_commit(harness, table, RemoveSnapshotRef(MAIN))
    await harness.publish(build_request(table, epoch=1))
    await harness.run_until_settled()
    (record,) = await harness.quarantined()
    assert record.reason == Reason.PRODUCER_FROZEN


async def test_a_ledger_property_of_another_table_claims_nothing() -> None:
    harness = ServiceHarness()
    other = await harness.create_table("db.other")
    await harness.publish(build_request(other, epoch=0))
    await harness.run_until_settled()
    key = property_key("query-1")
    copied = (await harness.load("db.other")).properties[key]
    table = await harness.create_table(properties={key: copied})
    await harness.publish(build_request(table, epoch=0))
    await harness.run_until_settled()
    assert len(await harness.live_files()) == 1


async def _forget_shot(harness: ServiceHarness, table: LoadedTable) -> None:
    """Pass enough time, with commits in it, that no publisher sends the request again."""
    for epoch in range(3):
        await harness.settle(ONE_SHOT_KEPT_S / 2)
        await harness.publish(build_request(table, producer="query-1", epoch=epoch))
        await harness.settle(1.0)


async def test_a_one_shot_producers_entry_is_dropped_once_its_object_is_long_gone() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await harness.publish(build_request(table, producer="shot", one_shot=True))
    async with harness.running(reconcile_interval_s=5.0):
        await harness.settle(20.0)
        assert await harness.outstanding() == []
        # Its publisher may send it again for a while.
        await harness.publish(build_request(table, producer="query-2"))
        await harness.settle(20.0)
        assert property_key("shot") in (await harness.load()).properties
        await _forget_shot(harness, table)
    properties = (await harness.load()).properties
    assert property_key("shot") not in properties
    assert property_key("query-1") in properties
    assert len(await harness.live_files()) == 5


async def test_a_one_shot_request_that_is_sent_again_when_it_has_left_the_inbox_lands_once() -> (
    None
):
    """Its publisher did not hear that it was durable, and knows nothing of its end."""
    harness = ServiceHarness()
    table = await harness.create_table()
    shot = build_request(table, producer="shot", one_shot=True)
    await harness.publish(shot, announce=False)
    async with harness.running(reconcile_interval_s=5.0):
        await harness.settle(20.0)
        assert await harness.outstanding() == []
        await harness.publish(build_request(table, producer="query-1"))
        await harness.settle(ONE_SHOT_KEPT_S / 2)
        await harness.publish(shot)
        await harness.settle(20.0)
    assert len(await harness.live_files()) == 2
    assert await harness.outstanding() == []
    # Its entry still tells what it stood for; a tombstone would not.
    assert await harness.quarantined() == []


@pytest.mark.parametrize("clock_ahead_s", [0, 1_350], ids=["", "that-looks-new"])
async def test_a_doorbell_of_a_forgotten_one_shot_producer_does_not_land_again(
    clock_ahead_s: int,
) -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    published_at_ms = harness.world.now_ms() + clock_ahead_s * 1_000
    shot = build_request(table, producer="shot", one_shot=True, published_at_ms=published_at_ms)
    await harness.publish(shot)
    async with harness.running(reconcile_interval_s=5.0):
        await _forget_shot(harness, table)
        assert property_key("shot") not in (await harness.load()).properties
        await harness.publish(shot, durable=False)
        await harness.settle()
    assert len(await harness.live_files()) == 4


async def _land_with_gaps(harness: ServiceHarness, table: LoadedTable) -> EpochRanges:
    """Land every other epoch; return the ledger's ranges once their gaps are too many."""
    async with harness.running(reconcile_interval_s=5.0):
        for epoch in range(0, 24, 2):
            await harness.publish(build_request(table, epoch=epoch))
            await harness.settle(1.0)
        await harness.settle(20.0)
        await harness.publish(build_request(table, epoch=24))
        await harness.settle(1.0)
    return parse_entry((await harness.load()).properties[property_key("query-1")]).epochs


async def test_gaps_of_empty_micro_batches_are_closed_when_there_are_many() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    assert str(await _land_with_gaps(harness, table)).startswith("0-22")


async def test_the_gap_of_an_epoch_in_quarantine_stays_open() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    refused = build_request(table, epoch=7)
    record = QuarantineRecord(
        key=refused.request.inbox_key, reason="", message="", quarantined_at_ms=0
    )
    await harness.quarantine.put(record, refused.content)
    assert 7 not in await _land_with_gaps(harness, table)
