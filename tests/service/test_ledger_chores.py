"""What is written into the ledger beside commits, and what may come between."""

from __future__ import annotations

import pytest

from committer.iceberg.metadata_update import RemoveSnapshotRef
from committer.ledger_entry import parse_entry, property_key
from committer.plan.commit import LedgerChores
from committer.ports import Swap
from committer.service import ledger_upkeep
from tests.request_builders import build_request
from tests.service.house import House
from tests.service.outside import foreign_commit
from tests.service.scripted import branch_at, carries, paths, scripted

VIRTUAL_TIME = True


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> House:
    """Committers that forget a one-shot producer as soon as its object is gone."""
    monkeypatch.setattr(ledger_upkeep, "ONE_SHOT_KEPT_S", 0.0)
    return House()


async def test_a_producer_that_goes_on_is_not_forgotten_by_a_chore_from_before(
    forgetful: House,
) -> None:
    """The chore was found while its object was gone; then the identity published again."""
    table = await forgetful.create_table()
    async with forgetful.running(reconcile_interval_s=5.0):
        await forgetful.publish(build_request(table, producer="shot", one_shot=True))
        await forgetful.settle(12.0)
        again = build_request(table, producer="shot", one_shot=True, epoch=1)
        await forgetful.publish(again)
        await forgetful.settle(1.0)
        await forgetful.publish(build_request(table, epoch=0))
        await forgetful.settle(1.0)
        properties = (await forgetful.load()).properties
    assert parse_entry(properties[property_key("shot")]).landed(1) is not None


async def test_a_chore_that_is_found_during_a_swap_does_not_forget_what_the_swap_lands() -> None:
    house = House()
    table = await house.create_table()
    catalog = scripted(house)

    def find_chore(swap: Swap) -> None:
        assert house.intake is not None
        if carries(swap, "shot") and catalog.calls["swap"]:
            (committer,) = house.intake.tables
            committer.ledger_upkeep.add(LedgerChores(drop=frozenset({property_key("shot")})))

    catalog.decide = find_chore
    async with house.running():
        for epoch in range(2):
            shot = build_request(table, producer="shot", one_shot=True, epoch=epoch)
            await house.publish(shot)
            await house.settle(1.0)
        await house.publish(build_request(table))
        await house.settle(1.0)
    assert property_key("shot") in (await house.load()).properties


async def test_a_producer_that_is_no_longer_one_shot_keeps_its_entry(forgetful: House) -> None:
    table = await forgetful.create_table()
    async with forgetful.running(reconcile_interval_s=5.0):
        await forgetful.publish(build_request(table, producer="shot", one_shot=True))
        await forgetful.publish(build_request(table, producer="shot", epoch=1, sequential=False))
        await forgetful.settle(20.0)
        await forgetful.publish(build_request(table, epoch=0))
        await forgetful.settle(20.0)
        await forgetful.publish(build_request(table, producer="shot", epoch=1, sequential=False))
        await forgetful.settle(5.0)
    assert len(await paths(forgetful)) == 3


async def test_chores_of_one_branch_wait_for_a_commit_to_that_branch() -> None:
    house = House()
    table = await house.create_table()
    async with house.running():
        await house.publish(build_request(table, epoch=0))
        await house.settle(1.0)
        head = (await house.load()).current_snapshot_id or 0
        await foreign_commit(house, table, branch_at("audit", head))
        await house.publish(build_request(table, producer="shot", one_shot=True, branch="audit"))
        await house.settle(1.0)
        key = property_key("shot", "audit")
        assert house.intake is not None
        (committer,) = house.intake.tables
        committer.ledger_upkeep.add(LedgerChores(drop=frozenset({key})))
        await house.publish(build_request(table, epoch=1))
        await house.settle(1.0)
        assert key in (await house.load()).properties
        await house.publish(build_request(table, epoch=2, branch="audit"))
        await house.settle(5.0)  # a gap is left behind a foreign commit
        assert key not in (await house.load()).properties


async def test_nothing_of_a_frozen_producer_is_forgotten(forgetful: House) -> None:
    table = await forgetful.create_table()
    async with forgetful.running(reconcile_interval_s=5.0):
        await forgetful.publish(build_request(table, producer="shot", one_shot=True))
        await forgetful.settle(1.0)
        await foreign_commit(forgetful, table, RemoveSnapshotRef("main"))
        await forgetful.publish(build_request(table, producer="query-1"))
        await forgetful.settle(20.0)
        await forgetful.publish(build_request(table, producer="query-1", epoch=1))
        await forgetful.settle(5.0)
    assert property_key("shot") in (await forgetful.load()).properties
