"""Ways to lose, double or wrongly quarantine a request that were thought of: a test for each."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace

import pytest

from committer.errors import (
    AccessError,
    AlreadyExistsError,
    FrazilError,
    NotFoundError,
    PublishError,
    SettingsError,
    StorageUnavailableError,
    UnsupportedError,
)
from committer.iceberg.metadata_update import (
    RemoveSnapshotRef,
    SetProperties,
    SetSnapshotRef,
    Update,
)
from committer.iceberg.snapshot import SnapshotRef
from committer.ledger_entry import parse_entry, property_key
from committer.plan.batch import prepare_manifests
from committer.plan.batching import BatchPolicy
from committer.plan.commit import LedgerChores, plan_commit
from committer.ports import (
    Committed,
    Delivery,
    NewObject,
    Rejected,
    Swap,
    SwapAnswer,
)
from committer.queue.memory import MemoryQueue
from committer.reason import Reason
from committer.request import ReceiptState, SealedRequest, read_request
from committer.service import ledger_upkeep
from committer.service.steps import finish
from committer.service.table_committer import TableCommitter
from committer.storage.inbox import Inbox, Quarantine, QuarantineRecord
from committer.storage.replays import Replays
from tests.bad_requests import CHECKED
from tests.counting_storage import CountingStorage
from tests.faulty_catalog import Fault, FaultyCatalog
from tests.flights import build_flights, foreign_swap
from tests.request_builders import build_request
from tests.service.house import INBOX, House
from tests.service.test_bad_input import add_table, foreign_commit, naming

VIRTUAL_TIME = True


class PickyStorage(CountingStorage):
    """Fails the calls that `fails` names, with its error; everything else passes through."""

    def __init__(self, house: House, fails: Callable[[str, str], FrazilError | None]) -> None:
        super().__init__(house.storage.inner)
        self.fails = fails

    def _judge(self, method: str, location: str) -> None:
        error = self.fails(method, location)
        if error is not None:
            raise error

    async def get(self, location: str, *, offset: int = 0, length: int | None = None) -> bytes:
        self._judge("get", location)
        return await super().get(location, offset=offset, length=length)

    async def create(self, objects: Sequence[NewObject]) -> None:
        for created in objects:
            self._judge("create", created.location)
        await super().create(objects)

    async def delete(self, locations: Sequence[str]) -> None:
        for location in locations:
            self._judge("delete", location)
        await super().delete(locations)


class ScriptedCatalog(FaultyCatalog):
    """Lets a test decide about each swap by what is in it."""

    def __init__(self, inner: FaultyCatalog) -> None:
        super().__init__(inner.inner)
        self.decide: Callable[[Swap], SwapAnswer | None] = lambda swap: None
        self.arrives = False

    async def swap(self, swap: Swap) -> SwapAnswer:
        answer = self.decide(swap)
        if self.arrives:
            self.arrives = False
            await self.land_late()
        return await super().swap(swap) if answer is None else answer


def scripted(house: House) -> ScriptedCatalog:
    catalog = ScriptedCatalog(house.catalog)
    house.catalog = catalog
    return catalog


def carries(swap: Swap, producer: str) -> bool:
    """Whether a swap lands a request of this producer."""
    key = property_key(producer)
    return any(isinstance(one, SetProperties) and key in one.updates for one in swap.updates)


async def paths(house: House) -> list[str]:
    found = [file.file_path for file in await house.live_files()]
    assert len(found) == len(set(found))
    return found


# --- Rejected ------------------------------------------------------------------------------------


async def test_a_request_that_landed_late_is_not_quarantined_because_its_retry_is_rejected() -> (
    None
):
    house = House()
    table = await house.create_table()
    catalog = scripted(house)
    catalog.plan(Fault.LANDS_LATE)
    refused: list[Swap] = []

    def refuse_retry(swap: Swap) -> SwapAnswer | None:
        if not catalog.calls["swap"] or refused:
            return None
        refused.append(swap)
        # While the retry is refused, the first attempt arrives.
        catalog.arrives = True
        return Rejected("refused by the test")

    catalog.decide = refuse_retry
    await house.publish(build_request(table))
    await house.run_until_settled(seconds=120.0)
    assert len(refused) == 1
    assert await house.quarantined() == []
    assert len(await paths(house)) == 1
    (receipt,) = await house.receipts()
    assert receipt.state is ReceiptState.COMMITTED


async def test_a_request_at_fault_does_not_stop_others_while_an_earlier_attempt_is_in_doubt() -> (
    None
):
    house = House()
    table = await house.create_table()
    catalog = scripted(house)
    # The first attempt with everything in it is lost; from then on one producer is refused.
    catalog.plan(Fault.REQUEST_LOST)
    catalog.decide = lambda swap: (
        Rejected("refused by the test")
        if carries(swap, "poison") and catalog.calls["swap"] > 0
        else None
    )
    for producer in ("poison", "query-1", "query-2"):
        await house.publish(build_request(table, producer=producer))
    await house.run_until_settled(seconds=300.0)
    (record,) = await house.quarantined()
    assert record.reason == Reason.COMMIT_REJECTED
    assert len(await paths(house)) == 2
    assert await house.outstanding() == []


async def test_a_lone_request_in_doubt_is_tried_again_at_a_calm_pace_until_it_lands() -> None:
    house = House()
    table = await house.create_table()
    catalog = scripted(house)
    catalog.plan(Fault.LANDS_LATE)
    tried = [0]

    def refuse_retries(swap: Swap) -> SwapAnswer | None:
        if not catalog.calls["swap"]:
            return None
        tried[0] += 1
        return Rejected("refused by the test")

    catalog.decide = refuse_retries
    await house.publish(build_request(table))
    await house.run_until_settled(seconds=60.0)
    # No verdict while the first attempt may still land, and no storm of attempts either.
    assert await house.quarantined() == []
    assert 3 < tried[0] < 20
    await catalog.land_late()
    assert len(await paths(house)) == 1
    await house.run_until_settled(seconds=60.0)
    assert await house.quarantined() == []
    assert len(await paths(house)) == 1


async def test_a_poison_request_among_many_is_found_without_waiting_an_interval_for_each_half() -> (
    None
):
    house = House(min_interval_ms=1_000)
    table = await house.create_table()
    catalog = scripted(house)
    catalog.decide = lambda swap: (
        Rejected("refused by the test") if carries(swap, "poison") else None
    )
    await house.publish(build_request(table, producer="poison"))
    for number in range(20):
        await house.publish(build_request(table, producer=f"query-{number}"))
    async with house.running():
        await house.settle(3.0)
        assert len(await paths(house)) == 20
    (record,) = await house.quarantined()
    assert record.reason == Reason.COMMIT_REJECTED


# --- Quarantine ----------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [AccessError("denied"), StorageUnavailableError("away")])
async def test_a_quarantine_that_cannot_be_written_delays_no_good_request(
    error: FrazilError,
) -> None:
    house = House()
    table = await add_table(house, build_flights())
    is_away = [True]
    storage = PickyStorage(
        house, lambda method, at: error if is_away[0] and "/quarantine/" in at else None
    )
    house.quarantine = Quarantine(storage, INBOX)
    async with house.running():
        await house.publish(CHECKED[0].make(table, "bad"))
        await house.publish(CHECKED[1].make(table, "bad-2"))
        for epoch in range(5):
            await house.publish(build_request(table, epoch=epoch, partition=("AA",)))
            await house.settle(1.0)
            assert len(await paths(house)) == epoch + 1
        assert len(await house.outstanding()) == 2
        is_away[0] = False
        await house.settle(60.0)
    assert len(await house.quarantined()) == 2
    assert await house.outstanding() == []


async def test_quarantine_that_fails_half_way_loses_and_repeats_nothing() -> None:
    house = House()
    table = await add_table(house, build_flights())
    written: list[str] = []

    def fails(method: str, location: str) -> FrazilError | None:
        if method != "create" or "/quarantine/" not in location:
            return None
        written.append(location)
        return StorageUnavailableError("away") if len(written) in (2, 3) else None

    house.quarantine = Quarantine(PickyStorage(house, fails), INBOX)
    for number, bad in enumerate(CHECKED[2:6]):
        await house.publish(bad.make(table, f"bad-{number}"))
    await house.run_until_settled(seconds=60.0)
    assert len(await house.quarantined()) == 4
    for number in range(4):
        (receipt,) = await house.receipts(f"bad-{number}")
        assert receipt.state is ReceiptState.QUARANTINED


async def test_a_replayed_request_is_not_deleted_by_the_end_of_an_old_doorbell() -> None:
    """It finds nothing; before its end is settled an operator puts the request back."""
    house = House()
    table = await house.create_table()
    shot = build_request(table, producer="shot", one_shot=True)
    deleted: list[str] = []

    def note(method: str, location: str) -> FrazilError | None:
        if method == "delete":
            deleted.append(location)
        return None

    house.inbox = Inbox(PickyStorage(house, note), INBOX)
    await house.publish(shot, durable=False)
    await house.run_until_settled()
    assert deleted == []
    assert await house.quarantined() == []


async def test_a_discarded_request_does_not_land_by_a_doorbell_that_rings_again() -> None:
    house = House()
    table = await add_table(house, build_flights())
    await house.publish(build_request(table, epoch=0, partition=("AA",)))
    await house.run_until_settled()
    late = build_request(table, epoch=1, partition=("AA",))
    # Handed to a committer that dies with it; meanwhile the request is ended by an operator.
    await house.publish(late)
    dead = MemoryQueue(house.server, consumer="dead")
    assert len(await dead.read(count_max=10, wait_s=0.0)) == 1
    await house.inbox.delete([late.request.inbox_key])
    await house.settle(1_000.0)
    await house.run_until_settled(seconds=700.0)
    assert len(await paths(house)) == 1
    assert (await house.publisher_queue.depth()).waiting == 0


async def test_what_was_quarantined_does_not_land_by_an_older_self_of_the_queue() -> None:
    """The reason is gone by then; a replica that never heard of the end takes the queue over."""
    house = House()
    table = await add_table(house, build_flights())
    sealed = build_request(
        table,
        epoch=1,
        partition=("AA",),
        branch="audit",
        published_at_ms=house.world.now_ms() + 1_000,
    )
    async with house.running():
        await house.publish(build_request(table, partition=("AA",)))
        await house.settle(2.0)
        # Known there already, so that nobody has to look for its object.
        entry = (await house.load()).properties[property_key("query-1")]
        await foreign_commit(house, table, SetProperties({property_key("query-1", "audit"): entry}))
        await house.publish(sealed)
        await house.settle(2.0)
        assert len(await house.quarantined()) == 1
        head = (await house.load()).current_snapshot_id or 0
        await foreign_commit(house, table, _branch("audit", head))
        house.server.available = False
        await house.settle(3.0)
        house.server.available = True
        await house.publisher_queue.announce([house.doorbell(sealed)])
        await house.settle(10.0)
        assert (await house.publisher_queue.depth()).waiting == 0
    assert (await house.load()).refs["audit"].snapshot_id == head
    assert len(await house.quarantined()) == 1


async def test_a_backlog_of_old_doorbells_is_listed_once_and_not_for_each_of_its_batches() -> None:
    house = House()
    house.policy = BatchPolicy(min_interval_ms=0, requests_max=100)
    table = await add_table(house, build_flights())
    for number in range(500):
        await house.publish(
            build_request(table, producer=f"q{number % 5}", epoch=number // 5, partition=("AA",))
        )
    await house.settle(100.0)
    await house.run_until_settled()
    assert len(await paths(house)) == 500
    assert len((await house.load()).snapshots) == 5
    # By the reconciler at the start, for the first that were read, and for the others.
    assert house.inbox_storage.calls["list"] == 3


@pytest.mark.parametrize("others", [0, 100])
async def test_a_quarantining_that_was_cut_off_is_finished_and_not_judged_anew(others: int) -> None:
    """A committer died between the record and the removal; then the reason went away."""
    house = House()
    table = await add_table(house, build_flights())
    await house.publish(build_request(table, producer="query-2", partition=("AA",)))
    await house.run_until_settled()
    sealed = build_request(table, partition=("AA",), branch="audit")
    key = sealed.request.inbox_key
    await house.publish(sealed)
    for number in range(others):
        await house.publish(build_request(table, producer=f"q{number}", partition=("AA",)))
    dead = MemoryQueue(house.server, consumer="dead")
    await dead.read(count_max=1_000, wait_s=0.0)
    record = QuarantineRecord(
        key=key, reason=Reason.BRANCH_UNKNOWN, message="no branch", quarantined_at_ms=1
    )
    await house.quarantine.put(record, sealed.content)
    head = (await house.load()).current_snapshot_id or 0
    await foreign_commit(house, table, _branch("audit", head))
    await house.settle(1_000.0)
    await house.run_until_settled(seconds=700.0)
    assert property_key("query-1", "audit") not in (await house.load()).properties
    assert len(await paths(house)) == 1 + others
    assert await house.outstanding() == []
    (receipt,) = await house.receipts()
    assert (receipt.state, receipt.reason) == (ReceiptState.QUARANTINED, Reason.BRANCH_UNKNOWN)
    assert (await house.publisher_queue.depth()).waiting == 0


async def test_a_replay_does_not_meet_the_deletion_of_its_old_object() -> None:
    """The old object could not be removed; a removal that is repeated later would take the new."""
    house = House()
    table = await add_table(house, build_flights())
    sealed = build_request(table, partition=("AA",), branch="audit")
    key = sealed.request.inbox_key
    is_away = [True]
    storage = PickyStorage(
        house,
        lambda method, at: (
            StorageUnavailableError("away") if is_away[0] and method == "delete" else None
        ),
    )
    house.inbox = Inbox(storage, INBOX)
    replays = Replays(house.storage.inner, INBOX)
    async with house.running(reconcile_interval_s=20.0):
        await house.publish(sealed)
        await house.settle(1.0)
        assert [one.reason for one in await house.quarantined()] == [Reason.BRANCH_UNKNOWN]
        with pytest.raises(PublishError, match="still in the inbox"):
            await replays.replay(key)
        is_away[0] = False
        await house.publish(build_request(table, producer="query-2", partition=("AA",)))
        await house.settle(60.0)
        assert await house.outstanding() == []
        head = (await house.load()).current_snapshot_id or 0
        await foreign_commit(house, table, _branch("audit", head))
        await replays.replay(key)
        await house.settle(60.0)
        assert property_key("query-1", "audit") in (await house.load()).properties
    assert await house.outstanding() == []


class SlowToLeave(PickyStorage):
    """Something happens right before an object leaves the inbox for the first time."""

    def __init__(self, house: House, meanwhile: Callable[[], Awaitable[object]]) -> None:
        super().__init__(house, lambda method, at: None)
        self.meanwhile: Callable[[], Awaitable[object]] | None = meanwhile

    async def delete(self, locations: Sequence[str]) -> None:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile:
            await meanwhile()
        await super().delete(locations)


async def test_a_removal_that_comes_late_does_not_take_what_was_replayed_meanwhile() -> None:
    """This committer stands still; another has removed the object, and an operator replays it."""
    house = House()
    table = await add_table(house, build_flights())
    sealed = build_request(table, partition=("AA",), branch="audit")
    key = sealed.request.inbox_key

    async def replay() -> None:
        await house.inbox_storage.inner.delete([house.inbox.location(key)])
        await Replays(house.storage.inner, INBOX).replay(key)

    house.inbox = Inbox(SlowToLeave(house, replay), INBOX)
    async with house.running(reconcile_interval_s=20.0):
        await house.publish(sealed)
        await house.settle(60.0)
    (record,) = await house.quarantined()
    assert record.reason == Reason.BRANCH_UNKNOWN
    assert (await house.quarantine.get(key))[1] == sealed.content
    assert await house.outstanding() == []


class LosesItsAnswer(SlowToLeave):
    """And the answer to that is lost, and so is every other for half a minute."""

    async def delete(self, locations: Sequence[str]) -> None:
        is_first = self.meanwhile is not None
        await super().delete(locations)
        if is_first:
            self.is_away = True
            asyncio.get_running_loop().call_later(30.0, setattr, self, "is_away", False)
            raise StorageUnavailableError("the test has lost the answer")


async def test_what_was_replayed_meanwhile_is_put_back_although_the_storage_went_away() -> None:
    """Nobody else has it: it is not let go before it is known where it is."""
    house = House()
    table = await add_table(house, build_flights())
    sealed = build_request(table, partition=("AA",), branch="audit")
    key = sealed.request.inbox_key

    async def replay() -> None:
        await house.inbox_storage.inner.delete([house.inbox.location(key)])
        await Replays(house.storage.inner, INBOX).replay(key)

    storage = LosesItsAnswer(house, replay)
    house.inbox, house.quarantine = Inbox(storage, INBOX), Quarantine(storage, INBOX)
    async with house.running(reconcile_interval_s=20.0):
        await house.publish(sealed)
        await house.settle(120.0)
    assert await house.outstanding() == []
    assert (await house.quarantine.get(key))[1] == sealed.content


def _branch(name: str, head: int) -> Update:
    return SetSnapshotRef(name, SnapshotRef(head, "branch"))


# --- Faults of one request, of the planner, of the environment -----------------------------------


@pytest.mark.parametrize(
    "fault", [AccessError("denied"), SettingsError("no client for s3"), StorageUnavailableError("")]
)
async def test_a_named_manifest_that_cannot_be_read_now_delays_its_own_request_only(
    fault: FrazilError,
) -> None:
    house = House()
    table = await add_table(house, build_flights())
    sealed, manifest = naming(table, "slow")
    await house.storage.inner.create((manifest,))
    denied = [True]
    house.storage = PickyStorage(
        house,
        lambda method, at: fault if denied[0] and at == manifest.location else None,
    )
    async with house.running():
        await house.publish(sealed)
        for epoch in range(5):
            await house.publish(build_request(table, epoch=epoch, partition=("AA",)))
            await house.settle(1.0)
            assert len(await paths(house)) == epoch + 1
        denied[0] = False
        await house.settle(60.0)
    assert len(await paths(house)) == 6
    assert await house.quarantined() == []


async def test_a_named_manifest_that_no_storage_can_name_is_quarantined() -> None:
    house = House()
    table = await add_table(house, build_flights())
    sealed, manifest = naming(table, "bad", name="x" * 300)
    house.storage = PickyStorage(
        house,
        lambda method, at: NotFoundError("name too long") if at == manifest.location else None,
    )
    await house.publish(sealed)
    await house.publish(build_request(table, partition=("AA",)))
    await house.run_until_settled()
    (record,) = await house.quarantined()
    assert record.reason == Reason.MANIFEST_MISSING
    assert len(await paths(house)) == 1


async def test_an_inbox_that_cannot_be_asked_delays_only_who_depends_on_the_answer() -> None:
    house = House()
    table = await house.create_table()
    async with house.running():
        await house.publish(build_request(table, epoch=0))
        await house.settle(1.0)
        house.inbox_storage.is_away = True
        await house.publish(build_request(table, epoch=1), durable=False)
        newcomer = build_request(table, producer="new")
        await house.publish(newcomer, durable=False)
        await house.settle(1.0)
        assert len(await paths(house)) == 2
        house.inbox_storage.is_away = False
        await house.inbox.put(newcomer)
        await house.settle(60.0)
    assert len(await paths(house)) == 3


@pytest.mark.parametrize("error", [UnsupportedError("no"), ValueError("bug"), KeyError("bug")])
async def test_a_request_that_cannot_be_planned_is_quarantined_alone(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:

    def trips(batch: object, metadata: object) -> object:
        if any(one.request.producer.id == "poison" for one in batch.requests):  # type: ignore[attr-defined]
            raise error
        return prepare_manifests(batch, metadata)  # type: ignore[arg-type]

    monkeypatch.setattr("committer.service.intents.prepare_manifests", trips)
    house = House()
    table = await house.create_table()
    for producer in ("a", "b", "poison", "c"):
        await house.publish(build_request(table, producer=producer))
    async with house.running():
        await house.settle(5.0)
        assert len(await paths(house)) == 3
    (record,) = await house.quarantined()
    assert record.reason == Reason.PLAN_FAILED


async def test_a_commit_that_the_planner_trips_over_stops_no_other_and_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = [True]

    def trips(state: object, batch: object, *rest: object) -> object:
        if broken[0] and any(one.request.producer.id == "poison" for one in batch.requests):  # type: ignore[attr-defined]
            raise ZeroDivisionError
        return plan_commit(state, batch, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr("committer.service.commit.plan_commit", trips)
    house = House()
    table = await house.create_table()
    async with house.running():
        for producer in ("a", "poison", "b", "c"):
            await house.publish(build_request(table, producer=producer))
        await house.settle(2.0)
        assert len(await paths(house)) == 3
        # Whether the table or the request is at fault is not known: it stays where it is.
        assert await house.quarantined() == []
        assert len(await house.outstanding()) == 1
        broken[0] = False
        await house.settle(60.0)
    assert len(await paths(house)) == 4


async def test_a_name_of_ours_that_is_taken_does_not_stop_the_table_for_good() -> None:
    house = House()
    table = await house.create_table()
    taken: list[str] = []

    def take_the_first(method: str, location: str) -> FrazilError | None:
        if method == "create" and location.endswith("-m0.avro") and not taken:
            taken.append(location)
        return AlreadyExistsError("taken") if method == "create" and location in taken else None

    house.storage = PickyStorage(house, take_the_first)
    await house.publish(build_request(table))
    async with house.running():
        await house.settle(0.001)
        await house.storage.inner.create((NewObject(taken[0], b"not ours"),))
        await house.settle(120.0)
    assert len(await paths(house)) == 1


async def test_a_queue_without_permission_does_not_end_the_settler() -> None:
    house = House()
    table = await house.create_table()
    assert house.queue is not None
    denied = [True]
    acknowledge = house.queue.acknowledge

    async def refuse(tokens: Sequence[str]) -> None:
        if denied[0]:
            raise AccessError("NOPERM")
        await acknowledge(tokens)

    house.queue.acknowledge = refuse  # type: ignore[method-assign]
    async with house.running():
        await house.publish(build_request(table))
        await house.settle(5.0)
        denied[0] = False
        await house.settle(60.0)
        assert (await house.publisher_queue.depth()).waiting == 0
    assert await house.outstanding() == []


async def test_an_object_that_crashes_the_intake_does_not_end_the_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def trips(content: bytes, *, key: str | None = None) -> SealedRequest:
        if b"poison" in content:
            raise RecursionError
        return read_request(content, key=key)

    monkeypatch.setattr("committer.service.intake.read_request", trips)
    house = House()
    table = await house.create_table()
    await house.publish(build_request(table, producer="poison"), announce=False)
    await house.publish(build_request(table, producer="poison", epoch=1))
    await house.publish(build_request(table))
    async with house.running(reconcile_interval_s=5.0):
        await house.settle(60.0)
        assert len(await paths(house)) == 1
        await house.publish(build_request(table, epoch=1))
        await house.settle(5.0)
        assert len(await paths(house)) == 2


async def test_a_doorbell_whose_object_could_not_be_read_is_acknowledged_in_the_end() -> None:
    house = House()
    table = await house.create_table()
    sealed = build_request(table)
    async with house.running(reconcile_interval_s=10.0):
        await house.settle(1.0)
        await house.inbox.put(sealed)
        house.inbox_storage.is_away = True
        bell = replace(house.doorbell(sealed), content=None)
        await house.publisher_queue.announce([bell])
        await house.settle(5.0)
        house.inbox_storage.is_away = False
        await house.settle(60.0)
    assert len(await paths(house)) == 1
    assert len(await house.receipts()) == 1
    assert (await house.publisher_queue.depth()).waiting == 0


async def test_a_start_behind_a_backlog_reads_no_request_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("committer.service.consumer.READ_COUNT_MAX", 10)
    house = House(min_interval_ms=1_000)
    assert house.queue is not None
    at_once = house.queue.read

    async def slowly(
        *, count_max: int, wait_s: float, shards: Collection[int]
    ) -> Sequence[Delivery]:
        await asyncio.sleep(0.01)
        return await at_once(count_max=count_max, wait_s=wait_s, shards=shards)

    monkeypatch.setattr(house.queue, "read", slowly)
    table = await house.create_table()
    for epoch in range(300):
        await house.publish(build_request(table, epoch=epoch))
    unannounced = build_request(table, producer="unannounced")
    await house.publish(unannounced, announce=False)
    house.inbox_storage.calls.clear()
    async with house.running():
        await house.settle(5.0)
        assert len(await paths(house)) == 301
    assert house.inbox_storage.calls["get"] == 1


# --- The ledger's chores -------------------------------------------------------------------------


async def test_a_producer_that_goes_on_is_not_forgotten_by_a_chore_from_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The chore was found while its object was gone; then the identity published again."""
    monkeypatch.setattr(ledger_upkeep, "ONE_SHOT_KEPT_S", 0.0)
    house = House()
    table = await house.create_table()
    async with house.running(reconcile_interval_s=5.0):
        await house.publish(build_request(table, producer="shot", one_shot=True))
        await house.settle(12.0)
        again = build_request(table, producer="shot", one_shot=True, epoch=1)
        await house.publish(again)
        await house.settle(1.0)
        await house.publish(build_request(table, epoch=0))
        await house.settle(1.0)
        properties = (await house.load()).properties
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


