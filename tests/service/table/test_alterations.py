"""Changes of a table in order with the data: from the request to its end, on catalogs that swap a
pointer and on those that check requirements.
"""

from __future__ import annotations

import pytest

from committer.iceberg.metadata.snapshot import SnapshotRef
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.ledger_entry import parse_entry, property_key
from committer.ports.pointer_swap import LoadedTable
from committer.ports.storage import NewObject
from committer.reason import Reason
from committer.request.receipt_model import ReceiptState
from committer.request.request_format import EncodedRequest
from tests.support.builders.alter_requests import build_alter
from tests.support.builders.request_builders import build_request
from tests.support.faults.faulty_catalog import Fault, FaultyCatalog
from tests.support.memory.requirements_catalog import RequirementsCatalog
from tests.support.service.outside import foreign_append
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True
ADD_X = {"action": "add-column", "name": "x", "type": "int"}
AUDIT = {"action": "create-branch", "name": "audit"}


COMMAND = "frazil-operator-0199"


@pytest.fixture(params=["pointer", "requirements"])
def harness(request: pytest.FixtureRequest) -> ServiceHarness:
    harness = ServiceHarness()
    if request.param == "requirements":
        inner = RequirementsCatalog(storage=harness.storage.inner, world=harness.world)
        harness.catalog = FaultyCatalog(inner)
    return harness


def columns(metadata: TableMetadata) -> list[str]:
    return [field.name for field in metadata.current_schema.fields]


async def test_a_change_lands_with_its_ledger_entry_in_one_swap(harness: ServiceHarness) -> None:
    table = await harness.create_table()
    await harness.publish(build_request(table, producer="loader"))
    await harness.run_until_settled()
    before = await harness.load()
    swaps = harness.catalog.calls["swap"]
    await harness.publish(build_alter(table, ADD_X, AUDIT, producer="operator"))
    await harness.run_until_settled()
    after = await harness.load()
    assert harness.catalog.calls["swap"] == swaps + 1
    assert columns(after) == [*columns(before), "x"]
    assert after.refs["audit"].snapshot_id == before.current_snapshot_id
    entry = parse_entry(after.properties[property_key("operator")])
    assert 0 in entry.epochs
    (receipt,) = await harness.receipts("operator")
    assert receipt.state is ReceiptState.COMMITTED
    assert await harness.outstanding() == []
    # A snapshot is made only where the catalog checks nothing but heads.
    is_pointer = harness.catalog.capabilities.condition == "pointer"
    assert len(after.snapshots) == len(before.snapshots) + (not is_pointer)


async def test_requests_behind_a_change_are_checked_against_the_table_that_it_makes(
    harness: ServiceHarness,
) -> None:
    """All wait together: the branch that the second one goes to is not there before."""
    table = await harness.create_table()
    await harness.publish(build_request(table, producer="first"))
    await harness.publish(build_alter(table, AUDIT, producer="operator"))
    await harness.publish(build_request(table, producer="second", branch="audit"))
    await harness.run_until_settled()
    assert await harness.quarantined() == []
    metadata = await harness.load()
    main, audit = (metadata.refs[name].snapshot_id for name in ("main", "audit"))
    assert metadata.is_ancestor(main, of=audit) or len(metadata.snapshots) > 2
    (receipt,) = await harness.receipts("second")
    assert receipt.snapshot_id == audit != main


async def test_a_change_of_a_table_without_snapshots_freezes_nobody(
    harness: ServiceHarness,
) -> None:
    table = await harness.create_table()
    await harness.publish(build_alter(table, ADD_X, producer="operator", epoch=0))
    await harness.run_until_settled()
    await harness.publish(build_alter(table, {**ADD_X, "name": "y"}, producer="operator", epoch=1))
    await harness.publish(build_request(table, producer="loader"))
    await harness.run_until_settled()
    assert await harness.quarantined() == []
    assert columns(await harness.load())[-2:] == ["x", "y"]
    assert len(await harness.live_files()) == 1


async def test_what_does_not_fit_is_a_conflict_and_its_neighbors_land(
    harness: ServiceHarness,
) -> None:
    table = await harness.create_table()
    await harness.publish(build_request(table, producer="a"))
    await harness.publish(
        build_alter(
            table,
            {"action": "drop-column", "name": "no"},
            producer="operator",
            needs={"on-conflict": "fail"},
        )
    )
    await harness.publish(build_request(table, producer="b"))
    await harness.run_until_settled()
    (record,) = await harness.quarantined()
    assert (record.reason, record.conflict) == (Reason.CONFLICT, "incompatible")
    assert record.message.startswith("incompatible: expected a column `no`")
    assert len(await harness.live_files()) == 2
    assert await harness.outstanding() == []


