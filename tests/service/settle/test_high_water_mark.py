"""The high-water mark beside a working committer: written before the inbox forgets, believed before
the table, never lowered but by an operator.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import pytest

from committer.errors import TableFrozenError
from committer.iceberg.manifest.manifest_list import encode_manifest_list
from committer.iceberg.metadata.snapshot import MAIN, Snapshot, SnapshotRef
from committer.iceberg.updates.metadata_update import (
    AddSnapshot,
    RemoveProperties,
    RemoveSnapshotRef,
    RemoveSnapshots,
    SetProperties,
    SetSnapshotRef,
    Update,
)
from committer.ledger_entry import EpochRanges, property_key
from committer.plan.ledger.high_water_mark import HighWaterMark, parse_high_water_mark
from committer.plan.ledger.producer_decisions import ProducerName
from committer.plan.ledger.state import TableState
from committer.ports.pointer_swap import LoadedTable, Swap, SwapAnswer, Unknown
from committer.ports.storage import NewObject, Storage
from committer.reason import Reason
from committer.request.receipt_model import ReceiptState
from committer.request.table_identifier import TableIdentifier
from committer.service.requests.evidence_reader import EvidenceReader
from committer.service.settle.high_water_check import HighWaterCheck
from committer.service.settle.high_water_mark_store import HighWaterMarkStore
from committer.storage.inbox.high_water_mark_objects import HighWaterMarks
from tests.support.builders.flights import build_flights, foreign_swap
from tests.support.builders.request_builders import build_request
from tests.support.faults.faulty_catalog import Fault, FaultyCatalog
from tests.support.faults.stopping_storage import StoppingStorage
from tests.support.memory.memory_catalog import MemoryCatalog
from tests.support.service.decisions import producer_admin, publish_in_turn
from tests.support.service.high_water_marks import NAME, PickyHighWaterMarks, is_frozen
from tests.support.service.outside import add_table, foreign_commit
from tests.support.service.service_harness import INBOX, ServiceHarness

VIRTUAL_TIME = True


async def known(harness: ServiceHarness, table: LoadedTable) -> HighWaterMark:
    """Return the durable high-water mark."""
    table_uuid = table.metadata.require_uuid()
    return parse_high_water_mark(await harness.high_water_marks.get(table_uuid), table_uuid)


async def put_back(harness: ServiceHarness, to: LoadedTable) -> None:
    """Restore the table to older metadata, as a restored catalog or `register_table` does."""
    await harness.catalog.inner.drop_table(NAME)
    await harness.catalog.inner.register_table(NAME, to.metadata_location)


async def current(harness: ServiceHarness) -> LoadedTable:
    return await harness.catalog.inner.load(NAME)


# --- Going backwards -----------------------------------------------------------------------------


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("format_version", [1, 2, 3])
async def test_a_table_that_was_put_back_freezes_until_an_operator_accepts_it(
    format_version: int, restarts: bool
) -> None:
    harness = ServiceHarness()
    table = await add_table(harness, build_flights(format_version=format_version, fields=()))
    async with harness.running():
        await publish_in_turn(harness, table, 0)
        older = await current(harness)
        await publish_in_turn(harness, table, 1, 2)
        if not restarts:
            await put_back(harness, older)
            await assert_frozen_until_accepted(harness, table)
    if restarts:
        await put_back(harness, older)
        async with harness.running():
            await assert_frozen_until_accepted(harness, table)
    assert await harness.quarantined() == []


async def assert_frozen_until_accepted(harness: ServiceHarness, table: LoadedTable) -> None:
    await harness.receipts()
    again = build_request(table, epoch=1)
    for sealed in (build_request(table, epoch=3), again, build_request(table, producer="new")):
        await harness.publish(sealed)
    await harness.settle(60.0)
    assert is_frozen(harness)
    # Also if this process has never committed to it, its requests have its name.
    tables = harness.status_collector.status().tables
    assert [(one.table, one.pending_requests) for one in tables] == [(str(NAME), 3)]
    assert len((await harness.load()).snapshots) == 1
    assert len(await harness.outstanding()) == 3
    assert await harness.receipts() == []
    await harness.accept()
    await harness.settle(15.0)
    assert not is_frozen(harness)
    # The lost requests may land again, and only if they are published again.
    assert len(await harness.live_files()) == 4
    assert await harness.outstanding() == []


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_ledger_that_lost_an_entry_freezes_the_table(restarts: bool) -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running():
        await publish_in_turn(harness, table, 0, 1)
        entry = (await harness.load()).properties[property_key("query-1")]
        if not restarts:
            await foreign_commit(harness, table, RemoveProperties((property_key("query-1"),)))
            await harness.publish(build_request(table, epoch=1))
            await harness.settle(60.0)
    if restarts:
        await foreign_commit(harness, table, RemoveProperties((property_key("query-1"),)))
        await harness.publish(build_request(table, epoch=1))
    async with harness.running():
        await harness.settle(60.0)
        assert is_frozen(harness)
        assert len(await harness.live_files()) == 2
        # Put right instead of accepted: then the epoch is known to have landed.
        await foreign_commit(harness, table, SetProperties({property_key("query-1"): entry}))
        await harness.settle(15.0)
        assert not is_frozen(harness)
    assert len(await harness.live_files()) == 2
    assert await harness.outstanding() == []


@pytest.mark.parametrize("format_version", [1, 2, 3])
@pytest.mark.parametrize("first", [0, 1])
async def test_a_ledger_that_lost_an_entry_before_its_high_water_mark_was_written_freezes_the_table(
    format_version: int, first: int
) -> None:
    """A crash in between, and an engine that unsets our properties: it must not land twice."""
    harness = ServiceHarness()
    storage = PickyHighWaterMarks(harness.storage.inner)
    harness.high_water_marks = HighWaterMarks(storage, INBOX)
    table = await add_table(harness, build_flights(format_version=format_version, fields=()))
    async with harness.running():
        await publish_in_turn(harness, table, *range(first))
        storage.refused = harness.high_water_marks.location(table.metadata.require_uuid())
        await publish_in_turn(harness, table, first)
    key = property_key("query-1")
    entry = (await harness.load()).properties[key]
    await foreign_commit(harness, table, RemoveProperties((key,)))
    storage.refused = ""
    async with harness.running():
        await harness.settle(60.0)
        assert is_frozen(harness)
        await foreign_commit(harness, table, SetProperties({key: entry}))
        await harness.settle(15.0)
        assert not is_frozen(harness)
    assert len(await harness.live_files()) == first + 1
    assert await harness.outstanding() == []


@pytest.mark.parametrize("format_version", [1, 2, 3])
async def test_what_only_a_manifest_list_proves_stays_known_when_its_snapshot_expires(
    format_version: int,
) -> None:
    """As before, and the table is replaced too, so that no branch leads to the proof."""
    harness = ServiceHarness()
    storage = PickyHighWaterMarks(harness.storage.inner)
    harness.high_water_marks = HighWaterMarks(storage, INBOX)
    table = await add_table(harness, build_flights(format_version=format_version, fields=()))
    storage.refused = harness.high_water_marks.location(table.metadata.require_uuid())
    async with harness.running():
        await publish_in_turn(harness, table, 0)
    proof = (await harness.load()).current_snapshot
    assert proof is not None
    storage.refused = ""
    await foreign_commit(harness, table, RemoveProperties((property_key("query-1"),)))
    await replace_table(harness, table, proof)
    async with harness.running():
        await harness.settle(60.0)
        assert is_frozen(harness)
        await foreign_commit(harness, table, RemoveSnapshots((proof.snapshot_id,)))
        await harness.settle(60.0)
        assert is_frozen(harness)
    async with harness.running():
        await harness.settle(60.0)
        assert is_frozen(harness)
        await harness.accept()
        await harness.settle(60.0)
        assert not is_frozen(harness)
    assert len(await harness.live_files()) == 1


async def replace_table(harness: ServiceHarness, table: LoadedTable, head: Snapshot) -> None:
    """Run `CREATE OR REPLACE TABLE … AS SELECT` as another engine: a chain that starts anew."""
    metadata = (await current(harness)).metadata
    other = f"{metadata.location}/metadata/replaced.avro"
    number = 0 if metadata.format_version == 1 else metadata.last_sequence_number + 1
    content = encode_manifest_list(
        [],
        format_version=metadata.format_version,
        snapshot_id=77,
        parent_snapshot_id=None,
        sequence_number=number,
        first_row_id=metadata.next_row_id if metadata.format_version == 3 else None,
        sync=bytes(16),
        extra_metadata={},
    )
    await harness.storage.inner.create([NewObject(other, content)])
    anew = replace(
        head,
        snapshot_id=77,
        parent_snapshot_id=None,
        sequence_number=number,
        timestamp_ms=head.timestamp_ms + 1,
        manifest_list=other,
        summary={"operation": "append"},
        first_row_id=metadata.next_row_id if metadata.format_version == 3 else None,
        added_rows=0 if metadata.format_version == 3 else None,
    )
    await foreign_commit(harness, table, RemoveSnapshotRef(MAIN))
    await foreign_commit(
        harness, table, AddSnapshot(anew), SetSnapshotRef(MAIN, SnapshotRef(77, "branch"))
    )


async def test_a_rollback_of_the_branch_freezes_its_producers_and_not_the_table() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running():
        await publish_in_turn(harness, table, 0, 1, 2)
        first = (await harness.load()).snapshots[0].snapshot_id
        await foreign_commit(harness, table, SetSnapshotRef(MAIN, SnapshotRef(first, "branch")))
        await publish_in_turn(harness, table, 3)
        await publish_in_turn(harness, table, 0, producer="query-2")
        assert not is_frozen(harness)
    (record,) = await harness.quarantined()
    assert record.reason == Reason.PRODUCER_FROZEN
    assert len(await harness.live_files()) == 2


async def test_a_rollback_with_its_clean_up_keeps_nothing_in_the_inbox_for_ever() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    again = build_request(table, producer="query-2")
    async with harness.running(reconcile_interval_s=60.0):
        await harness.publish(again)
        await harness.settle(7.0)
        await publish_in_turn(harness, table, 0, 1)
        first, *others = [one.snapshot_id for one in (await harness.load()).snapshots]
        await foreign_commit(harness, table, SetSnapshotRef(MAIN, SnapshotRef(first, "branch")))
        await foreign_commit(harness, table, RemoveSnapshots(tuple(others)))
        await harness.publish(again)
        await harness.settle(300.0)
        assert await harness.outstanding() == []


async def test_a_new_table_of_the_same_name_has_a_high_water_mark_of_its_own() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running():
        await publish_in_turn(harness, table, 0, 1)
        await harness.catalog.inner.drop_table(NAME)
        other = await harness.create_table()
        await publish_in_turn(harness, table, 2)
        await publish_in_turn(harness, other, 0)
        assert not is_frozen(harness)
    assert [one.reason for one in await harness.quarantined()] == [Reason.TABLE_UUID_MISMATCH]
    assert (await known(harness, table)).sequence_number == 2
    assert (await known(harness, other)).sequence_number == 1


async def test_other_tables_go_on_beside_a_frozen_one() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    other = await harness.create_table("db.other")
    async with harness.running():
        older = await current(harness)
        await publish_in_turn(harness, table, 0)
        await put_back(harness, older)
        await publish_in_turn(harness, table, 1)
        await publish_in_turn(harness, other, 0, 1)
        assert is_frozen(harness)
    assert len(await harness.live_files("db.other")) == 2


async def test_a_foreign_commit_is_no_step_back() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running():
        for epoch in range(3):
            await foreign_commit(harness, table, SetProperties({"foreign": str(epoch)}))
            await publish_in_turn(harness, table, epoch)
        assert not is_frozen(harness)
    assert len(await harness.live_files()) == 3


# --- The high-water mark itself
# --------------------------------------------------------------------------


async def test_a_high_water_mark_that_nobody_can_read_freezes_the_table() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    table_uuid = table.metadata.require_uuid()
    async with harness.running():
        await publish_in_turn(harness, table, 0)
    etag = await harness.high_water_marks.etag(table_uuid)
    await harness.high_water_marks.replace(table_uuid, b"{", etag=etag)
    async with harness.running():
        await publish_in_turn(harness, table, 1)
        assert is_frozen(harness)
        assert len(await harness.live_files()) == 1
        await harness.accept()
        await harness.settle(15.0)
        assert not is_frozen(harness)
    assert len(await harness.live_files()) == 2
    assert await harness.outstanding() == []


async def test_nothing_leaves_the_inbox_while_its_high_water_mark_cannot_be_written() -> None:
    harness = ServiceHarness()
    storage = PickyHighWaterMarks(harness.storage.inner)
    harness.high_water_marks = HighWaterMarks(storage, INBOX)
    table = await harness.create_table()
    other = await harness.create_table("db.other")
    async with harness.running():
        await publish_in_turn(harness, table, 0)
        storage.refused = harness.high_water_marks.location(table.metadata.require_uuid())
        await publish_in_turn(harness, table, 1)
        await publish_in_turn(harness, other, 0)
        (left,) = await harness.outstanding()
        assert left.startswith(str(table.metadata.table_uuid))
        assert len(await harness.receipts()) == 3
        storage.refused = ""
        await harness.settle(60.0)
    assert await harness.outstanding() == []
    assert (await known(harness, table)).sequence_number == 2


async def test_commits_that_follow_each_other_share_a_high_water_mark() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running():
        await publish_in_turn(harness, table, 0)
        harness.inbox_storage.calls.clear()
        for epoch in range(1, 6):
            await harness.publish(build_request(table, epoch=epoch))
            await harness.settle(0.001)
        await harness.settle(7.0)
        assert len((await harness.load()).snapshots) == 6
        calls = harness.inbox_storage.calls
        assert (calls["replace"], calls["delete"], calls["head"]) == (1, 1, 0)
    assert (await known(harness, table)).producers == {property_key("query-1"): 5}


# --- Crashes -------------------------------------------------------------------------------------


def is_settling(kind: str, locations: Sequence[str]) -> bool:
    """Return whether a call writes the high-water mark or deletes from the inbox."""
    inbox = kind == "delete" and locations[0].startswith(f"{INBOX}/inbox/")
    return inbox or locations[0].startswith(f"{INBOX}/witness/")


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize("stop_at", range(4))
async def test_a_crash_between_swap_and_inbox_leaves_one_of_them_knowing(
    stop_at: int, applied: bool
) -> None:
    made: list[StoppingStorage] = []

    def wrap(inner: Storage) -> StoppingStorage:
        made.append(StoppingStorage(inner, is_settling))
        return made[0]

    harness = ServiceHarness(wrap=wrap)
    table = await harness.create_table()
    made[0].stop_at, made[0].applied = stop_at, applied
    async with harness.running():
        for producer in ("query-1", "query-2"):
            await harness.publish(build_request(table, producer=producer))
        await harness.settle()
        await harness.publish(build_request(table, epoch=1))
        await harness.settle()
        assert [kind for kind, _ in made[0].changes] == (["replace", "delete"] * 2)[: stop_at + 1]
    landed = (await harness.load()).last_sequence_number
    # A delete that was cut off may have taken some of its objects.
    left = await harness.outstanding()
    if len(left) < 3:
        high_water_mark = await known(harness, table)
        gone = {f"query-{number}" for number in (1, 2)} - {key.split("/")[1] for key in left}
        assert gone <= {key.rpartition(".")[2] for key in high_water_mark.producers}
    made[0].stop_at = None
    await harness.run_until_settled()
    assert await harness.outstanding() == []
    assert len(await harness.live_files()) == 3
    assert (await harness.load()).last_sequence_number == landed == 2
    assert (await known(harness, table)).sequence_number == 2


# --- Several committers, and an operator ---------------------------------------------------------


def states(count: int) -> list[TableState]:
    """Return a table's states after so many foreign commits, all different."""
    table = build_flights(fields=())
    found = []
    for number in range(count):
        updates: tuple[Update, ...] = (SetProperties({"number": str(number)}),)
        swap = foreign_swap(table, *updates)
        table = LoadedTable(table.identifier, swap.metadata, swap.metadata_location)
        found.append(TableState.of(table))
    return found