async def test_a_producer_that_is_no_longer_one_shot_keeps_its_entry(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ledger_upkeep, "ONE_SHOT_KEPT_S", 0.0)
    house = House()
    table = await house.create_table()
    async with house.running(reconcile_interval_s=5.0):
        await house.publish(build_request(table, producer="shot", one_shot=True))
        await house.publish(build_request(table, producer="shot", epoch=1, sequential=False))
        await house.settle(20.0)
        await house.publish(build_request(table, epoch=0))
        await house.settle(20.0)
        await house.publish(build_request(table, producer="shot", epoch=1, sequential=False))
        await house.settle(5.0)
    assert len(await paths(house)) == 3


async def test_chores_of_one_branch_wait_for_a_commit_to_that_branch() -> None:
    house = House()
    table = await house.create_table()
    async with house.running():
        await house.publish(build_request(table, epoch=0))
        await house.settle(1.0)
        head = (await house.load()).current_snapshot_id or 0
        await foreign_commit(house, table, _branch("audit", head))
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


async def test_nothing_of_a_frozen_producer_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ledger_upkeep, "ONE_SHOT_KEPT_S", 0.0)
    house = House()
    table = await house.create_table()
    async with house.running(reconcile_interval_s=5.0):
        await house.publish(build_request(table, producer="shot", one_shot=True))
        await house.settle(1.0)
        await foreign_commit(house, table, RemoveSnapshotRef("main"))
        await house.publish(build_request(table, producer="query-1"))
        await house.settle(20.0)
        await house.publish(build_request(table, producer="query-1", epoch=1))
        await house.settle(5.0)
    assert property_key("shot") in (await house.load()).properties