async def test_a_change_is_planned_anew_behind_another_engines(harness: ServiceHarness) -> None:
    table = await harness.create_table()
    await harness.publish(build_request(table, producer="loader"))
    async with harness.running():
        await harness.settle(5.0)
        await foreign_append(harness, await harness.catalog.inner.load(table.identifier))
        await harness.publish(build_alter(table, ADD_X, producer="operator"))
        await harness.settle(30.0)
    assert columns(await harness.load())[-1] == "x"


@pytest.mark.parametrize("fault", [Fault.LOST_REPLY, Fault.REQUEST_LOST, Fault.CONFLICT])
async def test_a_change_whose_answer_was_lost_is_made_once(
    harness: ServiceHarness, fault: Fault
) -> None:
    table = await harness.create_table()
    await harness.publish(build_request(table, producer="loader"))
    await harness.run_until_settled()
    harness.catalog.plan(fault)
    await harness.publish(build_alter(table, ADD_X, producer="operator"))
    await harness.run_until_settled()
    metadata = await harness.load()
    assert columns(metadata).count("x") == 1
    assert await harness.quarantined() == []
    assert await harness.outstanding() == []
    assert (await harness.receipts("operator"))[-1].state is ReceiptState.COMMITTED


@pytest.mark.parametrize("fault", [Fault.LOST_REPLY, Fault.REQUEST_LOST, Fault.CONFLICT])
async def test_a_rollback_whose_answer_was_lost_is_made_once(
    harness: ServiceHarness, fault: Fault
) -> None:
    """It makes no snapshot that would show whether it has landed: the ledger does."""
    table = await harness.create_table()
    for epoch in range(2):
        await harness.publish(build_request(table, producer="loader", epoch=epoch))
        await harness.run_until_settled()
    first = (await harness.load()).snapshots[0].snapshot_id
    harness.catalog.plan(fault)
    back = {"action": "rollback-to-snapshot", "snapshot-id": first}
    await harness.publish(build_alter(table, back, producer="operator"))
    await harness.run_until_settled()
    metadata = await harness.load()
    assert metadata.current_snapshot_id == first
    moves = [one for one in metadata.snapshot_log if one.snapshot_id == first]
    assert len(moves) == 2
    assert (await harness.receipts("operator"))[-1].state is ReceiptState.COMMITTED
    assert await harness.quarantined() == []
    assert await harness.outstanding() == []


async def test_a_rollback_lands_and_freezes_who_lost_epochs(harness: ServiceHarness) -> None:
    table = await harness.create_table()
    for epoch in range(3):
        await harness.publish(build_request(table, producer="loader", epoch=epoch))
        await harness.run_until_settled()
    first = (await harness.load()).snapshots[0].snapshot_id
    await harness.publish(
        build_alter(
            table,
            {"action": "rollback-to-snapshot", "snapshot-id": first},
            producer="operator",
        )
    )
    await harness.publish(build_request(table, producer="loader", epoch=3))
    await harness.publish(build_request(table, producer="other", epoch=0))
    await harness.run_until_settled()
    metadata = await harness.load()
    (record,) = await harness.quarantined()
    assert record.reason == Reason.PRODUCER_FROZEN
    assert [one.snapshot_id for one in metadata.branch_history()][-1] == first
    assert len(await harness.live_files()) == 2
    assert metadata.refs["main"] == SnapshotRef(metadata.current_snapshot_id or 0)


async def test_a_change_beside_a_stream_of_appends_stops_none(harness: ServiceHarness) -> None:
    table = await harness.create_table()
    async with harness.running():
        for epoch in range(6):
            await harness.publish(build_request(table, producer="loader", epoch=epoch))
            if epoch % 2:
                change = {**ADD_X, "name": f"x{epoch}"}
                await harness.publish(build_alter(table, change, producer=f"operator-{epoch}"))
        await harness.settle(60.0)
    assert columns(await harness.load())[-3:] == ["x1", "x3", "x5"]
    assert len(await harness.live_files()) == 6
    assert await harness.quarantined() == []


async def test_of_a_refused_command_only_the_answer_is_kept_whatever_the_reason() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    refused = build_alter(table, AUDIT, producer=COMMAND, one_shot=True, branch="nope")
    await harness.publish(refused)
    await harness.run_until_settled()
    (record,) = await harness.quarantined()
    assert (record.reason, record.is_told_only) == (Reason.BRANCH_UNKNOWN, True)
    assert (await harness.quarantine.get(record.key))[1] == b""
    assert "frazil_quarantine_requests{" not in harness.status_collector.page().decode()
    (receipt,) = await harness.receipts(COMMAND)
    assert (receipt.state, receipt.reason) == (ReceiptState.QUARANTINED, Reason.BRANCH_UNKNOWN)
    assert await harness.outstanding() == []


