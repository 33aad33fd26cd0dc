"""Requests that create their branch, from the inbox to the receipt."""

from __future__ import annotations

import pytest

from committer.iceberg.updates.metadata_update import RemoveSnapshotRef
from committer.ports.pointer_swap import LoadedTable
from committer.reason import Reason
from committer.request.receipt_model import ReceiptState
from committer.request.request_format import EncodedRequest
from tests.support.builders.request_builders import build_request
from tests.support.faults.faulty_catalog import Fault, FaultyCatalog
from tests.support.memory.requirements_catalog import RequirementsCatalog
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


def on_audit(table: LoadedTable, epoch: int = 0, producer: str = "auditor") -> EncodedRequest:
    return build_request(table, producer=producer, epoch=epoch, branch="audit", create_branch=True)


@pytest.mark.parametrize("is_empty", [False, True])
async def test_several_requests_land_on_the_branch_that_the_first_creates(
    harness: ServiceHarness, is_empty: bool
) -> None:
    table = await harness.create_table()
    if not is_empty:
        await harness.publish(build_request(table, producer="loader"))
        await harness.run_until_settled()
    before = await harness.load()
    for number in range(3):
        await harness.publish(on_audit(table, producer=f"auditor-{number}"))
    await harness.run_until_settled()
    metadata = await harness.load()
    assert metadata.current_snapshot_id == before.current_snapshot_id
    audit = metadata.branch_head("audit")
    assert (audit.summary or {})["total-data-files"] == str(3 + (not is_empty)) if audit else False
    for number in range(3):
        (receipt,) = await harness.receipts(f"auditor-{number}")
        assert receipt.state is ReceiptState.COMMITTED
    assert await harness.quarantined() == []


@pytest.mark.parametrize("fault", [Fault.LOST_REPLY, Fault.REQUEST_LOST, Fault.CONFLICT])
async def test_whatever_the_swap_answers_the_branch_begins_once(
    harness: ServiceHarness, fault: Fault
) -> None:
    table = await harness.create_table()
    await harness.publish(build_request(table, producer="loader"))
    await harness.run_until_settled()
    harness.catalog.plan(fault)
    await harness.publish(on_audit(table))
    await harness.run_until_settled()
    metadata = await harness.load()
    history = [one.snapshot_id for one in metadata.branch_history("audit")]
    assert history[1:] == [metadata.current_snapshot_id]
    assert await harness.quarantined() == []
    assert await harness.outstanding() == []


async def test_a_producer_whose_branch_was_removed_with_its_rows_waits_for_an_operator(
    harness: ServiceHarness,
) -> None:
    table = await harness.create_table()
    await harness.publish(build_request(table, producer="loader"))
    await harness.publish(on_audit(table))
    await harness.run_until_settled()
    await foreign_commit(harness, table, RemoveSnapshotRef("audit"))
    await harness.publish(on_audit(table, 1))
    await harness.publish(on_audit(table, producer="another"))
    await harness.run_until_settled()
    (record,) = await harness.quarantined()
    assert record.reason == Reason.PRODUCER_FROZEN
    assert (await harness.receipts("auditor"))[-1].reason == Reason.PRODUCER_FROZEN
    assert "audit" in (await harness.load()).refs
