"""Signed requests in a running service: who may land, key rotation, time, and replays."""

from __future__ import annotations

import pytest

from committer.iceberg.updates.metadata_update import SetProperties
from committer.ports.pointer_swap import LoadedTable
from committer.ports.storage import NewObject
from committer.reason import Reason
from committer.request.receipt_model import ReceiptState
from committer.request.request_format import EncodedRequest
from committer.request.signature import SigningKey
from committer.service.requests.signature_check import REREAD_S
from tests.support.builders.bad_requests import good
from tests.support.builders.flights import build_flights
from tests.support.builders.signing import (
    NEW,
    OLD,
    STRANGER,
    bound,
    print_keys,
    signed,
    with_changes,
)
from tests.support.faults.faulty_catalog import Fault
from tests.support.service.outside import add_table, foreign_commit
from tests.support.service.service_harness import KEYS, ServiceHarness

VIRTUAL_TIME = True
HOUR_MS = 3_600_000


async def put_keys(harness: ServiceHarness, *keys: SigningKey) -> None:
    await harness.storage.inner.delete((KEYS,))
    await harness.storage.inner.create((NewObject(KEYS, print_keys(*keys)),))


async def open_harness(
    *keys: SigningKey, required: bool = True, with_queue: bool = True
) -> tuple[ServiceHarness, LoadedTable]:
    harness = ServiceHarness(has_keys=bool(keys), require_signature=required, with_queue=with_queue)
    if keys:
        await put_keys(harness, *keys)
    return harness, await add_table(harness, build_flights())


async def reasons(harness: ServiceHarness) -> list[str]:
    return [record.reason for record in await harness.quarantined()]


# --- Who must sign -------------------------------------------------------------------------------


async def test_where_signatures_are_required_only_signed_requests_land_and_in_one_batch() -> None:
    harness, table = await open_harness(OLD, NEW)
    await harness.publish(signed(good(table, "query-1"), OLD))
    await harness.publish(good(table, "unsigned"))
    await harness.publish(signed(good(table, "query-2"), NEW))
    await harness.publish(signed(good(table, "stranger"), STRANGER))
    await harness.run_until_settled()
    assert sorted(await reasons(harness)) == [Reason.SIGNATURE_INVALID, Reason.SIGNATURE_MISSING]
    assert len((await harness.load()).snapshots) == 1
    assert len(await harness.live_files()) == 2
    (receipt,) = await harness.receipts("unsigned")
    assert (receipt.state, receipt.reason) == (ReceiptState.QUARANTINED, Reason.SIGNATURE_MISSING)


@pytest.mark.parametrize("value", ["true", " TRUE "])
async def test_a_table_may_require_signatures_by_itself(value: str) -> None:
    harness, table = await open_harness(OLD, required=False)
    async with harness.running():
        await harness.publish(good(table, "query-1"))
        await harness.settle(1.0)
        property_ = SetProperties({"frazil.require-signature": value})
        await foreign_commit(harness, table, property_)
        await harness.publish(signed(good(table, "query-2")))
        await harness.settle(1.0)
        await harness.publish(good(table, "query-3"))
        await harness.settle()
    assert await reasons(harness) == [Reason.SIGNATURE_MISSING]
    assert len(await harness.live_files()) == 2


async def test_a_wrong_signature_is_refused_even_where_none_is_required() -> None:
    harness, table = await open_harness(OLD, required=False)
    await harness.publish(good(table, "query-1"))
    await harness.publish(signed(good(table, "query-2"), STRANGER))
    await harness.run_until_settled()
    assert await reasons(harness) == [Reason.SIGNATURE_INVALID]
    assert len(await harness.live_files()) == 1


async def test_without_a_file_of_keys_signatures_are_carried_and_mean_nothing() -> None:
    harness, table = await open_harness(required=False)
    await harness.publish(signed(good(table, "query-1"), STRANGER))
    await harness.run_until_settled()
    assert len(await harness.live_files()) == 1


@pytest.mark.parametrize(
    "patterns", [{"tables": ["db.other"]}, {"producers": ["a"]}, {"operations": ["rewrite-files"]}]
)
async def test_a_key_of_another_table_producer_or_operation_signs_nothing_here(
    patterns: dict[str, list[str]],
) -> None:
    harness, table = await open_harness(bound(OLD, **patterns), NEW)
    await harness.publish(signed(good(table, "query-1"), OLD))
    await harness.publish(signed(good(table, "query-2"), NEW))
    await harness.run_until_settled()
    assert await reasons(harness) == [Reason.SIGNATURE_KEY_NOT_ALLOWED]
    assert len(await harness.live_files()) == 1


# --- Rotation ------------------------------------------------------------------------------------


async def test_keys_rotate_without_a_restart_and_without_refusing_anything() -> None:
    harness, table = await open_harness(OLD)
    async with harness.running():
        await harness.publish(signed(good(table, "query-1"), OLD))
        await harness.settle(REREAD_S + 2)
        # The file was not read since, when the first request of the new key comes.
        await put_keys(harness, OLD, NEW)
        await harness.publish(signed(good(table, "query-1", epoch=1), NEW))
        await harness.publish(signed(good(table, "query-2"), OLD))
        await harness.settle(REREAD_S)
        assert await reasons(harness) == []
        await put_keys(harness, NEW)
        await harness.settle(2 * REREAD_S)
        await harness.publish(signed(good(table, "query-1", epoch=2), NEW))
        await harness.publish(signed(good(table, "query-2", epoch=1), OLD))
        await harness.settle()
    assert await reasons(harness) == [Reason.SIGNATURE_KEY_UNKNOWN]
    assert len(await harness.live_files()) == 4


