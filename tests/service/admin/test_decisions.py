"""Operators' decisions while tables are rolled back, requests move and committers stand still."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from uuid import UUID

import pytest

from committer.errors import UnsupportedError
from committer.iceberg.manifest.manifest_list import decode_manifest_list
from committer.iceberg.metadata.snapshot import MAIN, Snapshot, SnapshotRef
from committer.iceberg.updates.metadata_update import (
    RemoveProperties,
    RemoveSnapshots,
    SetSnapshotRef,
)
from committer.ledger_entry import EpochRanges, property_key
from committer.plan.ledger.producer_decisions import ProducerName, ProducerState
from committer.ports.pointer_swap import LoadedTable
from committer.ports.skips import Skips
from committer.ports.storage import ObjectInfo
from committer.reason import Reason
from committer.request.table_identifier import TableIdentifier
from committer.service.settle import recently_quarantined
from committer.service.upkeep import ledger_upkeep
from committer.storage.inbox.inbox import Quarantine, QuarantineRecord
from committer.storage.inbox.replays import Replays
from tests.support.builders.request_builders import build_request
from tests.support.faults.counting_storage import CountingStorage
from tests.support.faults.faulty_catalog import Fault, FaultyCatalog
from tests.support.service.decisions import (
    NAME,
    accept,
    epochs_of,
    found_due,
    land,
    producer_admin,
    publish_in_turn,
    put_back,
    reasons,
    refused_for_its_content,
    replay,
    roll_back,
    state_of,
)
from tests.support.service.merging import Merging
from tests.support.service.outside import foreign_commit
from tests.support.service.service_harness import INBOX, ServiceHarness

VIRTUAL_TIME = True
FRESH = UUID(int=1)


class Moved(CountingStorage):
    """Something happens right after a listing of a folder, once."""

    def __init__(
        self, harness: ServiceHarness, folder: str, then: Callable[[], Awaitable[object]]
    ) -> None:
        super().__init__(harness.storage.inner)
        self._folder = f"{INBOX}/{folder}/"
        self._then: Callable[[], Awaitable[object]] | None = then

    async def list(self, prefix: str, *, skips: Skips | None = None) -> AsyncIterator[ObjectInfo]:
        async for found in super().list(prefix, skips=skips):
            yield found
        if prefix.startswith(self._folder) and self._then is not None:
            then, self._then = self._then, None
            await then()


# --- What moves while it is looked for -----------------------------------------------------------


async def test_a_producer_is_not_forgotten_while_a_request_of_it_is_replayed() -> None:
    """It is in quarantine when the inbox is listed, and in the inbox when the quarantine is."""
    harness = ServiceHarness()
    table, other = await refused_for_its_content(harness)
    replays = Replays(harness.storage.inner, INBOX)
    moved = Moved(harness, "inbox", lambda: replays.replay(other.request.inbox_key, FRESH))
    desk = replace(producer_admin(harness), replays=Replays(moved, INBOX))
    with pytest.raises(UnsupportedError, match=other.request.inbox_key):
        await desk.forget(table.identifier, NAME)
    await harness.run_until_settled()
    assert await reasons(harness) == [Reason.EPOCH_CONTENT_DIFFERS]
    assert len(await harness.live_files()) == 1


async def test_a_one_shot_producer_is_known_while_a_request_of_it_goes_to_quarantine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is in the inbox when the quarantine is listed, and in quarantine when the inbox is."""
    monkeypatch.setattr(ledger_upkeep, "ONE_SHOT_KEPT_S", 50.0)
    harness = ServiceHarness()
    table = await harness.create_table()
    other = build_request(table, producer="shot", one_shot=True, fingerprint="another")
    key = other.request.inbox_key

    is_refused = asyncio.Event()

    async def another_committer_refuses() -> None:
        is_refused.set()
        record = QuarantineRecord(
            key=key, reason=Reason.EPOCH_CONTENT_DIFFERS, message="", quarantined_at_ms=1
        )
        await Quarantine(harness.storage.inner, INBOX).put(record, other.content)

    harness.quarantine = Quarantine(Moved(harness, "quarantine", another_committer_refuses), INBOX)
    async with harness.running(reconcile_interval_s=20.0):
        await harness.publish(build_request(table, producer="shot", one_shot=True))
        await is_refused.wait()
        # Before the next listing shows it.
        await harness.settle(5.0)
        await harness.publish(build_request(table))
        await harness.settle(1.0)
    assert property_key("shot") in (await harness.load()).properties


