"""A fault of one request, the planner or the environment stops nothing else for good."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import replace

import pytest

from committer.errors import (
    AccessError,
    AlreadyExistsError,
    FrazilError,
    NotFoundError,
    SettingsError,
    StorageUnavailableError,
    UnsupportedError,
)
from committer.plan.batch import prepare_manifests
from committer.plan.commit import plan_commit
from committer.ports.queue import Delivery
from committer.ports.storage import NewObject
from committer.reason import Reason
from committer.request.request_format import EncodedRequest, read_request
from tests.support.builders.bad_requests import naming
from tests.support.builders.flights import build_flights
from tests.support.builders.request_builders import build_request
from tests.support.service.outside import add_table
from tests.support.service.scripted import PickyStorage, paths
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True


@pytest.mark.parametrize(
    "fault", [AccessError("denied"), SettingsError("no client for s3"), StorageUnavailableError("")]
)
async def test_a_named_manifest_that_cannot_be_read_now_delays_its_own_request_only(
    fault: FrazilError,
) -> None:
    house = ServiceHarness()
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
    house = ServiceHarness()
    table = await add_table(house, build_flights())
    sealed, manifest = naming(table, "bad", name="x" * 200)
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
    house = ServiceHarness()
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

    monkeypatch.setattr("committer.service.table.commit_planner.prepare_manifests", trips)
    house = ServiceHarness()
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

    monkeypatch.setattr("committer.service.table.commit_planner.plan_commit", trips)
    house = ServiceHarness()
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
    house = ServiceHarness()
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
    house = ServiceHarness()
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
    def trips(content: bytes, *, key: str | None = None) -> EncodedRequest:
        if b"poison" in content:
            raise RecursionError
        return read_request(content, key=key)

    for module in ("inbox_reader", "doorbells"):
        monkeypatch.setattr(f"committer.service.ingest.{module}.read_request", trips)
    house = ServiceHarness()
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
    house = ServiceHarness()
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
    monkeypatch.setattr("committer.service.ingest.consumer.READ_COUNT_MAX", 10)
    house = ServiceHarness(min_interval_ms=1_000)
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
