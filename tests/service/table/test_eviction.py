"""Requests that cannot land for now: beyond their share of memory they wait in the inbox."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from committer.errors import AccessError
from committer.ports.pointer_swap import LoadedTable
from committer.ports.storage import Storage
from committer.request.receipt_model import ReceiptState
from committer.request.request_format import EncodedRequest
from committer.service.ingest import committer_pool
from committer.service.requests import large_requests
from committer.service.requests.pending import FAULT_PAUSE_S
from committer.service.table import eviction
from committer.service.table.eviction import HeldRoom
from committer.service.telemetry.instrumented_ports import InstrumentedStorage
from tests.support.builders.bad_requests import naming
from tests.support.builders.flights import build_flights
from tests.support.builders.operation_requests import build_operation
from tests.support.builders.request_builders import build_request, large, ordered
from tests.support.faults.counting_storage import CountingStorage
from tests.support.service.outside import add_table
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True
GONE = ["memory://warehouse/db/flights/data/never.parquet"]
CONDITION = "deferred requests of db.flights"


def small_epoch(table: LoadedTable, epoch: int) -> EncodedRequest:
    return ordered(build_request(table, epoch=epoch))


def large_epoch(table: LoadedTable, epoch: int) -> EncodedRequest:
    return ordered(large(table, "query-1", epoch=epoch))


async def has_landed(harness: ServiceHarness, producer: str) -> bool:
    return [one.state for one in await harness.receipts(producer)] == [ReceiptState.COMMITTED]


def scale_down(monkeypatch: pytest.MonkeyPatch, one: EncodedRequest) -> None:
    """Leave room for about ten such requests, and for four that are deferred."""
    small_bytes, large_bytes = 4 * len(one.content) + 16 * 1024, len(one.content)
    held_bytes = max(small_bytes, 3 * large_bytes)
    monkeypatch.setattr(committer_pool, "PENDING_WEIGHT_BYTES_MAX", 10 * small_bytes)
    monkeypatch.setattr(large_requests, "IN_HAND_BYTES_MAX", 10 * large_bytes)
    monkeypatch.setattr(eviction, "HELD_BYTES_MAX", 4 * held_bytes)


async def stop(harness: ServiceHarness, table: LoadedTable) -> None:
    """Stop the ordered producer `query-1`: its second epoch goes to quarantine."""
    await harness.publish(small_epoch(table, 0))
    needs: dict[str, object] = {"removed-data-files": GONE}
    await harness.publish(ordered(build_operation(table, "delete", epoch=1, needs=needs)))
    await harness.settle(10.0)
    assert len(await harness.quarantined()) == 1


@pytest.mark.parametrize("build", [small_epoch, large_epoch])
async def test_a_stopped_ordered_producer_leaves_room_to_other_tables_and_its_epochs_land_in_order(
    build: Callable[[LoadedTable, int], EncodedRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    other = await harness.create_table("db.other")
    scale_down(monkeypatch, build(table, 9))
    async with harness.running(reconcile_interval_s=30.0):
        await stop(harness, table)
        for epoch in range(2, 24):
            await harness.publish(build(table, epoch))
        await harness.settle(60.0)
        assert CONDITION in harness.health.conditions
        await harness.publish(build_request(other, producer="small"))
        await harness.publish(large(other, "large"))
        await harness.settle(20.0)
        assert await has_landed(harness, "small")
        assert await has_landed(harness, "large")
        # The requests that wait in the inbox are not read again and again.
        before = harness.inbox_storage.calls["get"]
        await harness.settle(300.0)
        assert harness.inbox_storage.calls["get"] == before
        (record,) = await harness.quarantined()
        await harness.quarantine.delete((record.key,))
        await harness.settle(120.0)
        receipts = [one for one in await harness.receipts() if one.snapshot_id is not None]
        assert sorted(one.epoch for one in receipts) == [0, *range(2, 24)]
        in_turn = sorted(receipts, key=lambda one: (one.sequence_number or 0, one.epoch))
        assert [one.epoch for one in in_turn] == [0, *range(2, 24)]
        assert await harness.outstanding() == []
        assert harness.health.conditions == {}


class Unreadable(InstrumentedStorage):
    """Does not grant the read of manifests that requests name."""

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner, CountingStorage(inner))
        self.grants = False

    async def get(
        self,
        location: str,
        *,
        offset: int = 0,
        length: int | None = None,
        size_bytes_max: int | None = None,
    ) -> bytes:
        if "handed" in location and not self.grants:
            raise AccessError(f"`{location}`: permission denied")
        return await self.inner.get(
            location, offset=offset, length=length, size_bytes_max=size_bytes_max
        )


async def with_unreadable() -> tuple[ServiceHarness, LoadedTable, Unreadable]:
    storages: list[Unreadable] = []

    def wrap(inner: Storage) -> Storage:
        storages.append(Unreadable(inner))
        return storages[0]

    harness = ServiceHarness(wrap=wrap)
    return harness, await add_table(harness, build_flights()), storages[0]


async def publish_naming(
    harness: ServiceHarness, table: LoadedTable, producer: str, number: int
) -> None:
    sealed, manifest = naming(table, producer, f"handed-{number}.avro", epoch=number)
    await harness.storage.inner.create([manifest])
    await harness.publish(sealed)


async def test_requests_whose_manifests_cannot_be_read_leave_room_to_other_tables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harness, table, storage = await with_unreadable()
    other = await harness.create_table("db.other")
    scale_down(monkeypatch, naming(table, "p")[0])
    async with harness.running(reconcile_interval_s=30.0):
        for number in range(22):
            await publish_naming(harness, table, f"p{number}", number)
        await harness.settle(60.0)
        assert CONDITION in harness.health.conditions
        await harness.publish(build_request(other, producer="innocent"))
        await harness.settle(10.0)
        assert await has_landed(harness, "innocent")
        before = harness.inbox_storage.calls["get"]
        await harness.settle(10 * eviction.PAUSE_S)
        assert harness.inbox_storage.calls["get"] - before <= 22 * 10
        storage.grants = True
        await harness.settle(eviction.PAUSE_S + 60.0)
        assert await harness.outstanding() == []
        assert len(await harness.live_files()) == 22
        assert harness.health.conditions == {}


async def test_the_producer_with_the_most_requests_gives_up_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harness, table, storage = await with_unreadable()
    scale_down(monkeypatch, naming(table, "p")[0])
    async with harness.running(reconcile_interval_s=30.0):
        for number in range(20):
            await publish_naming(harness, table, "many", number)
        await publish_naming(harness, table, "few", 50)
        await harness.settle(60.0)
        storage.grants = True
        await harness.settle(FAULT_PAUSE_S + 1.0)
        assert await has_landed(harness, "few")
        # The others follow as soon as those before them have landed.
        await harness.settle(60.0)
        assert await harness.outstanding() == []


@pytest.mark.parametrize("tables", [1, 2, 5, 50])
def test_however_many_tables_hold_what_they_may_there_is_room_for_one_more(tables: int) -> None:
    room, step_bytes = HeldRoom(), 1024
    held_bytes = dict.fromkeys(range(tables), eviction.HELD_BYTES_MAX)
    for _ in range(100):
        for table in held_bytes:
            held_bytes[table] -= room.surplus(table, held_bytes[table])
    assert sum(held_bytes.values()) <= eviction.HELD_BYTES_MAX
    assert room.surplus("one more", step_bytes) == 0
