"""Ways to lose, double or forget a request on its way into quarantine and out: a test for each."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from committer.errors import AccessError, FrazilError, StorageUnavailableError
from committer.iceberg.updates.metadata_update import RemoveSnapshotRef, SetProperties
from committer.ledger_entry import property_key
from committer.plan.batch.batch_policy import BatchPolicy
from committer.ports.storage import NewObject
from committer.reason import Reason
from committer.request.receipt_model import ReceiptState
from committer.request.request_format import EncodedRequest
from committer.service.settle.settler import GATHER_S
from committer.storage.inbox.inbox import Inbox, Quarantine, QuarantineRecord
from committer.storage.inbox.replays import Replays
from tests.support.builders.bad_requests import CHECKED
from tests.support.builders.flights import build_flights
from tests.support.builders.request_builders import build_request
from tests.support.memory.memory_queue import MemoryQueue
from tests.support.service.outside import add_table, foreign_commit
from tests.support.service.scripted import PickyStorage, branch_at, paths
from tests.support.service.service_harness import INBOX, ServiceHarness

VIRTUAL_TIME = True


@pytest.mark.parametrize("error", [AccessError("denied"), StorageUnavailableError("away")])
async def test_a_quarantine_that_cannot_be_written_delays_no_good_request(
    error: FrazilError,
) -> None:
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    is_away = [True]
    storage = PickyStorage(
        harness, lambda method, at: error if is_away[0] and "/quarantine/" in at else None
    )
    harness.quarantine = Quarantine(storage, INBOX)
    async with harness.running():
        await harness.publish(CHECKED[0].make(table, "bad"))
        await harness.publish(CHECKED[1].make(table, "bad-2"))
        for epoch in range(5):
            await harness.publish(build_request(table, epoch=epoch, partition=("AA",)))
            await harness.settle(1.0)
            assert len(await paths(harness)) == epoch + 1
        assert len(await harness.outstanding()) == 2
        is_away[0] = False
        await harness.settle(60.0)
    assert len(await harness.quarantined()) == 2
    assert await harness.outstanding() == []


async def test_quarantine_that_fails_half_way_loses_and_repeats_nothing() -> None:
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    written: list[str] = []

    def fails(method: str, location: str) -> FrazilError | None:
        if method != "create" or "/quarantine/" not in location:
            return None
        written.append(location)
        return StorageUnavailableError("away") if len(written) in (2, 3) else None

    harness.quarantine = Quarantine(PickyStorage(harness, fails), INBOX)
    for number, bad in enumerate(CHECKED[2:6]):
        await harness.publish(bad.make(table, f"bad-{number}"))
    await harness.run_until_settled(seconds=60.0)
    assert len(await harness.quarantined()) == 4
    for number in range(4):
        (receipt,) = await harness.receipts(f"bad-{number}")
        assert receipt.state is ReceiptState.QUARANTINED


async def test_a_verdict_whose_record_may_come_yet_stays_though_its_reason_goes_away() -> None:
    """Seed 1036: no answer to the record, then a request that could land, then the record."""
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    await harness.publish(build_request(table, producer="query-2", partition=("AA",)))
    await harness.run_until_settled()
    tried: list[str] = []

    def no_answer(method: str, location: str) -> FrazilError | None:
        if method != "create" or "/quarantine/" not in location or tried:
            return None
        tried.append(location)
        return StorageUnavailableError("no answer")

    harness.quarantine = Quarantine(PickyStorage(harness, no_answer), INBOX)
    async with harness.running():
        await harness.publish(build_request(table, partition=("AA",), branch="audit"))
        await harness.settle(0.2)
        assert tried
        head = (await harness.load()).current_snapshot_id or 0
        await foreign_commit(harness, table, branch_at("audit", head))
        await harness.settle(60.0)
    (quarantined,) = await harness.quarantined()
    assert quarantined.reason == Reason.BRANCH_UNKNOWN
    assert property_key("query-1", "audit") not in (await harness.load()).properties
    assert await harness.outstanding() == []


async def test_a_second_doorbell_of_what_was_just_quarantined_lands_nothing() -> None:
    """Seed 3001755: a client rang twice, once late; meanwhile the reason had gone away."""
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    refused = build_request(table, epoch=1, partition=("AA",), branch="audit")
    async with harness.running():
        await harness.publish(build_request(table, producer="query-2", partition=("AA",)))
        await harness.settle(1.0)
        head = (await harness.load()).current_snapshot_id or 0
        await foreign_commit(harness, table, branch_at("audit", head))
        await harness.publish(build_request(table, partition=("AA",), branch="audit"))
        await harness.settle(1.0)
        landed_at = (await harness.load()).refs["audit"].snapshot_id
        await foreign_commit(harness, table, RemoveSnapshotRef("audit"))
        await harness.publish(refused)
        await harness.settle(1.0)
        assert len(await harness.quarantined()) == 1
        await foreign_commit(harness, table, branch_at("audit", landed_at))
        await harness.publish(build_request(table, producer="query-2", epoch=1, partition=("AA",)))
        await harness.settle(1.0)
        await harness.publish(refused, durable=False)
        await harness.settle(1.0)
    assert (await harness.load()).refs["audit"].snapshot_id == landed_at
    assert [record.key for record in await harness.quarantined()] == [refused.request.inbox_key]
    assert (await harness.publisher_queue.depth()).waiting == 0


async def test_a_replayed_request_is_not_deleted_by_the_end_of_an_old_doorbell() -> None:
    """It finds nothing; before its end is settled an operator puts the request back."""
    harness = ServiceHarness()
    table = await harness.create_table()
    shot = build_request(table, producer="shot", one_shot=True)
    deleted: list[str] = []

    def note(method: str, location: str) -> FrazilError | None:
        if method == "delete":
            deleted.append(location)
        return None

    harness.inbox = Inbox(PickyStorage(harness, note), INBOX)
    await harness.publish(shot, durable=False)
    await harness.run_until_settled()
    assert deleted == []
    assert await harness.quarantined() == []


async def test_a_discarded_request_does_not_land_by_a_doorbell_that_rings_again() -> None:
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    await harness.publish(build_request(table, epoch=0, partition=("AA",)))
    await harness.run_until_settled()
    late = build_request(table, epoch=1, partition=("AA",))
    # Handed to a committer that dies with it; meanwhile the request is ended by an operator.
    await harness.publish(late)
    dead = MemoryQueue(harness.server, consumer="dead")
    assert len(await dead.read(count_max=10, wait_s=0.0)) == 1
    await harness.inbox.delete([late.request.inbox_key])
    await harness.settle(1_000.0)
    await harness.run_until_settled(seconds=700.0)
    assert len(await paths(harness)) == 1
    assert (await harness.publisher_queue.depth()).waiting == 0


async def test_what_was_quarantined_does_not_land_by_an_older_self_of_the_queue() -> None:
    """The reason is gone by then; a replica that never heard of the end takes the queue over."""
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    sealed = build_request(
        table,
        epoch=1,
        partition=("AA",),
        branch="audit",
        published_at_ms=harness.world.now_ms() + 1_000,
    )
    async with harness.running():
        await harness.publish(build_request(table, partition=("AA",)))
        await harness.settle(2.0)
        # Known there already, so that no committer has to look for its object.
        entry = (await harness.load()).properties[property_key("query-1")]
        await foreign_commit(
            harness, table, SetProperties({property_key("query-1", "audit"): entry})
        )
        await harness.publish(sealed)
        await harness.settle(2.0)
        assert len(await harness.quarantined()) == 1
        head = (await harness.load()).current_snapshot_id or 0
        await foreign_commit(harness, table, branch_at("audit", head))
        harness.server.available = False
        await harness.settle(3.0)
        harness.server.available = True
        await harness.publisher_queue.announce([harness.doorbell(sealed)])
        await harness.settle(10.0)
        assert (await harness.publisher_queue.depth()).waiting == 0
    assert (await harness.load()).refs["audit"].snapshot_id == head
    assert len(await harness.quarantined()) == 1


@pytest.mark.thorough
async def test_a_backlog_of_old_doorbells_is_listed_once_and_not_for_each_of_its_batches() -> None:
    harness = ServiceHarness()
    harness.policy = BatchPolicy(min_interval_ms=0, requests_max=100)
    table = await add_table(harness, build_flights())
    for number in range(500):
        await harness.publish(
            build_request(table, producer=f"q{number % 5}", epoch=number // 5, partition=("AA",))
        )
    await harness.settle(100.0)
    await harness.run_until_settled()
    assert len(await paths(harness)) == 500
    assert len((await harness.load()).snapshots) == 5
    # By the reconciler at the start, and for what was read before each of three rounds.
    assert harness.inbox_storage.calls["list"] == 4


@pytest.mark.parametrize("others", [0, 100])
async def test_a_quarantining_that_was_cut_off_is_finished_and_not_judged_anew(others: int) -> None:
    """A committer died between the record and the removal; then the reason went away."""
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    await harness.publish(build_request(table, producer="query-2", partition=("AA",)))
    await harness.run_until_settled()
    sealed = build_request(table, partition=("AA",), branch="audit")
    key = sealed.request.inbox_key
    await harness.publish(sealed)
    for number in range(others):
        await harness.publish(build_request(table, producer=f"q{number}", partition=("AA",)))
    dead = MemoryQueue(harness.server, consumer="dead")
    await dead.read(count_max=1_000, wait_s=0.0)
    record = QuarantineRecord(
        key=key, reason=Reason.BRANCH_UNKNOWN, message="no branch", quarantined_at_ms=1
    )
    await harness.quarantine.put(record, sealed.content)
    head = (await harness.load()).current_snapshot_id or 0
    await foreign_commit(harness, table, branch_at("audit", head))
    await harness.settle(1_000.0)
    await harness.run_until_settled(seconds=700.0)
    assert property_key("query-1", "audit") not in (await harness.load()).properties
    assert len(await paths(harness)) == 1 + others
    assert await harness.outstanding() == []
    (receipt,) = await harness.receipts()
    assert (receipt.state, receipt.reason) == (ReceiptState.QUARANTINED, Reason.BRANCH_UNKNOWN)
    assert (await harness.publisher_queue.depth()).waiting == 0


async def test_a_replay_does_not_meet_the_deletion_of_its_old_object() -> None:
    """The old object could not be deleted; the deletion is repeated after the replay."""
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    sealed = build_request(table, partition=("AA",), branch="audit")
    is_away = [True]
    storage = PickyStorage(
        harness,
        lambda method, at: (
            StorageUnavailableError("away") if is_away[0] and method == "delete" else None
        ),
    )
    harness.inbox = Inbox(storage, INBOX)
    replays = Replays(harness.storage.inner, INBOX)
    async with harness.running(reconcile_interval_s=20.0):
        await harness.publish(build_request(table, producer="query-2", partition=("AA",)))
        await harness.settle(1.0)
        await harness.publish(sealed)
        await harness.settle(1.0)
        assert [one.reason for one in await harness.quarantined()] == [Reason.BRANCH_UNKNOWN]
        assert sealed.key in await harness.outstanding()
        head = (await harness.load()).current_snapshot_id or 0
        await foreign_commit(harness, table, branch_at("audit", head))
        await replays.replay(sealed.key, harness.world.uuid())
        is_away[0] = False
        await harness.settle(60.0)
        assert await harness.outstanding() == []
    assert property_key("query-1", "audit") in (await harness.load()).properties
    assert await harness.quarantined() == []


class SlowToDelete(PickyStorage):
    """Right before a request is first deleted, another committer has deleted it, and an operator
    has replayed it; nothing of the replay is looked at before the deletion has ended.
    """

    def __init__(self, harness: ServiceHarness, key: str) -> None:
        super().__init__(harness, lambda method, at: None)
        self.world = harness.world
        self.key = key
        self.replayed: EncodedRequest | None = None

    async def delete(self, locations: Sequence[str]) -> None:
        if self.replayed is None:
            await Inbox(self.inner, INBOX).delete([self.key])
            replays = Replays(self.inner, INBOX)
            self.replayed = await replays.replay(self.key, self.world.uuid())
        await super().delete(locations)


async def test_a_deletion_that_comes_late_does_not_take_what_was_replayed_meanwhile() -> None:
    """This committer stands still; another has deleted the object, and an operator replays it."""
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    sealed = build_request(table, partition=("AA",), branch="audit")
    storage = SlowToDelete(harness, sealed.key)
    harness.inbox = Inbox(storage, INBOX)
    async with harness.running(reconcile_interval_s=20.0):
        await harness.publish(sealed)
        await harness.settle(60.0)
    assert storage.replayed is not None
    (record,) = await harness.quarantined()
    assert (record.key, record.reason) == (storage.replayed.key, Reason.BRANCH_UNKNOWN)
    assert (await harness.quarantine.get(record.key))[1] == sealed.content
    assert await harness.outstanding() == []


@pytest.mark.parametrize("is_readable", [True, False])
async def test_a_forged_doorbell_of_what_has_landed_takes_no_other_request_out_of_the_inbox(
    is_readable: bool,
) -> None:
    """It says of an attempt that waits in the inbox that it stands for what has landed."""
    house = ServiceHarness()
    table = await house.create_table()
    nonce = house.world.uuid()
    true = build_request(table, epoch=0, nonce=nonce, fingerprint="something else")
    forged = build_request(table, epoch=0, nonce=nonce, published_at_ms=house.world.now_ms())
    content = true.content if is_readable else b"not a request"
    async with house.running():
        await house.publish(build_request(table, epoch=0))
        await house.settle(1.0)
        await house.storage.inner.create([NewObject(house.inbox.location(true.key), content)])
        await house.publish(forged, durable=False)
        await house.settle(10.0)
    (record,) = await house.quarantined()
    reason = Reason.EPOCH_CONTENT_DIFFERS if is_readable else Reason.REQUEST_TRUNCATED
    assert (record.key, record.reason) == (true.key, reason)
    assert (await house.quarantine.get(true.key))[1] == content
    assert await house.outstanding() == []


async def test_a_forged_doorbell_that_rings_before_its_request_is_durable_does_not_delete_it() -> (
    None
):
    house = ServiceHarness()
    table = await house.create_table()
    nonce = house.world.uuid()
    true = build_request(table, epoch=0, nonce=nonce, fingerprint="something else")
    forged = build_request(table, epoch=0, nonce=nonce, published_at_ms=house.world.now_ms())
    async with house.running(reconcile_interval_s=5.0):
        await house.publish(build_request(table, epoch=0))
        await house.settle(1.0)
        await house.publish(forged, durable=False)
        # Its end, but not yet the deletions of what ended.
        await house.settle(GATHER_S / 2)
        assert (await house.publisher_queue.depth()).waiting == 0
        await house.publish(true, announce=False)
        await house.settle(10.0)
    (record,) = await house.quarantined()
    assert (record.key, record.reason) == (true.key, Reason.EPOCH_CONTENT_DIFFERS)


async def test_another_attempt_that_was_announced_is_a_duplicate_and_leaves_the_inbox() -> None:
    """Its doorbell may come behind its end, too."""
    house = ServiceHarness()
    table = await house.create_table()
    again = build_request(table, epoch=0, published_at_ms=house.world.now_ms())
    async with house.running():
        await house.publish(build_request(table, epoch=0))
        await house.settle(1.0)
        for durable in (True, False):
            await house.publish(again, durable=durable)
            await house.settle(1.0)
            assert await house.outstanding() == []
    assert await house.quarantined() == []
    _, duplicate = await house.receipts()
    assert (duplicate.state, duplicate.duplicate) == (ReceiptState.COMMITTED, True)
    assert (await house.publisher_queue.depth()).waiting == 0


async def test_a_replayed_request_and_its_old_object_land_once() -> None:
    """Their committers ended before they deleted the old object, and rang again for it."""
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    sealed = build_request(table, partition=("AA",))
    await harness.quarantine.put(_record(sealed.key), sealed.content)
    await harness.inbox.put(sealed)
    replays = Replays(harness.storage.inner, INBOX)
    replayed = await replays.replay(sealed.key, harness.world.uuid())
    async with harness.running():
        await harness.publish(sealed, durable=False)
        await harness.publish(replayed, durable=False)
        await harness.settle(10.0)
    assert len(await paths(harness)) == 1
    assert await harness.outstanding() == []
    assert await harness.quarantined() == []
    assert {one.state for one in await harness.receipts()} == {ReceiptState.COMMITTED}
    assert (await harness.publisher_queue.depth()).waiting == 0


@pytest.mark.parametrize("replays", [1, 2])
async def test_a_record_that_is_back_goes_when_its_replay_lands(replays: int) -> None:
    """Seed 410002644: a server applied the write of a record once more, behind its replay."""
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    sealed = build_request(table, partition=("AA",))
    neighbor = build_request(table, nonce=harness.world.uuid(), partition=("AA",))
    await harness.quarantine.put(_record(neighbor.key), neighbor.content)
    place = Replays(harness.storage.inner, INBOX)
    for _ in range(replays):
        await harness.quarantine.put(_record(sealed.key), sealed.content)
        before, sealed = sealed, await place.replay(sealed.key, harness.world.uuid())
        await harness.quarantine.put(_record(before.key), before.content)
    async with harness.running(reconcile_interval_s=20.0):
        await harness.settle(60.0)
    assert len(await paths(harness)) == 1
    assert [record.key for record in await harness.quarantined()] == [neighbor.key]


async def test_a_replay_that_is_refused_once_more_stays_in_quarantine() -> None:
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    sealed = build_request(table, partition=("AA",), branch="audit")
    await harness.quarantine.put(_record(sealed.key), sealed.content)
    replayed = await Replays(harness.storage.inner, INBOX).replay(sealed.key, harness.world.uuid())
    async with harness.running(reconcile_interval_s=20.0):
        await harness.settle(60.0)
    (record,) = await harness.quarantined()
    assert (record.key, record.reason) == (replayed.key, Reason.BRANCH_UNKNOWN)
    assert await harness.outstanding() == []


def _record(key: str) -> QuarantineRecord:
    return QuarantineRecord(key=key, reason="x", message="x", quarantined_at_ms=1)
