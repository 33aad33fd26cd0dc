"""Write, audit, publish: snapshots that are staged, looked at, and published or picked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from committer.iceberg.metadata.snapshot import MAIN, Snapshot, SnapshotRef
from committer.iceberg.updates.metadata_update import RemoveSnapshots, SetSnapshotRef
from committer.ledger_entry import EpochRanges
from committer.plan.ledger.producer_decisions import ProducerName
from committer.ports.pointer_swap import LoadedTable
from committer.reason import Reason
from committer.request.needs import Needs
from committer.request.receipt_model import ReceiptState
from committer.request.request_format import EncodedRequest
from tests.support.builders.request_builders import (
    build_line,
    build_request,
    seal,
    sealed_manifests,
)
from tests.support.faults.faulty_catalog import Fault, FaultyCatalog
from tests.support.memory.requirements_catalog import RequirementsCatalog
from tests.support.service.decisions import producer_admin
from tests.support.service.outside import foreign_commit
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True


@pytest.fixture(params=["pointer", "requirements"])
def harness(request: pytest.FixtureRequest) -> ServiceHarness:
    harness = ServiceHarness()
    if request.param == "requirements":
        inner = RequirementsCatalog(storage=harness.storage.inner, world=harness.world)
        harness.catalog = FaultyCatalog(inner)
    return harness


def staged(
    table: LoadedTable, wap_id: str, *, producer: str, epoch: int = 0, **line: Any
) -> EncodedRequest:
    sealed = build_request(table, producer=producer, epoch=epoch, **line)
    said = {"stage_only": True, "summary": {"wap.id": wap_id}}
    bare = sealed.request.model_copy(update={**said, "manifests": ()})
    return seal(bare, sealed_manifests(sealed))


def pick(
    table: LoadedTable, needs: Mapping[str, object], *, producer: str, epoch: int = 0
) -> EncodedRequest:
    request = build_line(table, producer=producer, epoch=epoch)
    changed = {"operation": "cherry-pick", "needs": Needs.model_validate(needs), "files": ()}
    return seal(request.model_copy(update=changed), [])


async def with_a_file(harness: ServiceHarness) -> LoadedTable:
    table = await harness.create_table()
    await harness.publish(build_request(table, producer="loader"))
    await harness.run_until_settled()
    return table


async def head(harness: ServiceHarness) -> Snapshot:
    found = (await harness.load()).current_snapshot
    assert found is not None
    return found


async def test_a_staged_snapshot_has_no_ref_and_takes_numbers(harness: ServiceHarness) -> None:
    table = await with_a_file(harness)
    before = await harness.load()
    await harness.publish(staged(table, "w", producer="auditor"))
    await harness.run_until_settled()
    after = await harness.load()
    assert after.refs == before.refs
    assert after.last_sequence_number == before.last_sequence_number + 1
    (receipt,) = await harness.receipts("auditor")
    snapshot = after.snapshot_by_id(receipt.snapshot_id or 0)
    assert snapshot is not None
    assert snapshot.parent_snapshot_id == before.current_snapshot_id
    assert (snapshot.summary or {})["wap.id"] == "w"
    assert len(await harness.live_files()) == 1
    assert await harness.outstanding() == []


async def test_a_producer_that_stages_goes_on_and_is_not_taken_for_rolled_back(
    harness: ServiceHarness,
) -> None:
    table = await with_a_file(harness)
    for epoch in range(3):
        await harness.publish(staged(table, f"w{epoch}", producer="auditor", epoch=epoch))
        await harness.run_until_settled()
    await harness.publish(build_request(table, producer="auditor", epoch=3))
    # Published again: it has landed.
    await harness.run_until_settled()
    assert await harness.quarantined() == []
    assert len(await harness.live_files()) == 2
    assert len((await harness.load()).snapshots) == 5


async def test_a_staged_child_of_the_head_is_published_without_a_new_snapshot(
    harness: ServiceHarness,
) -> None:
    table = await with_a_file(harness)
    await harness.publish(staged(table, "w", producer="auditor"))
    await harness.run_until_settled()
    count = len((await harness.load()).snapshots)
    (receipt,) = await harness.receipts("auditor")
    await harness.publish(pick(table, {"wap-id": "w"}, producer="operator"))
    await harness.run_until_settled()
    assert (await head(harness)).snapshot_id == receipt.snapshot_id
    assert len((await harness.load()).snapshots) == count
    assert len(await harness.live_files()) == 2
    assert (await harness.receipts("operator"))[-1].state is ReceiptState.COMMITTED
    # And the table goes on from there.
    await harness.publish(build_request(table, producer="loader", epoch=1))
    await harness.run_until_settled()
    assert len(await harness.live_files()) == 3
    assert await harness.quarantined() == []


async def test_a_staged_append_is_made_again_on_a_head_that_moved(harness: ServiceHarness) -> None:
    table = await with_a_file(harness)
    await harness.publish(staged(table, "w", producer="auditor"))
    await harness.run_until_settled()
    (receipt,) = await harness.receipts("auditor")
    await harness.publish(build_request(table, producer="loader", epoch=1))
    await harness.run_until_settled()
    moved = await head(harness)
    await harness.publish(pick(table, {"wap-id": "w"}, producer="operator"))
    await harness.run_until_settled()
    made = await head(harness)
    assert (made.parent_snapshot_id, made.operation) == (moved.snapshot_id, "append")
    summary = made.summary or {}
    assert summary["published-wap-id"] == "w"
    assert summary["source-snapshot-id"] == str(receipt.snapshot_id)
    assert (summary["added-data-files"], summary["total-data-files"]) == ("1", "3")
    assert "wap.id" not in summary
    assert len(await harness.live_files()) == 3


@pytest.mark.parametrize("moves", [False, True])
async def test_a_wap_id_is_published_once(harness: ServiceHarness, moves: bool) -> None:
    table = await with_a_file(harness)
    await harness.publish(staged(table, "w", producer="auditor"))
    await harness.run_until_settled()
    if moves:
        await harness.publish(build_request(table, producer="loader", epoch=1))
        await harness.run_until_settled()
    for producer in ("first", "second"):
        await harness.publish(pick(table, {"wap-id": "w"}, producer=producer))
        await harness.run_until_settled()
    (record,) = await harness.quarantined()
    assert (record.reason, record.conflict) == (Reason.CONFLICT, "picked")
    assert len(await harness.live_files()) == 2 + moves


@pytest.mark.parametrize("fault", [Fault.LOST_REPLY, Fault.REQUEST_LOST, Fault.CONFLICT])
async def test_a_lost_answer_stages_and_publishes_once(
    harness: ServiceHarness, fault: Fault
) -> None:
    table = await with_a_file(harness)
    harness.catalog.plan(fault)
    await harness.publish(staged(table, "w", producer="auditor"))
    await harness.run_until_settled()
    metadata = await harness.load()
    found = [one for one in metadata.snapshots if (one.summary or {}).get("wap.id") == "w"]
    assert len(found) == 1
    harness.catalog.plan(fault)
    await harness.publish(pick(table, {"wap-id": "w"}, producer="operator"))
    await harness.run_until_settled()
    assert await harness.quarantined() == []
    assert len(await harness.live_files()) == 2
    assert await harness.outstanding() == []


# --- Sent again after the ledger has forgotten it ------------------------------------------------


async def land_three(harness: ServiceHarness, table: LoadedTable) -> EncodedRequest:
    """Stage three epochs of one producer, each by a committer of its own; return the first."""
    requests = [staged(table, f"w{epoch}", producer="auditor", epoch=epoch) for epoch in range(3)]
    await harness.land_in_turn(*requests)
    return requests[0]


async def test_a_staged_epoch_that_comes_again_is_proven_by_its_snapshot(
    harness: ServiceHarness,
) -> None:
    table = await with_a_file(harness)
    first = await land_three(harness, table)
    before = await harness.load()
    (landed, *_) = await harness.receipts("auditor")
    await harness.publish(first)
    await harness.run_until_settled()
    assert await harness.quarantined() == []
    receipt = (await harness.receipts("auditor"))[-1]
    assert (receipt.state, receipt.snapshot_id) == (ReceiptState.COMMITTED, landed.snapshot_id)
    assert (await harness.load()).snapshots == before.snapshots
    assert await harness.outstanding() == []


async def test_another_content_of_a_staged_epoch_is_no_duplicate(harness: ServiceHarness) -> None:
    table = await with_a_file(harness)
    await land_three(harness, table)
    await harness.publish(
        staged(table, "w0", producer="auditor", epoch=0, fingerprint="something else")
    )
    await harness.run_until_settled()
    (record,) = await harness.quarantined()
    assert record.reason == Reason.EPOCH_CONTENT_DIFFERS


async def test_a_staged_epoch_whose_snapshot_has_expired_is_proven_by_a_metadata_file(
    harness: ServiceHarness,
) -> None:
    table = await with_a_file(harness)
    first = await land_three(harness, table)
    await expire_staged(harness, table)
    await harness.publish(first)
    await harness.run_until_settled()
    assert await harness.quarantined() == []
    assert [one.epoch for one in await harness.receipts("auditor")] == [0, 1, 2, 0]


async def test_a_snapshot_that_a_rollback_removed_proves_no_epoch_that_was_not_staged(
    harness: ServiceHarness,
) -> None:
    """Its rows are not in the table, though its snapshot is retained, and so are metadata files."""
    table = await with_a_file(harness)
    base = (await head(harness)).snapshot_id
    requests = [build_request(table, producer="auditor", epoch=epoch) for epoch in range(3)]
    await harness.land_in_turn(*requests)
    await foreign_commit(harness, table, SetSnapshotRef(MAIN, SnapshotRef(base)))
    name = ProducerName("auditor", MAIN)
    await producer_admin(harness).thaw(table.identifier, name, EpochRanges())
    await harness.publish(requests[0])
    await harness.run_until_settled()
    (record,) = await harness.quarantined()
    assert record.reason == Reason.EPOCH_LANDED_UNPROVEN


@pytest.mark.parametrize("is_rolled_back", [False, True])
async def test_a_pick_that_made_no_snapshot_is_proven_while_the_picked_one_is_in_the_history(
    harness: ServiceHarness, is_rolled_back: bool
) -> None:
    table = await with_a_file(harness)
    base = (await head(harness)).snapshot_id
    picks = []
    async with harness.running():
        for epoch in range(3):
            await harness.publish(staged(table, f"w{epoch}", producer="auditor", epoch=epoch))
            await harness.settle(10.0)
            picks.append(pick(table, {"wap-id": f"w{epoch}"}, producer="publisher", epoch=epoch))
            await harness.publish(picks[-1])
            await harness.settle(10.0)
    if is_rolled_back:
        await foreign_commit(harness, table, SetSnapshotRef(MAIN, SnapshotRef(base)))
        name = ProducerName("publisher", MAIN)
        await producer_admin(harness).thaw(table.identifier, name, EpochRanges())
    await harness.publish(picks[0])
    await harness.run_until_settled()
    reasons = [record.reason for record in await harness.quarantined()]
    assert reasons == [Reason.EPOCH_LANDED_UNPROVEN] * is_rolled_back


async def expire_staged(harness: ServiceHarness, table: LoadedTable) -> None:
    """Expire the staged snapshots, as another engine does."""
    snapshots = (await harness.load()).snapshots
    staged_ids = tuple(one.snapshot_id for one in snapshots if "wap.id" in (one.summary or {}))
    await foreign_commit(harness, table, RemoveSnapshots(staged_ids))
