"""An operator decides about producers and their requests, beside committers that go on."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from committer.errors import CatalogUnavailableError, NotFoundError, UnsupportedError
from committer.iceberg.updates.metadata_update import (
    RemoveSnapshots,
    SetProperties,
)
from committer.ledger_entry import EpochRanges, Landed, parse_entry, print_entry, property_key
from committer.plan.ledger import evidence
from committer.plan.ledger.producer_decisions import ProducerName, ProducerState
from committer.reason import Reason
from committer.request.receipt_model import ReceiptState
from committer.service.admin.producer_admin import Lost
from committer.service.admin.table_change import ATTEMPTS_MAX
from tests.support.builders.request_builders import build_request
from tests.support.faults.counting_storage import CountingStorage
from tests.support.faults.faulty_catalog import Fault
from tests.support.service.decisions import (
    NAME,
    accept,
    epochs_of,
    land,
    producer_admin,
    reasons,
    refused_for_its_content,
    replay,
    roll_back,
    state_of,
)
from tests.support.service.outside import foreign_commit
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True
FRESH = UUID(int=1)
NOTHING = EpochRanges()


# --- Freeze and thaw -----------------------------------------------------------------------------


async def test_a_running_committer_obeys_a_freeze_at_once_and_others_go_on() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running():
        await harness.publish(build_request(table, epoch=0))
        await harness.settle(1.0)
        await producer_admin(harness).freeze(table.identifier, NAME, "its numbers look wrong")
        held = build_request(table, epoch=1)
        await harness.publish(held)
        await harness.publish(build_request(table, producer="query-2"))
        await harness.settle()
        (record,) = await harness.quarantined()
        assert (record.reason, record.message) == (
            Reason.PRODUCER_FROZEN,
            "its numbers look wrong",
        )
        assert len(await harness.live_files()) == 2
        await producer_admin(harness).thaw(table.identifier, NAME, NOTHING)
    await replay(harness, held)
    assert await reasons(harness) == []
    assert len(await harness.live_files()) == 3
    assert await epochs_of(harness) == "0-1"


async def test_a_producer_that_nobody_has_heard_of_may_be_frozen_and_is_not_landed() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await producer_admin(harness).freeze(table.identifier, NAME, "not yet")
    await land(harness, table, 0)
    assert await reasons(harness) == [Reason.PRODUCER_FROZEN]
    assert await harness.live_files() == []


async def test_what_landed_before_its_producer_was_frozen_is_told_so() -> None:
    """The answer of its swap was lost; the freeze comes before anybody asks."""
    harness = ServiceHarness()
    table = await harness.create_table()
    await harness.publish(build_request(table))
    harness.catalog.plan(Fault.LOST_REPLY)
    async with harness.running():
        while not (await harness.load()).snapshots:
            await harness.settle(0.0001)
        await producer_admin(harness).freeze(table.identifier, NAME, "too late for this one")
        await harness.settle()
    (receipt,) = await harness.receipts()
    assert receipt.state is ReceiptState.COMMITTED
    assert await harness.quarantined() == []


async def test_freeze_and_thaw_may_be_repeated_and_change_nothing_then() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await land(harness, table, 0)
    before = (await harness.load()).properties[NAME.key]
    for _ in range(2):
        await producer_admin(harness).freeze(table.identifier, NAME, "why")
    location = await harness.catalog.current_location(table.identifier)
    await producer_admin(harness).freeze(table.identifier, NAME, "another why")
    assert await harness.catalog.current_location(table.identifier) == location
    for _ in range(2):
        await producer_admin(harness).thaw(table.identifier, NAME, NOTHING)
    assert (await harness.load()).properties[NAME.key] == before


async def test_a_freeze_leaves_no_gaps_as_for_a_foreign_engine() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running():
        await harness.publish(build_request(table, epoch=0))
        await harness.settle(1.0)
        await producer_admin(harness).freeze(table.identifier, ProducerName("other"), "why")
        for epoch in range(1, 6):
            await harness.publish(build_request(table, epoch=epoch))
            await harness.settle(0.2)
    assert len(await harness.live_files()) == 6


@pytest.mark.parametrize(
    "faults",
    [
        [Fault.CONFLICT],
        [Fault.LOST_REPLY],
        [Fault.REQUEST_LOST] * 4,
        [Fault.LANDS_LATE, Fault.LOST_REPLY],
    ],
    ids=lambda faults: "-".join(fault.name for fault in faults),
)
async def test_whatever_the_swap_answers_a_decision_is_made_once(faults: list[Fault]) -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await land(harness, table, 0)
    harness.catalog.plan(*faults)
    await producer_admin(harness).freeze(table.identifier, NAME, "why")
    await harness.catalog.land_late()
    assert await state_of(harness) is ProducerState.FROZEN
    assert await epochs_of(harness) == "0"


async def test_a_decision_that_cannot_be_made_says_so() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    harness.catalog.plan(*[Fault.CONFLICT] * ATTEMPTS_MAX)
    with pytest.raises(CatalogUnavailableError, match="look first whether it was"):
        await producer_admin(harness).freeze(table.identifier, NAME, "why")
    harness.catalog.plan(Fault.REJECTED)
    with pytest.raises(UnsupportedError, match="refused by the test"):
        await producer_admin(harness).freeze(table.identifier, NAME, "why")


# --- After a rollback ----------------------------------------------------------------------------


async def test_what_a_rollback_took_is_named_by_epoch() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await land(harness, table, 0, 1, 2, 3)
    current = await harness.catalog.load(table.identifier)
    assert await producer_admin(harness).lost(current, NAME) == Lost(NOTHING, 0, is_whole=True)
    await roll_back(harness, table, 1)
    current = await harness.catalog.load(table.identifier)
    found = await producer_admin(harness).lost(current, NAME)
    assert (str(found.epochs), found.snapshots, found.is_whole) == ("2-3", 2, True)
    lost = current.metadata.snapshots[2]
    await harness.storage.inner.delete((lost.manifest_list or "",))
    assert not (await producer_admin(harness).lost(current, NAME)).is_whole
    await foreign_commit(harness, table, RemoveSnapshots((lost.snapshot_id,)))
    current = await harness.catalog.load(table.identifier)
    found = await producer_admin(harness).lost(current, NAME)
    assert (str(found.epochs), found.is_whole) == ("3", False)


async def test_after_a_thaw_that_keeps_the_rollback_epochs_go_on_and_lost_ones_stay_away() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await land(harness, table, 0, 1, 2)
    await roll_back(harness, table, 0)
    await land(harness, table, 3)
    assert await reasons(harness) == [Reason.PRODUCER_FROZEN]
    await producer_admin(harness).thaw(table.identifier, NAME, NOTHING)
    await land(harness, table, 4, 2)
    assert sorted(await reasons(harness)) == [Reason.EPOCH_LANDED_UNPROVEN, Reason.PRODUCER_FROZEN]
    assert len(await harness.live_files()) == 2
    assert await epochs_of(harness) == "0-2,4"


async def test_after_a_thaw_that_repeats_the_lost_epochs_each_lands_once_more() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await land(harness, table, 0, 1, 2)
    await roll_back(harness, table, 0)
    current = await harness.catalog.load(table.identifier)
    lost = await producer_admin(harness).lost(current, NAME)
    await producer_admin(harness).thaw(table.identifier, NAME, lost.epochs)
    await land(harness, table, 1, 2, 2, 1, 0)
    assert await reasons(harness) == []
    assert len(await harness.live_files()) == 3
    assert [receipt.duplicate for receipt in await harness.receipts()][-3:] == [True, True, True]


@pytest.mark.parametrize("again", ["0", "0-1", "1-2", "7"])
async def test_an_epoch_that_is_not_lost_may_not_land_once_more(again: str) -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await land(harness, table, 0, 1)
    await roll_back(harness, table, 0)
    before = (await harness.load()).properties[NAME.key]
    with pytest.raises(UnsupportedError, match=r"only an epoch that has landed and is lost"):
        await producer_admin(harness).thaw(table.identifier, NAME, EpochRanges.parse(again))
    assert (await harness.load()).properties[NAME.key] == before


@pytest.mark.parametrize("again", ["0", "1-2", "7"])
async def test_what_the_remaining_history_proves_is_not_lost_although_lost_snapshots_expired(
    again: str,
) -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await land(harness, table, 0, 1, 2, 3)
    lost = (await harness.load()).snapshots[2]
    await roll_back(harness, table, 1)
    await foreign_commit(harness, table, RemoveSnapshots((lost.snapshot_id,)))
    desk = producer_admin(harness)
    assert not (await desk.lost(await harness.catalog.load(table.identifier), NAME)).is_whole
    with pytest.raises(UnsupportedError, match="may not land once more"):
        await desk.thaw(table.identifier, NAME, EpochRanges.parse(again))
    assert await state_of(harness) is ProducerState.ROLLED_BACK
    await desk.thaw(table.identifier, NAME, EpochRanges.parse("2-3"))
    await land(harness, table, 2, 3)
    assert len(await harness.live_files()) == 4


async def test_a_thaw_that_loses_its_race_does_not_read_the_history_again() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await land(harness, table, 0, 1, 2, 3)
    await roll_back(harness, table, 2)
    await producer_admin(harness).thaw(table.identifier, NAME, NOTHING)
    await producer_admin(harness).freeze(table.identifier, NAME, "epoch 3 is wanted after all")
    storage = CountingStorage(harness.storage.inner)
    harness.catalog.plan(*[Fault.CONFLICT] * 3)
    desk = replace(producer_admin(harness), storage=storage)
    await desk.thaw(table.identifier, NAME, EpochRanges.parse("3"))
    assert storage.calls["get"] == 3
    assert await epochs_of(harness) == "0-2"


async def test_of_a_producer_that_an_operator_froze_only_what_is_gone_may_land_once_more() -> None:
    """A rollback and an expiry came before any committer read the table."""
    harness = ServiceHarness()
    table = await harness.create_table()
    await land(harness, table, 0, 1)
    lost = (await harness.load()).snapshots[1]
    await roll_back(harness, table, 0)
    await foreign_commit(harness, table, RemoveSnapshots((lost.snapshot_id,)))
    desk = producer_admin(harness)
    await desk.freeze(table.identifier, NAME, "epoch 1 is not there")
    for again in ("0", "0-1", "2"):
        with pytest.raises(UnsupportedError, match="may not land once more"):
            await desk.thaw(table.identifier, NAME, EpochRanges.parse(again))
    await desk.thaw(table.identifier, NAME, EpochRanges.parse("1"))
    await land(harness, table, 0, 1)
    assert len(await harness.live_files()) == 2


async def test_an_entry_that_cannot_be_read_is_not_decided_about_only_forgotten() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await foreign_commit(harness, table, SetProperties({NAME.key: '{"v":9}'}))
    request = build_request(table)
    with pytest.raises(UnsupportedError, match="version 9"):
        await producer_admin(harness).freeze(table.identifier, NAME, "why")
    with pytest.raises(UnsupportedError, match="version 9"):
        await producer_admin(harness).thaw(table.identifier, NAME, NOTHING)
    with pytest.raises(UnsupportedError, match="version 9"):
        await accept(harness, table, request)
    await producer_admin(harness).forget(table.identifier, NAME)
    assert NAME.key not in (await harness.load()).properties
    with pytest.raises(NotFoundError, match="no producer `query-1`"):
        await producer_admin(harness).thaw(table.identifier, NAME, NOTHING)


# --- Forget --------------------------------------------------------------------------------------


async def test_a_producer_is_not_forgotten_while_a_request_of_it_is_durable() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await land(harness, table, 0)
    waiting = build_request(table, epoch=1)
    await harness.publish(waiting, announce=False)
    with pytest.raises(UnsupportedError, match=waiting.request.inbox_key):
        await producer_admin(harness).forget(table.identifier, NAME)
    await harness.run_until_settled()
    await producer_admin(harness).forget(table.identifier, NAME)
    assert NAME.key not in (await harness.load()).properties
    assert len(await harness.live_files()) == 2


@pytest.mark.parametrize("restarts", [False, True])
async def test_an_old_doorbell_of_a_forgotten_producer_brings_nothing_back(restarts: bool) -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    old = build_request(table)
    await harness.publish(old)
    async with harness.running():
        await harness.settle(5.0)
        await producer_admin(harness).forget(table.identifier, NAME)
        if not restarts:
            await harness.publish(old, durable=False)
            await harness.settle()
    if restarts:  # nothing that this one has seen tells of the decision
        async with harness.running():
            await harness.settle(5.0)
            await harness.publish(old, durable=False)
            await harness.settle()
    assert len(await harness.live_files()) == 1


# --- Accept --------------------------------------------------------------------------------------


async def test_an_accepted_request_lands_once_beside_what_landed_as_its_epoch() -> None:
    harness = ServiceHarness()
    table, other = await refused_for_its_content(harness)
    assert await accept(harness, table, other) == {}
    await replay(harness, other)
    assert len(await harness.live_files()) == 2
    assert await reasons(harness) == []
    assert await harness.outstanding() == []
    # Its leave is used up, and both contents have landed.
    assert parse_entry((await harness.load()).properties[NAME.key]).accepted == ()
    for fingerprint in ("something else", "offsets-0"):
        await harness.publish(build_request(table, epoch=0, fingerprint=fingerprint))
        await harness.run_until_settled()
    assert [receipt.duplicate for receipt in await harness.receipts()][-2:] == [True, True]
    # Also when the ledger has forgotten both, and only manifest lists know.
    await land(harness, table, 1, 2, 3)
    for fingerprint in ("something else", "offsets-0"):
        await harness.publish(build_request(table, epoch=0, fingerprint=fingerprint))
        await harness.run_until_settled()
    assert [receipt.duplicate for receipt in await harness.receipts()][-2:] == [True, True]
    await harness.publish(build_request(table, epoch=0, fingerprint="a third"))
    await harness.run_until_settled()
    assert await reasons(harness) == [Reason.EPOCH_CONTENT_DIFFERS]
    assert len(await harness.live_files()) == 5


@pytest.mark.parametrize(
    "faults",
    [
        [Fault.LOST_REPLY],
        [Fault.REQUEST_LOST] * 3,
        [Fault.LOST_REPLY, Fault.CONFLICT],
        [Fault.LANDS_LATE],
        [Fault.REJECTED],
    ],
    ids=lambda faults: "-".join(fault.name for fault in faults),
)
async def test_whatever_its_swap_answers_an_accepted_request_lands_at_most_once(
    faults: list[Fault],
) -> None:
    harness = ServiceHarness()
    table, other = await refused_for_its_content(harness)
    await accept(harness, table, other)
    harness.catalog.plan(*faults)
    await replay(harness, other)
    await harness.catalog.land_late()
    await harness.run_until_settled(seconds=60.0)
    rejected = faults == [Fault.REJECTED]
    assert await reasons(harness) == ([Reason.COMMIT_REJECTED] if rejected else [])
    assert len(await harness.live_files()) == (1 if rejected else 2)


async def test_an_accepted_request_of_a_frozen_producer_lands_and_the_producer_stays_frozen() -> (
    None
):
    harness = ServiceHarness()
    table = await harness.create_table()
    await land(harness, table, 0, 1)
    await roll_back(harness, table, 0)
    wanted, other = build_request(table, epoch=2), build_request(table, epoch=3)
    for sealed in (wanted, other):
        await harness.publish(sealed)
        await harness.run_until_settled()
    assert await accept(harness, table, wanted) == {}
    await replay(harness, wanted)
    await replay(harness, other)
    assert await reasons(harness) == [Reason.PRODUCER_FROZEN]
    assert len(await harness.live_files()) == 2
    assert await state_of(harness) is ProducerState.ROLLED_BACK
    current = await harness.catalog.load(table.identifier)
    assert str((await producer_admin(harness).lost(current, NAME)).epochs) == "1"


async def test_what_nothing_proves_any_more_may_be_accepted() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await land(harness, table, *range(4))
    snapshots = (await harness.load()).snapshots[:-1]
    gone = RemoveSnapshots(tuple(one.snapshot_id for one in snapshots))
    await foreign_commit(harness, table, gone)
    again = build_request(table, epoch=0)
    await harness.publish(again)
    await harness.run_until_settled()
    assert await reasons(harness) == [Reason.EPOCH_LANDED_UNPROVEN]
    assert await accept(harness, table, again) == {}
    await replay(harness, again)
    assert len(await harness.live_files()) == 5


async def test_a_request_that_has_landed_itself_is_not_accepted() -> None:
    """It landed, its answer was lost, and the freeze behind it made its end look like a refusal."""
    harness = ServiceHarness()
    table = await harness.create_table()
    landed = build_request(table, epoch=0)
    await harness.publish(landed)
    await harness.run_until_settled()
    (why,) = (await accept(harness, table, landed)).values()
    assert "it has landed" in why
    # The same where the ledger has forgotten the attempt.
    await land(harness, table, 1, 2, 3)
    (why,) = (await accept(harness, table, landed)).values()
    assert "it has landed" in why
    assert parse_entry((await harness.load()).properties[NAME.key]).accepted == ()


async def test_a_request_that_landed_before_all_proofs_is_not_accepted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A second copy of it would name its data files a second time."""
    monkeypatch.setattr(evidence, "SNAPSHOTS_MAX", 2)
    harness = ServiceHarness()
    table = await harness.create_table()
    first = build_request(table)
    later = (build_request(table, epoch=epoch) for epoch in (1, 2, 3, 4))
    await harness.land_in_turn(first, *later)
    await harness.publish(first)
    await harness.run_until_settled()
    assert await reasons(harness) == [Reason.EPOCH_LANDED_UNPROVEN]
    refused = await accept(harness, table, first)
    assert "its data files are in the table" in refused[first.request.inbox_key]
    assert await epochs_of(harness) == "0-4"