async def test_a_committer_with_an_older_view_takes_nothing_back() -> None:
    harness = ServiceHarness()
    older, newer = (HighWaterMark.of(state) for state in states(2))
    one, two = (
        HighWaterMarkStore(harness.high_water_marks),
        HighWaterMarkStore(harness.high_water_marks),
    )
    table_uuid = older.table_uuid
    assert await one.read(table_uuid) == HighWaterMark(table_uuid) == await two.read(table_uuid)
    assert await two.keep(newer)
    harness.inbox_storage.calls.clear()
    assert await one.keep(older)
    assert await one.read(table_uuid) == newer
    # It wrote on condition of what it had read, saw that it was late, and had nothing to add.
    assert harness.inbox_storage.calls["replace"] == 1


async def test_two_committers_that_write_at_once_both_have_written() -> None:
    harness = ServiceHarness()
    seen = [
        HighWaterMark.of(state).without({f"key-{n}": n}, sequence_number=n)
        for n, state in enumerate(states(6))
    ]
    keepers = [HighWaterMarkStore(harness.high_water_marks) for _ in seen]
    assert all(await asyncio.gather(*map(HighWaterMarkStore.keep, keepers, seen)))
    joined = seen[0]
    for one in seen[1:]:
        joined = joined.joined(one)
    assert await keepers[0].read(joined.table_uuid) == joined


