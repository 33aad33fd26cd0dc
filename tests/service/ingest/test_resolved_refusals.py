"""A request that one committer was refused while another landed it does not stay in quarantine."""

from __future__ import annotations

import pytest

from committer.iceberg.metadata.snapshot import MAIN, SnapshotRef
from committer.iceberg.updates.metadata_update import RemoveProperties, SetSnapshotRef
from committer.ledger_entry import property_key
from committer.ports.pointer_swap import LoadedTable
from committer.reason import Reason
from committer.request.request_format import EncodedRequest
from committer.service.ingest.poller import REFUSED_AGE_MS_MAX, Poller
from committer.service.ingest.resolved_refusals import ResolvedRefusals
from committer.storage.inbox import QuarantineRecord
from tests.support.builders.request_builders import build_request
from tests.support.service.outside import foreign_commit
from tests.support.service.service_harness import INBOX, ServiceHarness

VIRTUAL_TIME = True


def watch(house: ServiceHarness) -> Poller:
    return Poller(
        queue=house.queue,
        quarantine=house.quarantine,
        storage=house.storage.inner,
        folders={"witness": f"{INBOX}/witness/"},
        resolved_refusals=ResolvedRefusals(house.catalog, house.storage, house.quarantine),
        world=house.world,
        metrics=house.metrics,
    )


async def refuse(house: ServiceHarness, sealed: EncodedRequest, reason: Reason) -> str:
    """Quarantine a request, as a committer does that was refused it and did not see it land."""
    key = sealed.request.inbox_key
    now_ms = house.world.now_ms()
    record = QuarantineRecord(key=key, reason=reason.value, message="", quarantined_at_ms=now_ms)
    await house.quarantine.put(record, sealed.content)
    return key


async def land(house: ServiceHarness, table: LoadedTable, epoch: int) -> EncodedRequest:
    sealed = build_request(table, epoch=epoch)
    async with house.running():
        await house.publish(sealed)
        await house.settle(10.0)
    return sealed


async def quarantined(house: ServiceHarness) -> list[str]:
    return [found.key async for found in house.quarantine.list()]


@pytest.mark.parametrize("is_remembered", [True, False])
async def test_what_landed_leaves_the_quarantine_and_nothing_else_does(is_remembered: bool) -> None:
    house = ServiceHarness()
    table = await house.create_table()
    landed = await land(house, table, 0)
    if not is_remembered:  # then the manifest list tells
        await foreign_commit(house, table, RemoveProperties((property_key("query-1"),)))
    await refuse(house, landed, Reason.COMMIT_REJECTED)
    # Another attempt of the epoch that landed, and one that no committer has landed.
    others = [build_request(table, epoch=0), build_request(table, epoch=1)]
    kept = [await refuse(house, one, Reason.COMMIT_REJECTED) for one in others]
    await watch(house).look()
    assert await quarantined(house) == sorted(kept)


async def test_what_is_there_for_another_reason_stays() -> None:
    house = ServiceHarness()
    landed = await land(house, await house.create_table(), 0)
    key = await refuse(house, landed, Reason.EPOCH_LANDED_UNPROVEN)
    await watch(house).look()
    assert await quarantined(house) == [key]


async def test_what_landed_and_was_rolled_back_stays() -> None:
    house = ServiceHarness()
    table = await house.create_table()
    await land(house, table, 0)
    first = (await house.load()).snapshots[0].snapshot_id
    key = await refuse(house, await land(house, table, 1), Reason.COMMIT_REJECTED)
    await foreign_commit(house, table, SetSnapshotRef(MAIN, SnapshotRef(first, "branch")))
    await watch(house).look()
    assert await quarantined(house) == [key]


async def test_a_table_that_is_gone_or_another_one_hides_no_other() -> None:
    house = ServiceHarness()
    table, other = await house.create_table(), await house.create_table("db.other")
    keys = [await refuse(house, build_request(other), Reason.COMMIT_REJECTED)]
    await house.catalog.inner.drop_table(other.identifier)
    await refuse(house, await land(house, table, 0), Reason.COMMIT_REJECTED)
    await watch(house).look()
    assert await quarantined(house) == keys


async def test_a_record_is_looked_at_while_an_attempt_may_be_on_its_way_and_no_longer() -> None:
    house = ServiceHarness()
    table = await house.create_table()
    await refuse(house, build_request(table), Reason.COMMIT_REJECTED)
    watching = watch(house)
    await watching.look()
    await watching.look()
    assert house.catalog.calls["load"] == 2
    await house.settle(REFUSED_AGE_MS_MAX / 1000 + 1.0)
    await watching.look()
    assert house.catalog.calls["load"] == 2
