"""Changes of the ledger beside commits, and the events that may come in between."""

from __future__ import annotations

from uuid import UUID

import pytest

from committer.iceberg.updates.metadata_update import RemoveSnapshotRef
from committer.ledger_entry import (
    Landed,
    ProducerEntry,
    parse_entry,
    parse_property_key,
    property_key,
)
from committer.plan.ledger.ledger import Ledger
from committer.ports.pointer_swap import Swap
from committer.ports.queue import shard_of
from committer.request.table_identifier import TableIdentifier
from committer.service.requests.listing import Listed
from committer.service.requests.settled_requests import SettledRequests
from committer.service.upkeep import ledger_upkeep
from committer.service.upkeep.ledger_upkeep import (
    ALL_RESTED_MAX,
    ONE_SHOT_KEPT_S,
    RESTED_MAX,
    IdleTableUpkeep,
    LedgerUpkeep,
)
from tests.support.builders.request_builders import build_request
from tests.support.service.decisions import found_due
from tests.support.service.outside import foreign_commit
from tests.support.service.scripted import branch_at, carries, paths, scripted
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> ServiceHarness:
    """Return a harness that forgets a one-shot producer as soon as its object is gone."""
    monkeypatch.setattr(ledger_upkeep, "ONE_SHOT_KEPT_S", 0.0)
    return ServiceHarness()


async def test_a_producer_that_goes_on_is_not_forgotten_by_a_chore_from_before(
    forgetful: ServiceHarness,
) -> None:
    """The clean-up was found while its object was gone; then the identity published again."""
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
    harness = ServiceHarness()
    table = await harness.create_table()
    catalog = scripted(harness)

    def find_chore(swap: Swap) -> None:
        if carries(swap, "shot") and catalog.calls["swap"]:
            (committer,) = harness.tables.all
            found_due(committer, property_key("shot"))

    catalog.decide = find_chore
    async with harness.running():
        for epoch in range(2):
            shot = build_request(table, producer="shot", one_shot=True, epoch=epoch)
            await harness.publish(shot)
            await harness.settle(1.0)
        await harness.publish(build_request(table))
        await harness.settle(1.0)
    assert property_key("shot") in (await harness.load()).properties


async def test_a_producer_that_is_no_longer_one_shot_keeps_its_entry(
    forgetful: ServiceHarness,
) -> None:
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
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running():
        await harness.publish(build_request(table, epoch=0))
        await harness.settle(1.0)
        head = (await harness.load()).current_snapshot_id or 0
        await foreign_commit(harness, table, branch_at("audit", head))
        await harness.publish(build_request(table, producer="shot", one_shot=True, branch="audit"))
        await harness.settle(1.0)
        key = property_key("shot", "audit")
        (committer,) = harness.tables.all
        found_due(committer, key)
        await harness.publish(build_request(table, epoch=1))
        await harness.settle(1.0)
        assert key in (await harness.load()).properties
        await harness.publish(build_request(table, epoch=2, branch="audit"))
        await harness.settle(5.0)  # a gap is left behind a foreign commit
        assert key not in (await harness.load()).properties


# --- A table that rests in between ---------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("pause_s", [700.0, 3_600.0])
async def test_a_table_with_one_request_an_hour_forgets_its_one_shot_producers(
    pause_s: float,
) -> None:
    """Its committer ends sooner than an entry is due, and begins anew with each request."""
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running(reconcile_interval_s=300.0):
        for number in range(6):
            await harness.publish(build_request(table, producer=f"shot-{number}", one_shot=True))
            await harness.settle(pause_s)
            assert harness.tables.all == ()
        known = [parse_property_key(key) for key in (await harness.load()).properties]
        producers = [one[0] for one in known if one is not None]
    # Due clean-up is found behind one commit, and included in the next.
    assert set(producers) < {f"shot-{number}" for number in range(6)}
    assert len(producers) <= 4
    assert "shot-5" in producers
    assert len(await paths(harness)) == 6


@pytest.mark.thorough
@pytest.mark.parametrize("is_let_go", [False, True])
async def test_of_a_table_that_another_had_meanwhile_nothing_is_held_for_due(
    is_let_go: bool,
) -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running(reconcile_interval_s=300.0):
        for number in range(3):
            if number == 2 and is_let_go:
                await harness.release_shards()
            await harness.publish(build_request(table, producer=f"shot-{number}", one_shot=True))
            await harness.settle(3_600.0)
        properties = (await harness.load()).properties
    assert (property_key("shot-0") in properties) == is_let_go


TABLE_UUID = UUID(int=7)
NAME = TableIdentifier(("db",), "flights")


def shots(*names: str, epochs: int = 1) -> Ledger:
    """Return a ledger of one-shot producers."""
    landed = [Landed(n, "kind", "0" * 16, UUID(int=n), 10 + n, 1 + n) for n in range(epochs)]
    entry = ProducerEntry(TABLE_UUID, one_shot_ms=1).with_landed(*landed)
    return Ledger({property_key(name): entry for name in names}, {})


def upkeep(before: LedgerUpkeep | None = None) -> LedgerUpkeep:
    return LedgerUpkeep(TABLE_UUID, SettledRequests(TABLE_UUID), before)


def after_a_rest(known: LedgerUpkeep) -> LedgerUpkeep:
    """Return the upkeep of the committer that the next request starts."""
    rested = IdleTableUpkeep()
    rested.ended(NAME, TABLE_UUID, known)
    before = rested.take(NAME, TABLE_UUID)
    assert rested.take(NAME, TABLE_UUID) is None
    return upkeep(before)


def dropped(known: LedgerUpkeep, ledger: Ledger) -> frozenset[str]:
    return known.cleanup(ledger, ()).drop


def test_what_was_found_to_be_due_goes_after_a_rest_unless_more_has_landed() -> None:
    known, ledger = upkeep(), shots("a")
    for now_s in (0.0, ONE_SHOT_KEPT_S):
        assert dropped(known, ledger) == frozenset()
        known.find(ledger, Listed(), now_s, 5)
    known = after_a_rest(known)
    assert dropped(known, ledger) == {property_key("a")}
    # By another process, which may have left it in the inbox.
    more = shots("a", epochs=2)
    assert dropped(known, more) == frozenset()
    known.find(more, Listed(), 2 * ONE_SHOT_KEPT_S, 5)
    assert dropped(known, more) == frozenset()
    known.find(more, Listed(), 3 * ONE_SHOT_KEPT_S, 5)
    assert dropped(known, more) == {property_key("a")}


def test_little_is_kept_of_tables_that_rest_and_nothing_of_those_that_others_have() -> None:
    names = [f"shot-{number}" for number in range(2 * RESTED_MAX)]
    many = upkeep()
    many.find(shots(*names), Listed(), 0.0, 5)
    rested = IdleTableUpkeep()
    uuids = [UUID(int=number) for number in range(2 * ALL_RESTED_MAX // RESTED_MAX)]
    for table_uuid in uuids:
        rested.ended(NAME, table_uuid, many)
    rested.ended(NAME, TABLE_UUID, upkeep())
    rested.left({shard_of(uuids[-1])})
    taken = [rested.take(NAME, table_uuid) for table_uuid in uuids]
    kept = [one.gone_count for one in taken if one is not None]
    assert set(kept) == {RESTED_MAX}
    assert sum(kept) <= ALL_RESTED_MAX
    assert taken[-1] is None
    assert taken[0] is None
    assert taken[-2] is not None


async def test_nothing_of_a_frozen_producer_is_forgotten(forgetful: ServiceHarness) -> None:
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