async def test_what_was_seen_before_an_acceptance_proves_nothing_after_it() -> None:
    harness = ServiceHarness()
    older, newer = states(2)
    committer, producer_admin = (
        HighWaterMarkStore(harness.high_water_marks),
        HighWaterMarkStore(harness.high_water_marks),
    )
    assert await committer.keep(HighWaterMark.of(newer))
    accepted = await producer_admin.accept(older, now_ms=5)
    assert not await committer.keep(HighWaterMark.of(newer))
    assert not await HighWaterMarkStore(harness.high_water_marks).keep(HighWaterMark.of(newer))
    assert await producer_admin.read(accepted.table_uuid) == accepted


async def test_what_was_seen_before_epochs_were_let_go_proves_nothing_each_time() -> None:
    harness = ServiceHarness()
    (seen,) = map(HighWaterMark.of, states(1))
    epochs = {property_key("query-1"): 1}
    committer, desk = (
        HighWaterMarkStore(harness.high_water_marks),
        HighWaterMarkStore(harness.high_water_marks),
    )
    for _ in range(2):
        assert await committer.keep(seen)
        await desk.forget(seen.table_uuid, epochs, sequence_number=1, now_ms=5)
        assert not await committer.keep(seen)
        assert committer.has_decided_since(seen)
        seen = seen.joined(await committer.read(seen.table_uuid))