# --- Answers of other catalogs, cancelled swaps, drain -------------------------------------------


class RestLikeCatalog(FaultyCatalog):
    """Answers `Committed` with metadata that it made itself, another commit already in it."""

    async def swap(self, swap: Swap) -> SwapAnswer:
        answer = await super().swap(swap)
        if not isinstance(answer, Committed):
            return answer
        current = await self.inner.load(swap.base.identifier)
        extra = foreign_swap(current, SetProperties({"server": "was here"}))
        storage = self.storage
        await storage.create(self.inner.objects_before(extra))
        await self.inner.swap(extra)
        return Committed(await self.inner.load(swap.base.identifier))

    storage: CountingStorage


async def test_metadata_that_is_not_what_was_planned_becomes_the_base() -> None:
    house = House()
    table = await house.create_table()
    catalog = RestLikeCatalog(house.catalog.inner)
    catalog.storage = CountingStorage(house.storage.inner)
    house.catalog = catalog
    async with house.running():
        for epoch in range(4):
            await house.publish(build_request(table, epoch=epoch))
            await house.settle(1.0)
    assert catalog.calls["load"] == 1
    assert catalog.calls["swap"] == 4
    assert len(await paths(house)) == 4
    assert (await house.load()).properties["server"] == "was here"


async def test_a_cancelled_swap_is_awaited_however_often_it_is_cancelled() -> None:
    ended: list[str] = []

    async def swap() -> str:
        await asyncio.sleep(10.0)
        ended.append("landed")
        return "answer"

    task = asyncio.ensure_future(finish(swap()))
    await asyncio.sleep(1.0)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(1.0)
        assert not task.done()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["landed"]