async def test_a_key_that_is_taken_back_refuses_nothing_whose_attempt_may_still_land() -> None:
    harness, table = await open_harness(OLD, NEW)
    harness.catalog.swap_s[str(table.identifier)] = 3 * REREAD_S
    harness.catalog.plan(Fault.LANDS_LATE)
    async with harness.running():
        await harness.publish(signed(good(table, "query-1"), OLD))
        await harness.settle(1.0)
        await put_keys(harness, NEW)
        await harness.settle(3 * REREAD_S)
        await harness.catalog.land_late()
        await harness.settle(600.0)
    assert await reasons(harness) == []
    assert len(await harness.live_files()) == 1


@pytest.mark.parametrize("content", [None, b"[keys"])
async def test_a_file_of_keys_that_breaks_leaves_the_known_keys_and_says_so(
    content: bytes | None,
) -> None:
    harness, table = await open_harness(OLD)
    async with harness.running():
        await harness.storage.inner.delete((KEYS,))
        if content is not None:
            await harness.storage.inner.create((NewObject(KEYS, content),))
        await harness.settle(2 * REREAD_S)
        assert "keys" in harness.health.conditions
        await harness.publish(signed(good(table, "query-1")))
        await harness.publish(signed(good(table, "query-2"), NEW))
        await harness.settle(1.0)
        assert await reasons(harness) == [Reason.SIGNATURE_KEY_UNKNOWN]
        await put_keys(harness, OLD)
        await harness.settle(2 * REREAD_S)
        assert harness.health.conditions == {}
    assert len(await harness.live_files()) == 1


async def test_a_commit_of_signed_requests_reads_nothing_more() -> None:
    harness, table = await open_harness(OLD)
    async with harness.running():
        await harness.publish(signed(good(table, "query-1")))
        await harness.settle(1.0)
        reads = harness.storage.calls["get"]
        for epoch in range(1, 6):
            await harness.publish(signed(good(table, "query-1", epoch=epoch)))
            await harness.settle(1.5)
        assert len(await harness.live_files()) == 6
        assert harness.storage.calls["get"] == reads


async def test_unknown_keys_do_not_make_the_committer_read_the_file_for_each_request() -> None:
    harness, table = await open_harness(OLD)
    async with harness.running():
        for number in range(20):
            await harness.publish(signed(good(table, f"query-{number}"), NEW))
        reads = harness.storage.calls["get"]
        await harness.settle(0.5)
    assert len(await harness.quarantined()) == 20
    # One of the file of keys, one of the table's manifest list at most.
    assert harness.storage.calls["get"] - reads <= 2


# --- Time ----------------------------------------------------------------------------------------


async def test_a_request_that_came_in_time_lands_however_long_the_committer_was_away() -> None:
    harness, table = await open_harness(OLD)
    now_ms = harness.world.now_ms()
    await harness.publish(signed(good(table, "query-1"), not_after_ms=now_ms + HOUR_MS))
    await harness.settle(30 * 24 * 3_600)
    await harness.run_until_settled()
    assert await reasons(harness) == []
    assert len(await harness.live_files()) == 1


async def test_a_request_that_comes_into_the_inbox_after_its_time_is_refused() -> None:
    harness, table = await open_harness(OLD)
    late = signed(good(table, "query-1"), not_after_ms=harness.world.now_ms() + HOUR_MS)
    await harness.settle(3_601)
    await harness.publish(late)
    await harness.publish(signed(good(table, "query-2")))
    await harness.run_until_settled()
    assert await reasons(harness) == [Reason.SIGNATURE_EXPIRED]
    assert len(await harness.live_files()) == 1


# --- Replays and forgeries -----------------------------------------------------------------------


async def test_a_signed_request_that_is_put_again_lands_once() -> None:
    harness, table = await open_harness(OLD)
    sealed = signed(good(table, "query-1"))
    async with harness.running(reconcile_interval_s=5.0):
        for _ in range(3):
            await harness.publish(sealed)
            await harness.settle(20.0)
            assert await harness.outstanding() == []
    assert await reasons(harness) == []
    assert len(await harness.live_files()) == 1


async def test_what_has_landed_stays_landed_when_its_key_is_gone() -> None:
    harness, table = await open_harness(OLD, NEW)
    sealed = signed(good(table, "query-1"), OLD)
    await harness.publish(sealed)
    await harness.run_until_settled()
    await put_keys(harness, NEW)
    await harness.publish(sealed)
    await harness.run_until_settled()
    assert await reasons(harness) == []
    assert await harness.outstanding() == []
    states = [receipt.state for receipt in await harness.receipts()]
    assert states == [ReceiptState.COMMITTED, ReceiptState.COMMITTED]


@pytest.mark.parametrize("announced", [True, False])
async def test_a_signed_request_with_another_epoch_or_table_is_a_forgery(announced: bool) -> None:
    harness, table = await open_harness(OLD)
    right = signed(good(table, "query-1"))
    forged: list[EncodedRequest] = [
        with_changes(right, epoch=1),
        with_changes(right, producer=right.request.producer.model_copy(update={"id": "q"})),
        with_changes(right, branch="main", published_at_ms=1, epoch=2),
    ]
    for one in (right, *forged):
        await harness.publish(one, announce=announced)
    async with harness.running(reconcile_interval_s=5.0):
        await harness.settle()
    assert await reasons(harness) == [Reason.SIGNATURE_INVALID] * 3
    assert len(await harness.live_files()) == 1