async def test_two_histories_of_one_table_prove_nothing_for_one_another() -> None:
    """Put back, and another committer went on from there before this one's high-water mark was
    written.
    """
    harness = ServiceHarness()
    (newer,) = states(1)
    seen = replace(HighWaterMark.of(newer), sequence_number=7, snapshot_id=1)
    assert await HighWaterMarkStore(harness.high_water_marks).keep(replace(seen, snapshot_id=2))
    assert not await HighWaterMarkStore(harness.high_water_marks).keep(seen)


async def test_a_committer_goes_on_through_an_acceptance_that_it_did_not_wait_for() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running(reconcile_interval_s=60.0):
        await publish_in_turn(harness, table, 0)
        await harness.publish(build_request(table, epoch=1))
        await harness.settle(0.01)
        # It has landed epoch 1, and is about to tell the high-water mark.
        await harness.accept()
        await harness.settle(1.0)
        assert len(await harness.outstanding()) == 1
        await publish_in_turn(harness, table, 2)
        # It has looked at the table again before, so this has left.
        assert len(await harness.outstanding()) == 1
        await harness.settle(120.0)
        assert await harness.outstanding() == []
        assert not is_frozen(harness)
        harness.inbox_storage.calls.clear()
        await publish_in_turn(harness, table, 3)
        assert dict(harness.inbox_storage.calls) == {"create": 1, "replace": 1, "delete": 1}
    assert len(await harness.live_files()) == 4
    high_water_mark = await known(harness, table)
    assert high_water_mark.accepted_ms > 0
    assert high_water_mark.producers == {property_key("query-1"): 3}


