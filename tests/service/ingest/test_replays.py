"""Epochs from Spark: replays of every age, two runs, two sinks, gaps, one-shot writes."""

from __future__ import annotations

from collections import Counter

import pytest

from committer.iceberg.updates.metadata_update import RemoveSnapshots
from committer.ledger_entry import parse_entry, parse_property_key, property_key
from committer.ports.pointer_swap import LoadedTable
from committer.reason import Reason
from committer.request.receipt_model import ReceiptState
from committer.request.request_format import EncodedRequest
from committer.service.upkeep.ledger_upkeep import ONE_SHOT_KEPT_S
from committer.storage.inbox.replays import Replays
from tests.support.builders.request_builders import build_request
from tests.support.faults.faulty_catalog import Fault
from tests.support.service.decisions import replay
from tests.support.service.outside import foreign_commit
from tests.support.service.service_harness import INBOX, ServiceHarness
from workers.sink.identity import MicroBatch

VIRTUAL_TIME = True
RUNS = ("0a2c5f40-3f0b-4c1b-9d4e-000000000001", "0a2c5f40-3f0b-4c1b-9d4e-000000000002")


async def landed_attempts(harness: ServiceHarness) -> Counter[str]:
    """Count the live files of each attempt."""
    return Counter(file.file_path.rsplit("/", 1)[1][6:42] for file in await harness.live_files())


# --- Age -----------------------------------------------------------------------------------------


async def _age(
    harness: ServiceHarness, table: LoadedTable, epochs: int, *, has_expired: bool
) -> None:
    """Land so many epochs, each with a commit of its own, and perhaps expire their snapshots."""
    for epoch in range(1, 1 + epochs):
        await harness.publish(build_request(table, epoch=epoch))
        await harness.settle(1.0)
    if has_expired:
        old = (await harness.load()).snapshots[:-1]
        gone = tuple(one.snapshot_id for one in old)
        await foreign_commit(harness, table, RemoveSnapshots(gone))


# The ledger knows the fingerprints of the last two epochs, manifest lists those before.
AGES = [
    (0, False, None, Reason.EPOCH_CONTENT_DIFFERS),
    (1, True, None, Reason.EPOCH_CONTENT_DIFFERS),
    (4, False, None, Reason.EPOCH_CONTENT_DIFFERS),
    (2, True, Reason.EPOCH_LANDED_UNPROVEN, Reason.EPOCH_LANDED_UNPROVEN),
]


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize(("epochs", "has_expired", "equal", "other"), AGES)
async def test_a_replay_of_any_age_lands_nothing_and_is_answered_by_what_proves_it(
    epochs: int, has_expired: bool, equal: Reason | None, other: Reason, is_restarted: bool
) -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running():
        await harness.publish(build_request(table, epoch=0))
        await harness.settle(1.0)
        await _age(harness, table, epochs, has_expired=has_expired)
        if not is_restarted:
            await _replay_both(harness, table)
    if is_restarted:
        async with harness.running():
            await _replay_both(harness, table)
    assert len(await harness.live_files()) == 1 + epochs
    assert await harness.outstanding() == []
    expected = sorted(reason for reason in (equal, other) if reason is not None)
    assert sorted(record.reason for record in await harness.quarantined()) == expected
    _, answer, refusal = [one for one in await harness.receipts() if one.epoch == 0]
    assert (answer.duplicate, answer.reason) == (equal is None, equal)
    assert (refusal.state, refusal.reason) == (ReceiptState.QUARANTINED, other)


async def _replay_both(harness: ServiceHarness, table: LoadedTable) -> None:
    """Publish another attempt that stands for the same, and one that does not."""
    for fingerprint in (None, "something else"):
        await harness.publish(build_request(table, epoch=0, fingerprint=fingerprint))
        await harness.settle(6.0)


@pytest.mark.parametrize(("epochs", "has_expired", "equal", "other"), AGES)
async def test_a_doorbell_of_any_age_brings_nothing_back(
    epochs: int, has_expired: bool, equal: Reason | None, other: Reason
) -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    first = build_request(table, epoch=0)
    async with harness.running():
        await harness.publish(first)
        await harness.settle(1.0)
        await _age(harness, table, epochs, has_expired=has_expired)
        await harness.publish(first, durable=False)
        await harness.settle(6.0)
    assert len(await harness.live_files()) == 1 + epochs
    assert await harness.quarantined() == []
    assert (await harness.publisher_queue.depth()).waiting == 0


# --- Runs and sinks ------------------------------------------------------------------------------


@pytest.mark.parametrize("is_announced", [False, True])
async def test_of_two_runs_of_a_query_each_epoch_lands_whole_and_once(is_announced: bool) -> None:
    """The earlier driver lives on, and both cut the rows into files of their own."""
    harness = ServiceHarness()
    table = await harness.create_table()
    tries: dict[int, dict[str, int]] = {epoch: {} for epoch in range(6)}
    async with harness.running(reconcile_interval_s=5.0):
        for epoch in range(6):
            for number, run in enumerate(RUNS if epoch % 2 else RUNS[::-1], start=1):
                nonce = MicroBatch("query-1", run, epoch).nonce("")
                sealed = build_request(table, epoch=epoch, nonce=nonce, files_count=number)
                tries[epoch][str(sealed.request.attempt)] = number
                await harness.publish(sealed, announce=is_announced)
                await harness.settle(0.001 * epoch)
        await harness.settle()
    landed = await landed_attempts(harness)
    for files in tries.values():
        (winner,) = files.keys() & landed.keys()
        assert landed[winner] == files[winner]
    assert len(landed) == 6
    assert await harness.outstanding() == []
    assert await harness.quarantined() == []