async def test_a_chore_does_not_forget_a_one_shot_producer_that_has_come_back_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Found while nothing of it was left; no commit took it along until it came again."""
    monkeypatch.setattr(ledger_upkeep, "ONE_SHOT_KEPT_S", 10.0)
    harness = ServiceHarness()
    table = await harness.create_table()
    other = build_request(table, producer="shot", one_shot=True, fingerprint="another")
    async with harness.running(reconcile_interval_s=5.0):
        await harness.publish(build_request(table, producer="shot", one_shot=True))
        await harness.settle(60.0)
        await harness.publish(other)
        # Until it does not count as just refused any more.
        await harness.settle(2 * recently_quarantined.KEPT_S)
        assert await reasons(harness) == [Reason.EPOCH_CONTENT_DIFFERS]
        await harness.publish(build_request(table))
        await harness.settle(1.0)
        assert property_key("shot") in (await harness.load()).properties
        await Replays(harness.storage.inner, INBOX).replay(other.request.inbox_key, FRESH)
        await harness.settle(60.0)
    assert await reasons(harness) == [Reason.EPOCH_CONTENT_DIFFERS]
    assert len(await harness.live_files()) == 2


@pytest.mark.parametrize("is_frozen", [False, True])
async def test_a_chore_does_not_forget_what_was_refused_or_frozen_since_it_was_found(
    is_frozen: bool,
) -> None:
    """By the very round that refuses it, before any listing shows it in quarantine."""
    harness = ServiceHarness()
    table = await harness.create_table()
    key = property_key("shot")
    async with harness.running():
        await harness.publish(build_request(table, producer="shot", one_shot=True))
        await harness.settle(5.0)
        (committer,) = harness.tables.all
        found_due(committer, key)
        if is_frozen:
            await producer_admin(harness).freeze(table.identifier, ProducerName("shot"), "why")
        else:
            other = build_request(table, producer="shot", one_shot=True, fingerprint="another")
            await harness.publish(other)
        await harness.publish(build_request(table))
        await harness.settle(5.0)
    assert key in (await harness.load()).properties
    assert len(await harness.live_files()) == 2


# --- One rollback after another ------------------------------------------------------------------


@pytest.mark.parametrize("again", ["", "3-5"])
async def test_a_second_rollback_is_seen_although_the_first_took_all_that_was_remembered(
    again: str,
) -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await land(harness, table, 0, 1, 2, 3, 4, 5)
    await roll_back(harness, table, 2)
    assert await state_of(harness) is ProducerState.ROLLED_BACK
    await producer_admin(harness).thaw(table.identifier, NAME, EpochRanges.parse(again))
    assert await state_of(harness) is ProducerState.ACTIVE
    await roll_back(harness, table, 0)
    assert await state_of(harness) is ProducerState.ROLLED_BACK
    current = await harness.catalog.load(table.identifier)
    assert str((await producer_admin(harness).lost(current, NAME)).epochs) == "1-2"


async def test_what_was_accepted_after_a_rollback_is_not_lost_any_more() -> None:
    """Thawed with `--redo-lost` the producer would land it a second time."""
    harness = ServiceHarness()
    table = await harness.create_table()
    await land(harness, table, 0, 1, 2)
    await roll_back(harness, table, 0)
    back = build_request(table, epoch=1)
    await harness.publish(back)
    await harness.run_until_settled()
    assert await accept(harness, table, back) == {}
    await replay(harness, back)
    assert len(await harness.live_files()) == 2
    current = await harness.catalog.load(table.identifier)
    lost = await producer_admin(harness).lost(current, NAME)
    assert str(lost.epochs) == "2"
    await producer_admin(harness).thaw(table.identifier, NAME, lost.epochs)
    await land(harness, table, 1, 2)
    assert len(await harness.live_files()) == 3
    assert await epochs_of(harness) == "0-2"


async def test_what_was_accepted_between_two_rollbacks_is_lost_with_the_second() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await land(harness, table, 0, 1)
    await roll_back(harness, table, 0)
    between = build_request(table, epoch=2)
    await harness.publish(between)
    await harness.run_until_settled()
    assert await accept(harness, table, between) == {}
    await replay(harness, between)
    assert len(await harness.live_files()) == 2
    await roll_back(harness, table, 0)
    current = await harness.catalog.load(table.identifier)
    lost = await producer_admin(harness).lost(current, NAME)
    assert (str(lost.epochs), lost.snapshots, lost.is_whole) == ("1-2", 2, True)


async def test_a_rerun_of_what_was_accepted_is_a_duplicate_after_its_snapshot_expired() -> None:
    """The process that deletes the accepted request does not know that the first one's is gone."""
    harness = ServiceHarness()
    table, other = await refused_for_its_content(harness)
    assert await accept(harness, table, other) == {}
    async with harness.running():
        await put_back(harness, other)
        await harness.settle(7.0)
        await publish_in_turn(harness, table, 1, 2, 3)
        old = (await harness.load()).snapshots[:-1]
        gone = tuple(one.snapshot_id for one in old)
        await foreign_commit(harness, table, RemoveSnapshots(gone))
        await harness.publish(build_request(table, epoch=0, fingerprint="something else"))
        await harness.settle(7.0)
    assert await reasons(harness) == []
    assert len(await harness.live_files()) == 5