async def test_a_batch_whose_ledger_was_taken_away_and_accepted_goes_again_as_another() -> None:
    """Its snapshot is in the table: it cannot be added once more under the same id."""
    harness = ServiceHarness()
    table = await harness.create_table()
    harness.catalog = TakesTheLedger(harness)
    async with harness.running():
        harness.catalog.plan(Fault.LOST_REPLY)
        await publish_in_turn(harness, table, 0)
        await harness.settle(10.0)
        assert is_frozen(harness)
        await harness.accept()
        await harness.settle(60.0)
        assert await harness.outstanding() == []
    assert len((await harness.load()).snapshots) == 2
    assert await harness.quarantined() == []


class TakesTheLedger(FaultyCatalog):
    """Another engine unsets our properties before a swap with a lost answer is resolved."""

    def __init__(self, harness: ServiceHarness) -> None:
        super().__init__(harness.catalog.inner)
        self._harness = harness

    async def swap(self, swap: Swap) -> SwapAnswer:
        answer = await super().swap(swap)
        if isinstance(answer, Unknown):
            key = property_key("query-1")
            await foreign_commit(self._harness, swap.base, RemoveProperties((key,)))
        return answer


async def test_an_acceptance_voids_the_deletion_of_what_the_table_has_lost() -> None:
    harness = ServiceHarness()
    storage = PickyHighWaterMarks(harness.storage.inner)
    harness.high_water_marks = HighWaterMarks(storage, INBOX)
    table = await harness.create_table()
    async with harness.running(reconcile_interval_s=60.0):
        await publish_in_turn(harness, table, 0)
        older = await current(harness)
        storage.refused = harness.high_water_marks.location(table.metadata.require_uuid())
        await publish_in_turn(harness, table, 1)
        # Landed, and still in the inbox: the high-water mark could not be told.
        await put_back(harness, older)
        await publish_in_turn(harness, table, 2)
        # Nothing durable says so, but this committer has seen it.
        assert (await known(harness, table)).sequence_number == 1
        assert is_frozen(harness)
        storage.refused = ""
        await harness.accept()
        await harness.settle(300.0)
        assert await harness.outstanding() == []
    # It is in the accepted table: it has landed there once more.
    assert len(await harness.live_files()) == 3