async def test_two_sinks_of_one_query_are_two_producers() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running():
        for epoch in range(3):
            for sink in ("", "errors"):
                producer = f"query-1/{sink}" if sink else "query-1"
                nonce = MicroBatch("query-1", RUNS[0], epoch).nonce(sink)
                await harness.publish(
                    build_request(table, producer=producer, epoch=epoch, nonce=nonce)
                )
        await harness.settle()
    properties = (await harness.load()).properties
    for producer in ("query-1", "query-1/errors"):
        assert str(parse_entry(properties[property_key(producer)]).epochs) == "0-2"
    assert len(await landed_attempts(harness)) == 6
    assert await harness.quarantined() == []


# --- Gaps ----------------------------------------------------------------------------------------


async def test_a_gap_stays_open_while_a_request_of_its_producer_is_in_quarantine() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    refused = build_request(table, epoch=1)
    harness.catalog.plan(Fault.REJECTED)
    async with harness.running(reconcile_interval_s=5.0):
        await harness.publish(refused)
        await harness.settle()
        for epoch in range(2, 26, 2):
            await harness.publish(build_request(table, epoch=epoch))
            await harness.settle(6.0)
    assert [record.reason for record in await harness.quarantined()] == [Reason.COMMIT_REJECTED]
    await replay(harness, refused)
    entry = parse_entry((await harness.load()).properties[property_key("query-1")])
    assert str(entry.epochs).startswith("1-2,4,6")
    assert len(await harness.live_files()) == 13


async def test_a_gap_stays_open_while_a_request_of_its_producer_is_in_the_inbox() -> None:
    """It was not announced, and no committer takes it before it has waited a minute."""
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running(reconcile_interval_s=5.0, reconcile_age_s=60.0):
        for epoch in range(0, 24, 2):
            await harness.publish(build_request(table, epoch=epoch))
            await harness.settle(0.2)
        await harness.publish(build_request(table, epoch=7), announce=False)
        await harness.settle(20.0)
        await harness.publish(build_request(table, epoch=24))
        await harness.settle(60.0)
    assert len(await harness.live_files()) == 14
    assert await harness.quarantined() == []
    entry = parse_entry((await harness.load()).properties[property_key("query-1")])
    assert str(entry.epochs).startswith("0,2,4,6-8,10")


# --- One-shot producers --------------------------------------------------------------------------


@pytest.mark.thorough
async def test_a_thousand_one_shot_producers_land_once_and_leave_nothing_in_the_ledger() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    shots = [build_request(table, producer=f"shot-{n}", one_shot=True) for n in range(1_000)]
    async with harness.running(reconcile_interval_s=300.0):
        for shot in shots:
            await harness.publish(shot)
        await harness.settle()
        assert len(await _producers(harness)) == 1_000
        for epoch in range(3):
            await harness.settle(ONE_SHOT_KEPT_S / 2)
            await harness.publish(build_request(table, epoch=epoch))
            await harness.settle(1.0)
        assert await _producers(harness) == ["query-1"]
        for shot in shots[::100]:
            await harness.publish(shot, durable=False)
        await harness.settle()
    assert set((await landed_attempts(harness)).values()) == {1}
    assert len(await harness.live_files()) == 1_003
    assert await harness.outstanding() == []
    assert await harness.quarantined() == []


async def _producers(harness: ServiceHarness) -> list[str]:
    """Return the producers that the ledger knows."""
    parsed = map(parse_property_key, (await harness.load()).properties)
    return [one[0] for one in parsed if one is not None]


async def test_a_one_shot_producer_is_known_while_a_request_of_it_is_in_quarantine() -> None:
    """Or what was refused because its epoch has landed would land when it is replayed."""
    harness = ServiceHarness()
    table = await harness.create_table()
    refused = await _land_one_and_refuse_another(harness, table)
    async with harness.running(reconcile_interval_s=300.0):
        await _outlive_one_shots(harness, table)
        assert "shot" in await _producers(harness)
        await Replays(harness.storage.inner, INBOX).replay(
            refused.request.inbox_key, harness.world.uuid()
        )
        await harness.settle(400.0)
        assert len(await harness.live_files()) == 6
        (record,) = await harness.quarantined()
        assert record.reason == Reason.EPOCH_CONTENT_DIFFERS
        await harness.quarantine.delete((record.key,))
        await _outlive_one_shots(harness, table, first_epoch=5)
    assert await _producers(harness) == ["query-1"]


async def _land_one_and_refuse_another(
    harness: ServiceHarness, table: LoadedTable
) -> EncodedRequest:
    """Publish two attempts of a one-shot producer's epoch with different content."""
    async with harness.running():
        await harness.publish(build_request(table, producer="shot", one_shot=True))
        await harness.settle()
        refused = build_request(table, producer="shot", one_shot=True, fingerprint="another")
        await harness.publish(refused)
        await harness.settle()
    assert len(await harness.quarantined()) == 1
    return refused


async def _outlive_one_shots(
    harness: ServiceHarness, table: LoadedTable, *, first_epoch: int = 0
) -> None:
    """Commit until the ledger has forgotten the one-shot producers."""
    for epoch in range(first_epoch, first_epoch + 5):
        await harness.settle(ONE_SHOT_KEPT_S / 2)
        await harness.publish(build_request(table, epoch=epoch))
        await harness.settle(1.0)
