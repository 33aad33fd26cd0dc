"""Ordered producers: their epochs land in ascending order, and one in quarantine stops them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from committer.ports.pointer_swap import LoadedTable
from committer.ports.storage import NewObject
from committer.request.request_format import EncodedRequest
from tests.support.builders.operation_requests import build_operation
from tests.support.builders.request_builders import build_request, ordered
from tests.support.service.outside import foreign_commit
from tests.support.service.scripted import branch_at
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True
GONE = ["memory://warehouse/db/flights/data/never.parquet"]


def append(table: LoadedTable, epoch: int, branch: str = "main") -> EncodedRequest:
    return ordered(build_request(table, epoch=epoch, branch=branch))


def conflicting(table: LoadedTable, epoch: int, **needs: object) -> EncodedRequest:
    needs = {"removed-data-files": GONE, **needs}
    return ordered(build_operation(table, "delete", epoch=epoch, needs=needs))


async def landed(harness: ServiceHarness) -> list[int]:
    """Return the epochs in the order in which they have landed."""
    receipts = await harness.receipts()
    found = [one for one in receipts if one.snapshot_id is not None]
    return [one.epoch for one in sorted(found, key=lambda one: one.sequence_number or 0)]


async def test_epochs_that_follow_one_another_ask_for_nothing() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running():
        await harness.publish(append(table, 0))
        await harness.settle(5.0)
        before = harness.inbox_storage.calls["list"]
        for epoch in range(1, 4):
            await harness.publish(append(table, epoch))
            await harness.settle(2.0)
        assert harness.inbox_storage.calls["list"] == before
    assert await landed(harness) == [0, 1, 2, 3]


async def test_a_lower_epoch_in_the_inbox_comes_first() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running(reconcile_interval_s=60.0):
        await harness.publish(append(table, 0))
        await harness.settle(5.0)
        await harness.publish(append(table, 1), announce=False)
        await harness.publish(append(table, 3))
        await harness.settle(5.0)
        assert await landed(harness) == [0]
        await harness.settle(300.0)
        metadata = await harness.load()
        assert len(metadata.snapshots) == 3
    assert await landed(harness) == [3]
    assert await harness.outstanding() == []


async def test_epochs_that_arrive_in_another_order_land_in_their_own_however_small_a_batch_is() -> (
    None
):
    harness = ServiceHarness()
    harness.policy = replace(harness.policy, files_max=1)
    table = await harness.create_table()
    async with harness.running():
        for epoch in (2, 1, 0):
            await harness.publish(append(table, epoch))
        await harness.settle(5.0)
    receipts = sorted(await harness.receipts(), key=lambda one: one.sequence_number or 0)
    assert [(one.epoch, one.sequence_number) for one in receipts] == [(0, 1), (1, 2), (2, 3)]


@pytest.mark.parametrize("ends", ["replay", "discard"])
async def test_an_epoch_in_quarantine_stops_its_producer_until_an_operator_decides(
    ends: str,
) -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running():
        await harness.publish(append(table, 0))
        await harness.publish(conflicting(table, 1))
        await harness.settle(10.0)
        (record,) = await harness.quarantined()
        await harness.publish(append(table, 2))
        await harness.publish(append(table, 3))
        # Another producer is not held.
        await harness.publish(build_request(table, producer="other"))
        await harness.settle(120.0)
        assert len((await harness.load()).snapshots) == 2
        assert len(await harness.outstanding()) == 2
        if ends == "discard":
            await harness.quarantine.delete((record.key,))
        else:
            _, content = await harness.quarantine.get(record.key)
            await harness.inbox.put(append(table, 1))
            await harness.quarantine.delete((record.key,))
            assert content
    await harness.run_until_settled(seconds=300.0)
    assert len(await harness.live_files()) == (4 if ends == "discard" else 5)
    assert await harness.outstanding() == []


async def with_audit(harness: ServiceHarness) -> LoadedTable:
    """Return a table with epoch 0 on `main`, and a branch `audit` from there."""
    table = await harness.create_table()
    await harness.publish(append(table, 0))
    await harness.settle(5.0)
    head = (await harness.load()).branch_head()
    assert head is not None
    await foreign_commit(harness, table, branch_at("audit", head.snapshot_id))
    return table


async def test_an_epoch_in_quarantine_stops_those_of_its_own_branch_alone() -> None:
    harness = ServiceHarness()
    async with harness.running():
        table = await with_audit(harness)
        await harness.publish(conflicting(table, 1))
        await harness.settle(10.0)
        assert len(await harness.quarantined()) == 1
        await harness.publish(append(table, 2, "audit"))
        await harness.publish(append(table, 3))
        await harness.publish(append(table, 4, "audit"))
        await harness.settle(5.0)
        assert (await landed(harness))[-2:] == [2, 4]
        assert len(await harness.outstanding()) == 1
        # The branch of what is in quarantine is known from now on.
        before = harness.inbox_storage.calls["get"]
        await harness.publish(append(table, 6, "audit"))
        await harness.settle(5.0)
        assert (await landed(harness))[-1:] == [6]
        assert harness.inbox_storage.calls["get"] == before


async def test_an_epoch_in_the_inbox_stops_those_of_its_own_branch_alone() -> None:
    harness = ServiceHarness()
    async with harness.running(reconcile_interval_s=600.0):
        table = await with_audit(harness)
        await harness.publish(append(table, 1), announce=False)
        await harness.publish(append(table, 2))
        await harness.publish(append(table, 3, "audit"))
        await harness.settle(5.0)
        assert (await landed(harness))[-1:] == [3]
        await harness.publish(append(table, 4, "audit"), announce=False)
        await harness.publish(append(table, 5, "audit"))
        await harness.settle(5.0)
        assert 5 not in await landed(harness)
    await harness.run_until_settled(seconds=300.0)
    assert await harness.outstanding() == []
    assert len(await harness.live_files()) == 3


async def test_many_epochs_of_another_branch_are_passed_some_at_a_time() -> None:
    harness = ServiceHarness()
    async with harness.running(reconcile_interval_s=600.0):
        table = await with_audit(harness)
        for epoch in range(1, 40):
            await harness.publish(append(table, epoch), announce=False)
        before = harness.inbox_storage.calls["get"]
        await harness.publish(append(table, 40, "audit"))
        await harness.settle(0.1)
        assert 40 not in await landed(harness)
        assert harness.inbox_storage.calls["get"] - before <= 32
        await harness.settle(5.0)
        assert (await landed(harness))[-1:] == [40]
        assert harness.inbox_storage.calls["get"] - before == 39


async def test_a_blocking_object_that_is_no_request_blocks_every_branch() -> None:
    """It says no branch."""
    harness = ServiceHarness()
    async with harness.running(reconcile_interval_s=600.0):
        table = await with_audit(harness)
        lower = append(table, 1)
        await harness.storage.create((NewObject(harness.inbox.location(lower.key), b"{}\n"),))
        await harness.publish(append(table, 2, "audit"))
        await harness.settle(5.0)
        assert 2 not in await landed(harness)


async def test_a_conflict_that_was_only_told_stops_nothing() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running():
        await harness.publish(append(table, 0))
        await harness.publish(conflicting(table, 1, **{"on-conflict": "fail"}))
        await harness.settle(10.0)
        await harness.publish(append(table, 2))
        await harness.settle(60.0)
    assert len(await harness.live_files()) == 2
    assert await harness.outstanding() == []
