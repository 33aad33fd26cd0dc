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
from committer.plan.batch.batch import prepare_manifests
from committer.plan.commit.commit import Planning, plan_commit
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
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    sealed, manifest = naming(table, "slow")
    await harness.storage.inner.create((manifest,))
    denied = [True]
    harness.storage = PickyStorage(
        harness,
        lambda method, at: fault if denied[0] and at == manifest.location else None,
    )
    async with harness.running():
        await harness.publish(sealed)
        for epoch in range(5):
            await harness.publish(build_request(table, epoch=epoch, partition=("AA",)))
            await harness.settle(1.0)
            assert len(await paths(harness)) == epoch + 1
        denied[0] = False
        await harness.settle(60.0)
    assert len(await paths(harness)) == 6
    assert await harness.quarantined() == []


async def test_a_named_manifest_that_no_storage_can_name_is_quarantined() -> None:
    harness = ServiceHarness()
    table = await add_table(harness, build_flights())
    sealed, manifest = naming(table, "bad", name="x" * 200)
    harness.storage = PickyStorage(
        harness,
        lambda method, at: NotFoundError("name too long") if at == manifest.location else None,
    )
    await harness.publish(sealed)
    await harness.publish(build_request(table, partition=("AA",)))
    await harness.run_until_settled()
    (record,) = await harness.quarantined()
    assert record.reason == Reason.MANIFEST_MISSING
    assert len(await paths(harness)) == 1


async def test_an_inbox_that_cannot_be_asked_delays_only_who_depends_on_the_answer() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running():
        await harness.publish(build_request(table, epoch=0))
        await harness.settle(1.0)
        harness.inbox_storage.is_away = True
        await harness.publish(build_request(table, epoch=1), durable=False)
        newcomer = build_request(table, producer="new")
        await harness.publish(newcomer, durable=False)
        await harness.settle(1.0)
        assert len(await paths(harness)) == 2
        harness.inbox_storage.is_away = False
        await harness.inbox.put(newcomer)
        await harness.settle(60.0)
    assert len(await paths(harness)) == 3