async def test_a_swap_that_fails_after_it_was_cancelled_leaves_no_unheard_error() -> None:
    async def swap() -> str:
        await asyncio.sleep(10.0)
        raise StorageUnavailableError("away")

    task = asyncio.ensure_future(finish(swap()))
    await asyncio.sleep(1.0)
    task.cancel()
    unheard: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(context))
    with pytest.raises(asyncio.CancelledError):
        await task
    del task
    gc.collect()
    assert unheard == []


async def test_stopping_finishes_what_is_in_hand_and_leaves_the_rest_unacknowledged() -> None:
    house = House(min_interval_ms=30_000)
    table = await house.create_table()
    async with house.running():
        await house.publish(build_request(table, epoch=0))
        await house.settle(1.0)
        for epoch in range(1, 4):
            await house.publish(build_request(table, epoch=epoch))
        await house.settle(1.0)
        assert house.intake is not None
        await house.intake.stop()
        late = build_request(table, epoch=4)
        await house.publish(late)
        await house.settle(60.0)
        assert late.request.inbox_key in await house.outstanding()
    await house.run_until_settled(seconds=700.0)
    assert len(await paths(house)) == 5
    assert await house.outstanding() == []


# --- Cached state, idle tables, garbage settings -------------------------------------------------


async def test_a_duplicate_on_a_cached_table_that_was_rolled_back_is_not_acknowledged() -> None:
    house = House()
    table = await house.create_table()
    async with house.running():
        await house.publish(build_request(table, epoch=0))
        await house.settle(1.0)
        await foreign_commit(house, table, RemoveSnapshotRef("main"))
        await house.publish(build_request(table, epoch=0))
        await house.settle(5.0)
    (record,) = await house.quarantined()
    assert record.reason == Reason.PRODUCER_FROZEN