async def test_many_requests_are_accepted_by_reading_the_table_once() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await land(harness, table, *range(4))
    others = [build_request(table, epoch=epoch, fingerprint="other") for epoch in range(4)]
    for other in others:
        await harness.publish(other)
    await harness.run_until_settled()
    storage = CountingStorage(harness.storage.inner)
    lines = [sealed.request for sealed in others]
    desk = replace(producer_admin(harness), storage=storage)
    assert await desk.accept(table.identifier, NAME, lines) == {}
    # Each manifest list for its proof, the newest once more for its files, and each manifest.
    assert storage.calls["get"] == 4 + 1 + 4


async def test_nothing_is_accepted_where_the_files_of_the_table_cannot_be_seen() -> None:
    harness = ServiceHarness()
    table, other = await refused_for_its_content(harness)
    paths = [one.location async for one in harness.storage.inner.list(table.metadata.location)]
    (manifest,) = [path for path in paths if path.endswith("-m0.avro")]
    await harness.storage.inner.delete([manifest])
    (why,) = (await accept(harness, table, other)).values()
    assert "it is unknown whether its data files are in the table" in why
    assert manifest in why


async def test_a_request_of_a_table_that_was_made_again_is_not_accepted() -> None:
    harness = ServiceHarness()
    table, other = await refused_for_its_content(harness)
    await harness.catalog.drop_table(table.identifier)
    await harness.create_table()
    (why,) = (await accept(harness, table, other)).values()
    assert "another uuid" in why


