"""Deletes that apply to nothing are removed behind the commits, by a request that lands in turn."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.plan.cleanup.dangling_deletes import DanglingDeletes
from tests.support.builders.request_builders import build_request
from tests.support.faults.faulty_catalog import Fault
from tests.support.service.deleting import Deleting

VIRTUAL_TIME = True
LOOKS = 61.0


async def test_a_delete_that_applies_to_nothing_goes_and_one_that_is_needed_stays() -> None:
    deleting = Deleting()
    await deleting.create()
    async with deleting.harness.running():
        await deleting.make_one_dangle()
        assert await deleting.carriers() == ["AA", "BB"]
        await deleting.harness.settle(LOOKS)
        await deleting.append("AA")
        await deleting.harness.settle(5.0)
    assert await deleting.carriers() == ["BB"]
    assert deleting.counted() == 1
    metadata = await deleting.harness.load()
    assert metadata.current_snapshot is not None
    assert metadata.current_snapshot.operation == "replace"
    assert await deleting.harness.outstanding() == []
    assert await deleting.harness.quarantined() == []


async def test_a_table_that_does_not_want_it_keeps_its_deletes_and_nothing_is_read() -> None:
    deleting = Deleting()
    await deleting.create({})
    async with deleting.harness.running():
        await deleting.make_one_dangle()
        await deleting.harness.settle(LOOKS)
        deleting.harness.storage.calls.clear()
        await deleting.harness.publish(build_request(deleting.table, partition=("AA",)))
        await deleting.harness.settle(5.0)
        assert dict(deleting.harness.storage.calls) == {"create": 1}
    assert await deleting.carriers() == ["AA", "BB"]


async def test_a_commit_with_nothing_due_reads_nothing() -> None:
    deleting = Deleting()
    await deleting.create()
    async with deleting.harness.running():
        await deleting.append("BB")
        await deleting.delete_rows("BB")
        await deleting.harness.settle(LOOKS)
        await deleting.append("AA")
        await deleting.harness.settle(LOOKS)
        deleting.harness.storage.calls.clear()
        for epoch in range(3):
            sealed = build_request(deleting.table, epoch=epoch, partition=("AA",))
            await deleting.harness.publish(sealed)
            await deleting.harness.settle(LOOKS)
        assert dict(deleting.harness.storage.calls) == {"create": 3}


@pytest.mark.parametrize(("long_bytes", "looks"), [(0, 1), (1 << 20, 5)], ids=["long", "short"])
async def test_a_long_list_is_not_looked_through_in_each_round(
    monkeypatch: pytest.MonkeyPatch, long_bytes: int, looks: int
) -> None:
    monkeypatch.setattr("committer.service.upkeep.dangling_remover.OFF_LOOP_BYTES", long_bytes)
    deleting, answers = Deleting(), list[bool]()
    is_due = DanglingDeletes.is_due

    def look(deletes: DanglingDeletes, rows: Sequence[ManifestFile]) -> bool:
        answers.append(is_due(deletes, rows))
        return answers[-1]

    await deleting.create()
    async with deleting.harness.running():
        await deleting.append("BB")
        await deleting.delete_rows("BB")
        await deleting.harness.settle(LOOKS)
        await deleting.append("AA")
        await deleting.harness.settle(LOOKS)
        monkeypatch.setattr(DanglingDeletes, "is_due", look)
        for _ in range(5):
            await deleting.append("AA")
            await deleting.harness.settle(1.0)
    assert answers == [False] * looks


@pytest.mark.parametrize(
    "fault", [Fault.CONFLICT, Fault.LOST_REPLY, Fault.REQUEST_LOST], ids=lambda one: one.name
)
async def test_whatever_the_swap_answers_the_removal_lands_once(fault: Fault) -> None:
    deleting = Deleting()
    await deleting.create()
    async with deleting.harness.running():
        await deleting.make_one_dangle()
        await deleting.harness.settle(LOOKS)
        catalog = deleting.harness.catalog
        catalog.calls.clear()
        catalog.swap_s[str(deleting.table.identifier)] = 0.5
        await deleting.harness.publish(build_request(deleting.table, partition=("AA",)))
        await deleting.harness.settle(0.75)
        catalog.plan(fault)
        await deleting.harness.settle(30.0)
        assert catalog.calls["swap"] == (2 if fault is Fault.LOST_REPLY else 3)
    assert await deleting.carriers() == ["BB"]
    assert await deleting.harness.outstanding() == []
    assert await deleting.harness.quarantined() == []