async def test_after_a_table_is_gone_no_commit_is_tried_on_what_was_remembered_of_it() -> None:
    house = House()
    table = await add_table(house, build_flights())
    async with house.running():
        await house.publish(build_request(table, partition=("AA",)))
        await house.settle(1.0)
        await house.catalog.inner.drop_table(table.identifier)
        await house.publish(CHECKED[2].make(table, "bad"))
        await house.settle(1.0)
        await house.publish(build_request(table, epoch=1, partition=("AA",)))
        await house.settle(1.0)
    reasons = [record.reason for record in await house.quarantined()]
    assert reasons == [Reason.TABLE_UNKNOWN] * 2
    assert house.catalog.calls["swap"] == 1


async def test_a_table_that_was_idle_for_long_wakes_up_again() -> None:
    house = House()
    table = await house.create_table()
    async with house.running():
        for epoch in range(3):
            await house.publish(build_request(table, epoch=epoch))
            await house.settle(5_000.0)
            assert house.intake is not None
            assert house.intake.tables == ()
    assert len(await paths(house)) == 3


@pytest.mark.parametrize(
    ("text", "wait_s"),
    [(text, 2.0) for text in ("", "soon", "-5", "1e3", "NaN", "٣", "0.5", " 100 ")]
    + [("9" * 5_000, 3_600.0), ("9" * 12, 3_600.0)],
)
async def test_a_garbage_interval_property_stops_nothing(text: str, wait_s: float) -> None:
    house = House()
    table = await house.create_table(properties={"frazil.commit.min-interval-ms": text})
    async with house.running():
        for epoch in range(3):
            await house.publish(build_request(table, epoch=epoch))
            await house.settle(wait_s)
    assert len(await paths(house)) == 3
    assert house.health.troubles == {}