@pytest.mark.parametrize("error", [UnsupportedError("no"), ValueError("bug"), KeyError("bug")])
async def test_a_request_that_cannot_be_planned_is_quarantined_alone(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:

    def trips(batch: object, metadata: object) -> object:
        if any(one.request.producer.id == "poison" for one in batch.requests):  # type: ignore[attr-defined]
            raise error
        return prepare_manifests(batch, metadata)  # type: ignore[arg-type]

    monkeypatch.setattr("committer.service.table.commit_planner.prepare_manifests", trips)
    harness = ServiceHarness()
    table = await harness.create_table()
    for producer in ("a", "b", "poison", "c"):
        await harness.publish(build_request(table, producer=producer))
    async with harness.running():
        await harness.settle(5.0)
        assert len(await paths(harness)) == 3
    (record,) = await harness.quarantined()
    assert record.reason == Reason.PLAN_FAILED


async def test_a_commit_that_the_planner_trips_over_stops_no_other_and_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = [True]

    def trips(planning: Planning) -> object:
        requests = planning.batch.requests
        if broken[0] and any(one.request.producer.id == "poison" for one in requests):
            raise ZeroDivisionError
        return plan_commit(planning)

    monkeypatch.setattr("committer.service.table.commit_planner.plan_commit", trips)
    harness = ServiceHarness()
    table = await harness.create_table()
    async with harness.running():
        for producer in ("a", "poison", "b", "c"):
            await harness.publish(build_request(table, producer=producer))
        await harness.settle(2.0)
        assert len(await paths(harness)) == 3
        # Whether the table or the request is at fault is not known: it stays where it is.
        assert await harness.quarantined() == []
        assert len(await harness.outstanding()) == 1
        broken[0] = False
        await harness.settle(60.0)
    assert len(await paths(harness)) == 4


async def test_a_name_of_ours_that_is_taken_does_not_stop_the_table_for_good() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    taken: list[str] = []

    def take_the_first(method: str, location: str) -> FrazilError | None:
        if method == "create" and location.endswith("-m0.avro") and not taken:
            taken.append(location)
        return AlreadyExistsError("taken") if method == "create" and location in taken else None

    harness.storage = PickyStorage(harness, take_the_first)
    await harness.publish(build_request(table))
    async with harness.running():
        await harness.settle(0.001)
        await harness.storage.inner.create((NewObject(taken[0], b"not ours"),))
        await harness.settle(120.0)
    assert len(await paths(harness)) == 1


async def test_a_queue_without_permission_does_not_end_the_settler() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    assert harness.queue is not None
    denied = [True]
    acknowledge = harness.queue.acknowledge

    async def refuse(tokens: Sequence[str]) -> None:
        if denied[0]:
            raise AccessError("NOPERM")
        await acknowledge(tokens)

    harness.queue.acknowledge = refuse  # type: ignore[method-assign]
    async with harness.running():
        await harness.publish(build_request(table))
        await harness.settle(5.0)
        denied[0] = False
        await harness.settle(60.0)
        assert (await harness.publisher_queue.depth()).waiting == 0
    assert await harness.outstanding() == []


async def test_an_object_that_crashes_the_intake_does_not_end_the_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def trips(content: bytes, *, key: str | None = None) -> EncodedRequest:
        if b"poison" in content:
            raise RecursionError
        return read_request(content, key=key)

    for module in ("inbox_reader", "intake"):
        monkeypatch.setattr(f"committer.service.ingest.{module}.read_request", trips)
    harness = ServiceHarness()
    table = await harness.create_table()
    await harness.publish(build_request(table, producer="poison"), announce=False)
    await harness.publish(build_request(table, producer="poison", epoch=1))
    await harness.publish(build_request(table))
    async with harness.running(reconcile_interval_s=5.0):
        await harness.settle(60.0)
        assert len(await paths(harness)) == 1
        await harness.publish(build_request(table, epoch=1))
        await harness.settle(5.0)
        assert len(await paths(harness)) == 2


async def test_a_doorbell_whose_object_could_not_be_read_is_acknowledged_in_the_end() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    sealed = build_request(table)
    async with harness.running(reconcile_interval_s=10.0):
        await harness.settle(1.0)
        await harness.inbox.put(sealed)
        harness.inbox_storage.is_away = True
        bell = replace(harness.doorbell(sealed), content=None)
        await harness.publisher_queue.announce([bell])
        await harness.settle(5.0)
        harness.inbox_storage.is_away = False
        await harness.settle(60.0)
    assert len(await paths(harness)) == 1
    assert len(await harness.receipts()) == 1
    assert (await harness.publisher_queue.depth()).waiting == 0


async def test_a_start_behind_a_backlog_reads_no_request_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("committer.service.ingest.consumer.READ_COUNT_MAX", 10)
    monkeypatch.setattr("committer.service.ingest.consumer.READ_MORE_MAX", 0)
    harness = ServiceHarness(min_interval_ms=1_000)
    assert harness.queue is not None
    at_once = harness.queue.read

    async def slowly(
        *, count_max: int, wait_s: float, shards: Collection[int], more_max: int
    ) -> Sequence[Delivery]:
        await asyncio.sleep(0.01)
        return await at_once(count_max=count_max, wait_s=wait_s, shards=shards, more_max=more_max)

    monkeypatch.setattr(harness.queue, "read", slowly)
    table = await harness.create_table()
    for epoch in range(300):
        await harness.publish(build_request(table, epoch=epoch))
    unannounced = build_request(table, producer="unannounced")
    await harness.publish(unannounced, announce=False)
    harness.inbox_storage.calls.clear()
    async with harness.running():
        await harness.settle(5.0)
        assert len(await paths(harness)) == 301
    assert harness.inbox_storage.calls["get"] == 1