async def test_a_thaw_voids_the_deletion_of_what_may_land_once_more() -> None:
    harness = ServiceHarness()
    storage = PickyHighWaterMarks(harness.storage.inner)
    harness.high_water_marks = HighWaterMarks(storage, INBOX)
    table = await harness.create_table()
    async with harness.running(reconcile_interval_s=60.0):
        await publish_in_turn(harness, table, 0)
        head = (await harness.load()).current_snapshot_id or 0
        storage.refused = harness.high_water_marks.location(table.metadata.require_uuid())
        await publish_in_turn(harness, table, 1)
        # Landed, and still in the inbox: the high-water mark could not be told.
        await foreign_commit(harness, table, SetSnapshotRef(MAIN, SnapshotRef(head)))
        keeper = HighWaterMarkStore.at(harness.storage.inner, INBOX)
        desk = replace(producer_admin(harness), high_water_marks=keeper)
        await desk.thaw(NAME, ProducerName("query-1"), EpochRanges(((1, 1),)))
        storage.refused = ""
        await harness.settle(300.0)
        assert await harness.outstanding() == []
    assert len(await harness.live_files()) == 2


class SlowKeeper(HighWaterMarkStore):
    """Is held up before it reads."""

    async def read(self, table_uuid: UUID) -> HighWaterMark:
        await asyncio.sleep(30.0)
        return await super().read(table_uuid)