async def test_a_retry_does_not_read_the_manifest_list_again() -> None:
    house = House()
    table = await house.create_table()
    async with house.running():
        await house.publish(build_request(table, epoch=0))
        await house.settle(1.0)
        house.catalog.plan(Fault.REQUEST_LOST, Fault.REQUEST_LOST)
        house.storage.calls.clear()
        await house.publish(build_request(table, epoch=1))
        await house.settle(5.0)
        assert house.storage.calls["get"] == 0
    assert len(await paths(house)) == 2


async def test_swaps_without_an_answer_are_a_trouble_that_shows_until_one_has_landed() -> None:
    house = House()
    table = await house.create_table()
    async with house.running():
        house.catalog.plan(*[Fault.REQUEST_LOST] * 60)
        await house.publish(build_request(table, epoch=0))
        await house.settle(60.0)
        [why] = house.health.troubles.values()
        assert "the test lost the answer" in why
        house.catalog.recover()
        await house.settle(60.0)
        assert house.health.troubles == {}
    assert len(await paths(house)) == 1


async def test_a_conflict_without_an_end_keeps_the_batch_and_ends_when_it_ends() -> None:
    house = House()
    table = await house.create_table()
    house.catalog.plan(*[Fault.CONFLICT] * 12)
    for number in range(3):
        await house.publish(build_request(table, producer=f"query-{number}"))
    await house.run_until_settled(seconds=200.0)
    assert len(await paths(house)) == 3
    assert len((await house.load()).snapshots) == 1