# --- While a committer stands still --------------------------------------------------------------


class StandsStill(FaultyCatalog):
    """Something happens before the table is read for the second time."""

    def __init__(self, harness: ServiceHarness, meanwhile: Callable[[], Awaitable[object]]) -> None:
        super().__init__(harness.catalog.inner)
        self.meanwhile: Callable[[], Awaitable[object]] | None = meanwhile
        self.is_waiting = True

    async def load(self, identifier: TableIdentifier) -> LoadedTable:
        if self.is_waiting and self.calls["swap"] and self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
        return await super().load(identifier)


async def undo_last(harness: ServiceHarness, table: LoadedTable) -> None:
    """Roll the last commit back, let its epoch land once more, and expire it, as we do."""
    *_, before, lost = (await harness.load()).snapshots
    kept = set(await manifests_of(harness, before))
    await foreign_commit(
        harness, table, SetSnapshotRef(MAIN, SnapshotRef(before.snapshot_id, "branch"))
    )
    desk = replace(producer_admin(harness), catalog=harness.catalog.inner)
    current = await harness.catalog.inner.load(table.identifier)
    again = (await desk.lost(current, NAME)).epochs
    await desk.thaw(table.identifier, NAME, again)
    await foreign_commit(harness, table, RemoveSnapshots((lost.snapshot_id,)))
    gone = set(await manifests_of(harness, lost)) - kept
    await harness.storage.inner.delete((lost.manifest_list or "", *gone))


async def manifests_of(harness: ServiceHarness, snapshot: Snapshot) -> list[str]:
    content = await harness.storage.inner.get(snapshot.manifest_list or "")
    return [row.manifest_path for row in decode_manifest_list(content).rows]


async def test_a_batch_that_landed_was_rolled_back_and_expired_is_written_anew() -> None:
    """Its answer was lost; what it has written is gone when the committer goes on."""
    harness = ServiceHarness()
    table = await harness.create_table()
    await land(harness, table, 0)
    harness.catalog = StandsStill(harness, lambda: undo_last(harness, table))
    harness.catalog.plan(Fault.LOST_REPLY)
    await land(harness, table, 1)
    assert len(await harness.live_files()) == 2
    assert await epochs_of(harness) == "0-1"


async def test_a_merge_that_landed_was_rolled_back_and_expired_is_not_taken_along_again() -> None:
    merging = Merging()
    harness, table = merging.harness, await merging.create()
    harness.catalog = StandsStill(harness, lambda: undo_last(harness, table))
    async with merging.running():
        harness.catalog.is_waiting = False
        await merging.commit(4)
        harness.catalog.is_waiting = True
        harness.catalog.plan(Fault.LOST_REPLY)
        await merging.commit()
        await harness.settle(30.0)
        await merging.commit(2)
    await merging.assert_each_file_once()


# --- After a table was accepted ------------------------------------------------------------------


async def test_what_landed_before_the_ledger_was_taken_away_is_told_so_beside_another() -> None:
    """Seed 910408: accepted without the ledger, the table took another content of the epoch."""
    harness = ServiceHarness()
    table = await harness.create_table()
    first = build_request(table, epoch=0)
    await harness.publish(first)
    await harness.run_until_settled()
    await foreign_commit(harness, table, RemoveProperties((NAME.key,)))
    await harness.accept()
    await harness.publish(build_request(table, epoch=0, fingerprint="another"))
    await harness.run_until_settled()
    assert len(await harness.live_files()) == 2
    # It had not left the inbox: the proof of its landing was void.
    await harness.publish(first)
    await harness.run_until_settled()
    assert await reasons(harness) == []
    assert await harness.outstanding() == []
    assert len(await harness.live_files()) == 2
    told, snapshots = (await harness.receipts())[-1], (await harness.load()).snapshots
    assert (told.attempt, told.snapshot_id) == (
        str(first.request.attempt),
        snapshots[0].snapshot_id,
    )
