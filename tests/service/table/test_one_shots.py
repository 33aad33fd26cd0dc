"""A one-shot request that comes again once the ledger has forgotten its producer: however late, by
whatever way and under whatever promise, it does not land a second time; and a new one does.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

import pytest

from committer.iceberg.updates.metadata_update import RemoveSnapshots
from committer.ledger_entry import MAIN, EpochRanges, property_key
from committer.plan.ledger import one_shots
from committer.plan.ledger.one_shots import read_one_shots
from committer.plan.ledger.producer_decisions import ProducerName
from committer.ports.pointer_swap import LoadedTable
from committer.reason import Reason
from committer.request.attempt import timed_nonce
from committer.request.commit_request import Producer
from committer.request.receipt_model import ReceiptState
from committer.request.request_format import EncodedRequest, seal_request
from committer.request.request_key import published_key
from committer.service.upkeep import ledger_upkeep
from tests.support.builders.request_builders import build_request, sealed_manifests
from tests.support.service.decisions import producer_admin, replay
from tests.support.service.outside import foreign_commit
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> ServiceHarness:
    """Return a harness that forgets a one-shot producer as soon as its object is gone."""
    monkeypatch.setattr(ledger_upkeep, "ONE_SHOT_KEPT_S", 0.0)
    return ServiceHarness()


@pytest.fixture
def without_tombstones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drop a tombstone in the next commit that forgets a producer."""
    monkeypatch.setattr(one_shots, "TOMBSTONES_MAX", 0)


def shot(
    harness: ServiceHarness,
    table: LoadedTable,
    producer: str = "shot",
    *,
    age_s: float = 0.0,
    **rest: object,
) -> EncodedRequest:
    """Build a one-shot request whose nonce was made some time ago."""
    nonce = timed_nonce(harness.world.now_ms() - round(age_s * 1000), uuid4())
    return build_request(table, producer=producer, one_shot=True, nonce=nonce, **rest)  # type: ignore[arg-type]


async def land_and_forget(
    harness: ServiceHarness, table: LoadedTable, *shots: EncodedRequest
) -> None:
    async with harness.running(reconcile_interval_s=5.0):
        await harness.settle(1.0)
        for one in shots:
            await harness.publish(one)
        await harness.settle(12.0)
        await harness.publish(build_request(table, producer="other-query"))
        await harness.settle(12.0)
    known = (await harness.load()).properties
    assert not known.keys() & {property_key(one.request.producer.id) for one in shots}


async def expire(harness: ServiceHarness, table: LoadedTable) -> None:
    """Expire all proofs as another engine."""
    gone = tuple(one.snapshot_id for one in (await harness.load()).snapshots[:-1])
    await foreign_commit(harness, table, RemoveSnapshots(gone))


async def files_of(harness: ServiceHarness, sealed: EncodedRequest) -> int:
    attempt = str(sealed.request.attempt)
    return sum(attempt in file.file_path for file in await harness.live_files())


def as_it_was(sealed: EncodedRequest) -> EncodedRequest:
    return sealed


def as_a_lasting_producer(sealed: EncodedRequest) -> EncodedRequest:
    """Return the same attempt and files, without the promise never to publish again."""
    producer = Producer(id=sealed.request.producer.id)
    line = sealed.request.model_copy(update={"producer": producer})
    return seal_request(line, sealed_manifests(sealed))


AGAIN = pytest.mark.parametrize("again", [as_it_was, as_a_lasting_producer])


@AGAIN
@pytest.mark.parametrize("announce", [True, False])
async def test_while_a_manifest_list_proves_it_a_request_that_comes_again_is_a_duplicate(
    forgetful: ServiceHarness, again: Callable[[EncodedRequest], EncodedRequest], announce: bool
) -> None:
    table = await forgetful.create_table()
    sealed = shot(forgetful, table)
    await land_and_forget(forgetful, table, sealed)
    async with forgetful.running(reconcile_interval_s=5.0):
        await forgetful.publish(again(sealed), announce=announce)
        await forgetful.settle(20.0)
    assert await files_of(forgetful, sealed) == 1
    assert await forgetful.outstanding() == []
    assert await forgetful.quarantined() == []
    states = [receipt.state for receipt in await forgetful.receipts("shot")]
    assert set(states) == {ReceiptState.COMMITTED}


@AGAIN
async def test_without_a_proof_it_goes_to_quarantine_and_stays_there_when_it_is_replayed(
    forgetful: ServiceHarness, again: Callable[[EncodedRequest], EncodedRequest]
) -> None:
    table = await forgetful.create_table()
    sealed = shot(forgetful, table)
    await land_and_forget(forgetful, table, sealed)
    await expire(forgetful, table)
    await forgetful.publish(again(sealed))
    await forgetful.run_until_settled()
    for _ in range(2):
        (record,) = await forgetful.quarantined()
        assert record.reason == Reason.EPOCH_LANDED_UNPROVEN
        assert "promised to publish once, has landed, and was forgotten" in record.message
        assert await files_of(forgetful, sealed) == 1
        await replay(forgetful, again(sealed))