async def test_what_waits_is_counted_and_leaves_nothing_behind() -> None:
    house = House(min_interval_ms=10_000)
    table = await house.create_table()
    async with house.running():
        await house.publish(build_request(table, epoch=0))
        await house.settle(1.0)
        sealed = [build_request(table, epoch=epoch) for epoch in range(1, 6)]
        for one in sealed:
            await house.publish(one)
            await house.publish(one)
        await house.settle(1.0)
        assert house.intake is not None
        (committer,) = house.intake.tables
        assert isinstance(committer, TableCommitter)
        assert committer.pending_count == 5
        assert committer.pending_bytes == sum(len(one.content) for one in sealed)
        await house.settle(30.0)
        assert (committer.pending_count, committer.pending_bytes) == (0, 0)
    assert (await house.publisher_queue.depth()).waiting == 0


async def test_a_request_that_another_committer_has_ended_meanwhile_does_not_land_from_memory() -> (
    None
):
    house = House(with_queue=False)
    table = await house.create_table()
    await house.publish(build_request(table, epoch=0), announce=False)
    await house.run_until_settled()
    house.catalog.plan(*[Fault.UNAVAILABLE] * 20)
    ended = build_request(table, epoch=1)
    async with house.running():
        await house.publish(ended, announce=False)
        await house.settle(5.0)
        # Another committer has quarantined it, and an operator discarded it.
        await house.inbox.delete([ended.request.inbox_key])
        house.catalog.recover()
        await house.settle(60.0)
    assert len(await paths(house)) == 1