async def test_a_command_that_the_catalog_refuses_is_kept_as_another_committer_may_land_it() -> (
    None
):
    harness = ServiceHarness()
    table = await harness.create_table()
    refused = build_alter(table, ADD_X, producer=COMMAND, one_shot=True)
    harness.catalog.plan(Fault.REJECTED)
    await harness.publish(refused)
    await harness.run_until_settled()
    (record,) = await harness.quarantined()
    assert (record.reason, record.is_told_only) == (Reason.COMMIT_REJECTED, False)
    assert (await harness.quarantine.get(record.key))[1] == refused.content


async def test_a_refused_request_with_files_is_kept_whatever_its_producer_is_called() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    refused = build_request(table, producer=COMMAND, one_shot=True, branch="nope")
    await harness.publish(refused)
    await harness.run_until_settled()
    (record,) = await harness.quarantined()
    assert (record.reason, record.is_told_only) == (Reason.BRANCH_UNKNOWN, False)
    assert (await harness.quarantine.get(record.key))[1] == refused.content


# --- Sent again after the ledger has forgotten it ------------------------------------------------


async def alter_three_times(harness: ServiceHarness, table: LoadedTable) -> EncodedRequest:
    """Land three changes of one producer; return the first."""
    changes = ({**ADD_X, "name": name} for name in ("x", "y", "z"))
    requests = [
        build_alter(table, change, producer="operator", epoch=epoch)
        for epoch, change in enumerate(changes)
    ]
    await harness.land_in_turn(*requests)
    return requests[0]


@pytest.mark.parametrize("codec", ["none", "gzip"])
async def test_a_change_that_comes_again_is_proven_by_a_metadata_file_or_its_snapshot(
    harness: ServiceHarness, codec: str
) -> None:
    table = await harness.create_table(properties={"write.metadata.compression-codec": codec})
    for epoch in range(4):
        await harness.publish(build_request(table, producer="loader", epoch=epoch))
        await harness.run_until_settled()
    first = await alter_three_times(harness, table)
    for epoch in range(4, 20):
        await harness.publish(build_request(table, producer="loader", epoch=epoch))
        await harness.run_until_settled()
    (landed, *_) = await harness.receipts("operator")
    await harness.publish(first)
    await harness.run_until_settled()
    assert await harness.quarantined() == []
    receipt = (await harness.receipts("operator"))[-1]
    assert (receipt.epoch, receipt.snapshot_id) == (0, landed.snapshot_id)
    assert columns(await harness.load())[-3:] == ["x", "y", "z"]
    assert await harness.outstanding() == []


async def test_another_change_under_a_landed_epoch_is_no_duplicate(harness: ServiceHarness) -> None:
    table = await harness.create_table()
    await alter_three_times(harness, table)
    other = build_alter(
        table, {**ADD_X, "name": "w"}, producer="operator", epoch=0, fingerprint="something else"
    )
    await harness.publish(other)
    await harness.run_until_settled()
    (record,) = await harness.quarantined()
    assert record.reason == Reason.EPOCH_CONTENT_DIFFERS
    assert "w" not in columns(await harness.load())


async def test_a_change_that_no_retained_metadata_file_proves_is_quarantined_with_what_to_do() -> (
    None
):
    harness = ServiceHarness()
    table = await harness.create_table(properties={"write.metadata.previous-versions-max": "1"})
    first = await alter_three_times(harness, table)
    await harness.publish(build_request(table, producer="loader"))
    await harness.run_until_settled()
    await harness.publish(first)
    await harness.run_until_settled()
    (record,) = await harness.quarantined()
    assert record.reason == Reason.EPOCH_LANDED_UNPROVEN
    assert record.message == (
        "epoch 0 of producer `operator` landed so long ago that neither the ledger, nor a manifest"
        " list, nor a metadata file in the table's log proves what it stood for; if the table has"
        " its change, discard this request; if not, `frazil quarantine replay --force` it"
    )


async def test_a_metadata_file_that_is_gone_or_torn_proves_nothing() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    first = await alter_three_times(harness, table)
    log = [one.metadata_file for one in (await harness.load()).metadata_log]
    storage = harness.storage.inner
    await storage.delete([log[0]])
    for location in log[1:]:
        await storage.delete([location])
        await storage.create([NewObject(location, b"{")])
    await harness.publish(first)
    await harness.run_until_settled()
    (record,) = await harness.quarantined()
    assert record.reason == Reason.EPOCH_LANDED_UNPROVEN
