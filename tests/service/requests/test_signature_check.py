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


async def put_keys(house: ServiceHarness, *keys: SigningKey) -> None:
    await house.storage.inner.delete((KEYS,))
    await house.storage.inner.create((NewObject(KEYS, print_keys(*keys)),))


async def open_house(
    *keys: SigningKey, required: bool = True, with_queue: bool = True
) -> tuple[ServiceHarness, LoadedTable]:
    house = ServiceHarness(has_keys=bool(keys), require_signature=required, with_queue=with_queue)
    if keys:
        await put_keys(house, *keys)
    return house, await add_table(house, build_flights())


async def reasons(house: ServiceHarness) -> list[str]:
    return [record.reason for record in await house.quarantined()]


# --- Who must sign -------------------------------------------------------------------------------


async def test_where_signatures_are_required_only_signed_requests_land_and_in_one_batch() -> None:
    house, table = await open_house(OLD, NEW)
    await house.publish(signed(good(table, "query-1"), OLD))
    await house.publish(good(table, "unsigned"))
    await house.publish(signed(good(table, "query-2"), NEW))
    await house.publish(signed(good(table, "stranger"), STRANGER))
    await house.run_until_settled()
    assert sorted(await reasons(house)) == [Reason.SIGNATURE_INVALID, Reason.SIGNATURE_MISSING]
    assert len((await house.load()).snapshots) == 1
    assert len(await house.live_files()) == 2
    (receipt,) = await house.receipts("unsigned")
    assert (receipt.state, receipt.reason) == (ReceiptState.QUARANTINED, Reason.SIGNATURE_MISSING)


async def test_a_table_may_require_signatures_by_itself() -> None:
    house, table = await open_house(OLD, required=False)
    async with house.running():
        await house.publish(good(table, "query-1"))
        await house.settle(1.0)
        property_ = SetProperties({"frazil.require-signature": "true"})
        await foreign_commit(house, table, property_)
        await house.publish(signed(good(table, "query-2")))
        await house.settle(1.0)
        await house.publish(good(table, "query-3"))
        await house.settle()
    assert await reasons(house) == [Reason.SIGNATURE_MISSING]
    assert len(await house.live_files()) == 2


async def test_a_wrong_signature_is_refused_even_where_none_is_required() -> None:
    house, table = await open_house(OLD, required=False)
    await house.publish(good(table, "query-1"))
    await house.publish(signed(good(table, "query-2"), STRANGER))
    await house.run_until_settled()
    assert await reasons(house) == [Reason.SIGNATURE_INVALID]
    assert len(await house.live_files()) == 1


async def test_without_a_file_of_keys_signatures_are_carried_and_mean_nothing() -> None:
    house, table = await open_house(required=False)
    await house.publish(signed(good(table, "query-1"), STRANGER))
    await house.run_until_settled()
    assert len(await house.live_files()) == 1


@pytest.mark.parametrize(
    "patterns", [{"tables": ["db.other"]}, {"producers": ["a"]}, {"operations": ["replace"]}]
)
async def test_a_key_of_another_table_producer_or_operation_signs_nothing_here(
    patterns: dict[str, list[str]],
) -> None:
    house, table = await open_house(bound(OLD, **patterns), NEW)
    await house.publish(signed(good(table, "query-1"), OLD))
    await house.publish(signed(good(table, "query-2"), NEW))
    await house.run_until_settled()
    assert await reasons(house) == [Reason.SIGNATURE_KEY_NOT_ALLOWED]
    assert len(await house.live_files()) == 1


# --- Rotation ------------------------------------------------------------------------------------


async def test_keys_rotate_without_a_restart_and_without_refusing_anything() -> None:
    house, table = await open_house(OLD)
    async with house.running():
        await house.publish(signed(good(table, "query-1"), OLD))
        await house.settle(REREAD_S + 2)
        # The file was not read since, when the first request of the new key comes.
        await put_keys(house, OLD, NEW)
        await house.publish(signed(good(table, "query-1", epoch=1), NEW))
        await house.publish(signed(good(table, "query-2"), OLD))
        await house.settle(REREAD_S)
        assert await reasons(house) == []
        await put_keys(house, NEW)
        await house.settle(2 * REREAD_S)
        await house.publish(signed(good(table, "query-1", epoch=2), NEW))
        await house.publish(signed(good(table, "query-2", epoch=1), OLD))
        await house.settle()
    assert await reasons(house) == [Reason.SIGNATURE_KEY_UNKNOWN]
    assert len(await house.live_files()) == 4


async def test_a_key_that_is_taken_back_refuses_nothing_whose_attempt_may_still_land() -> None:
    house, table = await open_house(OLD, NEW)
    house.catalog.swap_s[str(table.identifier)] = 3 * REREAD_S
    house.catalog.plan(Fault.LANDS_LATE)
    async with house.running():
        await house.publish(signed(good(table, "query-1"), OLD))
        await house.settle(1.0)
        await put_keys(house, NEW)
        await house.settle(3 * REREAD_S)
        await house.catalog.land_late()
        await house.settle(600.0)
    assert await reasons(house) == []
    assert len(await house.live_files()) == 1