async def test_what_was_read_before_an_acceptance_is_not_taken_for_what_was_accepted() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running():
        await publish_in_turn(harness, table, 0, 1)
    keeper, evidence = SlowKeeper(harness.high_water_marks), EvidenceReader(harness.storage)
    table_uuid = table.metadata.require_uuid()
    high_water_mark = HighWaterCheck(NAME, table_uuid, keeper, harness.catalog, evidence)
    loading = asyncio.create_task(high_water_mark.load(None))
    await asyncio.sleep(0.5)
    await foreign_commit(harness, table, RemoveProperties((property_key("query-1"),)))
    await harness.accept()
    state = await loading
    assert state.ledger.entries == {}
    assert high_water_mark.known.producers == {}
    assert (await high_water_mark.load(state)).metadata == await harness.load()


async def test_what_was_read_before_a_thaw_is_no_proof_behind_it() -> None:
    """Epoch 1 may land once more, and its request is in the inbox."""
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running():
        await publish_in_turn(harness, table, 0, 1)
    keeper, evidence = SlowKeeper(harness.high_water_marks), EvidenceReader(harness.storage)
    high_water_mark = HighWaterCheck(
        NAME, table.metadata.require_uuid(), keeper, harness.catalog, evidence
    )
    loading = asyncio.create_task(high_water_mark.load(None))
    await asyncio.sleep(0.5)
    head = (await harness.load()).snapshots[0].snapshot_id
    await foreign_commit(harness, table, SetSnapshotRef(MAIN, SnapshotRef(head)))
    await producer_admin(harness).thaw(NAME, ProducerName("query-1"), EpochRanges(((1, 1),)))
    state = await loading
    assert await keeper.keep(high_water_mark.known)
    assert 1 not in state.ledger.entries[property_key("query-1")].epochs


class SlowCatalog(MemoryCatalog):
    """Reads the pointer, and is held up before it answers."""

    async def load(self, identifier: TableIdentifier) -> LoadedTable:
        table = await super().load(identifier)
        await asyncio.sleep(1.0)
        return table


async def test_a_commit_of_another_between_pointer_and_high_water_mark_is_no_step_back() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    slow = SlowCatalog(storage=harness.storage.inner)
    slow.__dict__.update(harness.catalog.inner.__dict__)
    table_uuid = table.metadata.require_uuid()

    high_water_mark = HighWaterCheck(
        NAME,
        table_uuid,
        SlowKeeper(harness.high_water_marks),
        slow,
        EvidenceReader(harness.storage),
    )
    loading = asyncio.create_task(high_water_mark.load(None))
    await asyncio.sleep(0.5)
    async with harness.running():
        await publish_in_turn(harness, table, 0, 1)
        state = await loading
        assert state.metadata.last_sequence_number == 2
        assert high_water_mark.known.sequence_number == 2
        older = state
        await publish_in_turn(harness, table, 2)
    # The same, but it is what the table really has.
    await put_back(harness, older.table)
    with pytest.raises(TableFrozenError, match=r"frazil table accept db\.flights"):
        await high_water_mark.load(state)
    assert len(await harness.receipts()) == 3
    assert {one.state for one in await harness.receipts()} <= {ReceiptState.COMMITTED}