@AGAIN
@pytest.mark.usefixtures("without_tombstones")
async def test_nor_does_it_land_once_its_tombstone_has_gone(
    forgetful: ServiceHarness, again: Callable[[EncodedRequest], EncodedRequest]
) -> None:
    table = await forgetful.create_table()
    sealed, other = shot(forgetful, table), shot(forgetful, table, "other", age_s=9.0)
    await land_and_forget(forgetful, table, sealed, other)
    assert read_one_shots(await forgetful.load())[MAIN].groups == ()
    await expire(forgetful, table)
    for one in (sealed, other):
        await forgetful.publish(again(one))
    await forgetful.run_until_settled()
    records = await forgetful.quarantined()
    assert [record.reason for record in records] == [Reason.EPOCH_LANDED_UNPROVEN] * 2
    assert all("the ledger has forgotten which have landed" in one.message for one in records)
    assert [await files_of(forgetful, one) for one in (sealed, other)] == [1, 1]


@pytest.mark.usefixtures("without_tombstones")
async def test_an_operator_tells_an_old_request_that_is_new_from_one_that_has_landed(
    forgetful: ServiceHarness,
) -> None:
    """Both are older than the horizon. By the files of the table they are told apart."""
    table = await forgetful.create_table()
    sealed = shot(forgetful, table)
    late = shot(forgetful, table, "slow job", age_s=3_600.0)
    await land_and_forget(forgetful, table, sealed)
    await expire(forgetful, table)
    for one in (sealed, late):
        await forgetful.publish(one)
    await forgetful.run_until_settled()
    assert len(await forgetful.quarantined()) == 2
    decide = producer_admin(forgetful)
    refused = await decide.accept(table.identifier, ProducerName("shot"), [sealed.request])
    assert "its data files are in the table" in refused[sealed.request.inbox_key]
    assert not await decide.accept(table.identifier, ProducerName("slow job"), [late.request])
    for one in (sealed, late):
        await replay(forgetful, one)
    assert [await files_of(forgetful, one) for one in (sealed, late)] == [1, 1]
    (record,) = await forgetful.quarantined()
    assert published_key(record.key) == sealed.request.inbox_key


@pytest.mark.usefixtures("without_tombstones")
async def test_an_operators_word_about_one_request_lets_no_other_of_its_producer_land(
    forgetful: ServiceHarness,
) -> None:
    """To accept, or to freeze and thaw, makes an entry: that proves nothing."""
    table = await forgetful.create_table()
    sealed = shot(forgetful, table)
    await land_and_forget(forgetful, table, sealed)
    await expire(forgetful, table)
    decide, name = producer_admin(forgetful), ProducerName("shot")
    later = build_request(table, producer="shot", epoch=1, one_shot=True)
    assert not await decide.accept(table.identifier, name, [later.request])
    await forgetful.publish(sealed)
    await forgetful.run_until_settled()
    await decide.freeze(table.identifier, name, "why")
    await decide.thaw(table.identifier, name, EpochRanges())
    await replay(forgetful, sealed)
    assert await files_of(forgetful, sealed) == 1
    (record,) = await forgetful.quarantined()
    assert record.reason == Reason.EPOCH_LANDED_UNPROVEN


async def test_what_waited_out_a_committer_that_was_away_for_weeks_lands(
    forgetful: ServiceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what is published later: the horizon rises to what was forgotten, and no further."""
    monkeypatch.setattr(ledger_upkeep, "ONE_SHOT_KEPT_S", 900.0)
    table = await forgetful.create_table()
    before = shot(forgetful, table, "before")
    async with forgetful.running(reconcile_interval_s=300.0):
        await forgetful.publish(before)
        await forgetful.settle(1_000.0)
    waiting = [shot(forgetful, table, f"shot-{number}", age_s=number * 60.0) for number in range(9)]
    for one in waiting:
        await forgetful.publish(one, announce=False)
    await forgetful.settle(21 * 24 * 3_600.0)
    async with forgetful.running(reconcile_interval_s=300.0):
        for epoch in range(6):
            await forgetful.publish(build_request(table, epoch=epoch))
            await forgetful.settle(450.0)
        assert property_key("before") not in (await forgetful.load()).properties
        slow = shot(forgetful, table, "slow", age_s=20 * 24 * 3_600.0)
        await forgetful.publish(slow)
        await forgetful.settle(10.0)
    assert [await files_of(forgetful, one) for one in (before, *waiting, slow)] == [1] * 11
    assert await forgetful.quarantined() == []


async def test_a_nonce_of_the_future_stops_no_request_of_the_present(
    forgetful: ServiceHarness,
) -> None:
    table = await forgetful.create_table()
    far = shot(forgetful, table, "far", age_s=-365 * 24 * 3_600.0)
    async with forgetful.running(reconcile_interval_s=5.0):
        await forgetful.publish(far)
        for epoch in range(4):
            await forgetful.settle(10.0)
            await forgetful.publish(build_request(table, epoch=epoch))
        assert property_key("far") in (await forgetful.load()).properties
        now = shot(forgetful, table, "now")
        await forgetful.publish(now)
        await forgetful.settle(5.0)
        await forgetful.publish(far)
        await forgetful.settle(10.0)
    assert [await files_of(forgetful, one) for one in (far, now)] == [1, 1]
    assert await forgetful.quarantined() == []


async def test_a_table_whose_inbox_moved_is_not_frozen_for_one_shots_that_were_forgotten(
    forgetful: ServiceHarness,
) -> None:
    """Without a high-water mark retained manifest lists are read: a tombstone claims what they
    prove.
    """
    harness = forgetful
    table = await harness.create_table()
    await land_and_forget(harness, table, shot(harness, table))
    high_water_mark = harness.high_water_marks.location(table.metadata.require_uuid())
    await harness.inbox_storage.delete([high_water_mark])
    async with harness.running():
        await harness.publish(build_request(table, producer="later"))
        await harness.settle(12.0)
    assert property_key("later") in (await harness.load()).properties