@pytest.mark.parametrize("content", [None, b"[keys"])
async def test_a_file_of_keys_that_breaks_leaves_the_known_keys_and_says_so(
    content: bytes | None,
) -> None:
    house, table = await open_house(OLD)
    async with house.running():
        await house.storage.inner.delete((KEYS,))
        if content is not None:
            await house.storage.inner.create((NewObject(KEYS, content),))
        await house.settle(2 * REREAD_S)
        assert "keys" in house.health.conditions
        await house.publish(signed(good(table, "query-1")))
        await house.publish(signed(good(table, "query-2"), NEW))
        await house.settle(1.0)
        assert await reasons(house) == [Reason.SIGNATURE_KEY_UNKNOWN]
        await put_keys(house, OLD)
        await house.settle(2 * REREAD_S)
        assert house.health.conditions == {}
    assert len(await house.live_files()) == 1


async def test_a_commit_of_signed_requests_reads_nothing_more() -> None:
    house, table = await open_house(OLD)
    async with house.running():
        await house.publish(signed(good(table, "query-1")))
        await house.settle(1.0)
        reads = house.storage.calls["get"]
        for epoch in range(1, 6):
            await house.publish(signed(good(table, "query-1", epoch=epoch)))
            await house.settle(1.5)
        assert len(await house.live_files()) == 6
        assert house.storage.calls["get"] == reads


async def test_unknown_keys_do_not_make_the_committer_read_the_file_for_each_request() -> None:
    house, table = await open_house(OLD)
    async with house.running():
        for number in range(20):
            await house.publish(signed(good(table, f"query-{number}"), NEW))
        reads = house.storage.calls["get"]
        await house.settle(0.5)
    assert len(await house.quarantined()) == 20
    # One of the file of keys, one of the table's manifest list at most.
    assert house.storage.calls["get"] - reads <= 2


# --- Time ----------------------------------------------------------------------------------------


async def test_a_request_that_came_in_time_lands_however_long_the_committer_was_away() -> None:
    house, table = await open_house(OLD)
    now_ms = house.world.now_ms()
    await house.publish(signed(good(table, "query-1"), not_after_ms=now_ms + HOUR_MS))
    await house.settle(30 * 24 * 3_600)
    await house.run_until_settled()
    assert await reasons(house) == []
    assert len(await house.live_files()) == 1


async def test_a_request_that_comes_into_the_inbox_after_its_time_is_refused() -> None:
    house, table = await open_house(OLD)
    late = signed(good(table, "query-1"), not_after_ms=house.world.now_ms() + HOUR_MS)
    await house.settle(3_601)
    await house.publish(late)
    await house.publish(signed(good(table, "query-2")))
    await house.run_until_settled()
    assert await reasons(house) == [Reason.SIGNATURE_EXPIRED]
    assert len(await house.live_files()) == 1


# --- Replays and forgeries -----------------------------------------------------------------------


async def test_a_signed_request_that_is_put_again_lands_once() -> None:
    house, table = await open_house(OLD)
    sealed = signed(good(table, "query-1"))
    async with house.running(reconcile_interval_s=5.0):
        for _ in range(3):
            await house.publish(sealed)
            await house.settle(20.0)
            assert await house.outstanding() == []
    assert await reasons(house) == []
    assert len(await house.live_files()) == 1


async def test_what_has_landed_stays_landed_when_its_key_is_gone() -> None:
    house, table = await open_house(OLD, NEW)
    sealed = signed(good(table, "query-1"), OLD)
    await house.publish(sealed)
    await house.run_until_settled()
    await put_keys(house, NEW)
    await house.publish(sealed)
    await house.run_until_settled()
    assert await reasons(house) == []
    assert await house.outstanding() == []
    states = [receipt.state for receipt in await house.receipts()]
    assert states == [ReceiptState.COMMITTED, ReceiptState.COMMITTED]


@pytest.mark.parametrize("announced", [True, False])
async def test_a_signed_request_with_another_epoch_or_table_is_a_forgery(announced: bool) -> None:
    house, table = await open_house(OLD)
    right = signed(good(table, "query-1"))
    forged: list[EncodedRequest] = [
        with_changes(right, epoch=1),
        with_changes(right, producer=right.request.producer.model_copy(update={"id": "q"})),
        with_changes(right, branch="main", published_at_ms=1, epoch=2),
    ]
    for one in (right, *forged):
        await house.publish(one, announce=announced)
    async with house.running(reconcile_interval_s=5.0):
        await house.settle()
    assert await reasons(house) == [Reason.SIGNATURE_INVALID] * 3
    assert len(await house.live_files()) == 1