async def test_an_accepted_request_that_was_discarded_lands_by_no_old_doorbell() -> None:
    harness = ServiceHarness()
    table, other = await refused_for_its_content(harness)
    await accept(harness, table, other)
    await producer_admin(harness).replays.discard(other.request.inbox_key)
    async with harness.running():
        await harness.publish(other, durable=False)
        await harness.settle()
    assert len(await harness.live_files()) == 1
    # The next decision deletes the entries that are not needed any more.
    third = build_request(table, epoch=0, fingerprint="a third")
    await harness.publish(third)
    await harness.run_until_settled()
    await accept(harness, table, third)
    entry = parse_entry((await harness.load()).properties[NAME.key])
    assert entry.accepted == ((0, third.request.attempt),)


async def test_a_crash_behind_the_swap_that_lands_an_accepted_request_repeats_nothing() -> None:
    """It is still in the inbox, and the ledger has forgotten all but the newest epochs."""
    harness = ServiceHarness()
    table, other = await refused_for_its_content(harness)
    await accept(harness, table, other)
    await producer_admin(harness).replays.replay(other.request.inbox_key, FRESH)
    for epoch in (1, 2, 3):
        await harness.inbox.put(build_request(table, epoch=epoch))
    async with harness.running():
        while len(await harness.live_files()) < 2:
            await harness.settle(0.0001)
    await harness.inbox.put(other)
    await land(harness, table, 4, 5)
    await harness.run_until_settled()
    assert len(await harness.live_files()) == 7
    assert await reasons(harness) == []


def test_an_entry_of_the_release_before_is_read_and_written_as_it_was() -> None:
    text = (
        '{"v":1,"table":"390b0340-6640-4441-8406-2fa564f965e1","epochs":"0-41,43",'
        '"latest":[[3055729675574597004,44,"spark-offsets",43,"9c1185a5c5e9fc54",'
        '"7f0000000000000000000000000000ab"]],"sequential":true}'
    )
    entry = parse_entry(text)
    assert print_entry(entry) == text
    assert isinstance(entry.latest[0], Landed)
    assert property_key("q") == "frazil.producer.q"
