"""Requests that adopt files, from the request to its end: each file is in the table once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from committer.iceberg.entry.data_file import DataFile
from committer.plan.batch.adopted_paths import ADOPT_LOCATIONS_PROPERTY
from committer.ports.pointer_swap import LoadedTable
from committer.reason import Reason
from committer.request.receipt_model import ReceiptState
from committer.request.request_format import EncodedRequest
from tests.support.builders.request_builders import (
    build_file,
    build_line,
    build_manifest,
    build_request,
    changed_line,
    seal,
)
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True

OLD = "memory://old/flights"
ALLOWED = {ADOPT_LOCATIONS_PROPERTY: OLD}


def old_file(table: LoadedTable, name: str) -> DataFile:
    line = build_line(table)
    return replace(build_file(table.metadata, line.attempt), file_path=f"{OLD}/{name}.parquet")


def adopting(table: LoadedTable, *names: str, producer: str = "adopter") -> EncodedRequest:
    line = changed_line(build_line(table, producer=producer, one_shot=True), adopt_existing=True)
    files = [old_file(table, name) for name in names]
    return seal(line, [build_manifest(table.metadata, files)])


async def live(harness: ServiceHarness) -> list[str]:
    paths = [file.file_path for file in await harness.live_files()]
    return sorted(path.removeprefix(f"{OLD}/") for path in paths if path.startswith(OLD))


async def allowed_table(harness: ServiceHarness, **properties: str) -> LoadedTable:
    return await harness.create_table(properties=ALLOWED | properties)


async def test_adopted_files_are_in_the_table_under_their_own_names() -> None:
    harness = ServiceHarness()
    table = await allowed_table(harness)
    await harness.publish(adopting(table, "a", "b"))
    await harness.run_until_settled()
    assert await live(harness) == ["a.parquet", "b.parquet"]
    [receipt] = await harness.receipts("adopter")
    assert receipt.state is ReceiptState.COMMITTED
    assert (await harness.load()).current_snapshot_id == receipt.snapshot_id


async def test_a_place_that_the_table_does_not_allow_is_refused() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    await harness.publish(adopting(table, "a"))
    await harness.run_until_settled()
    [record] = await harness.quarantined()
    assert record.reason == Reason.PATH_NOT_ALLOWED
    assert ADOPT_LOCATIONS_PROPERTY in record.message


@pytest.mark.parametrize("apart_s", [0.0, 10.0])
async def test_a_file_that_two_requests_adopt_lands_once(apart_s: float) -> None:
    """In one batch, or after the first has landed: the second is told which file, and is kept."""
    harness = ServiceHarness()
    table = await allowed_table(harness)
    async with harness.running():
        await harness.publish(adopting(table, "a", "b", producer="first"))
        await harness.settle(apart_s)
        await harness.publish(adopting(table, "b", "c", producer="second"))
        await harness.publish(build_request(table, producer="beside"))
        await harness.settle()
    assert await live(harness) == ["a.parquet", "b.parquet"]
    [record] = await harness.quarantined()
    assert (record.reason, record.conflict) == (Reason.CONFLICT, "live")
    assert f"{OLD}/b.parquet" in record.message and f"{OLD}/c.parquet" not in record.message
    [first], [second] = await harness.receipts("first"), await harness.receipts("second")
    assert (first.state, second.state) == (ReceiptState.COMMITTED, ReceiptState.QUARANTINED)
    assert str(first.snapshot_id) in record.message
    assert len(await harness.live_files()) == 3
    assert await harness.outstanding() == []


async def swap_in(harness: ServiceHarness, table: LoadedTable, name: str) -> None:
    """Add a file as another engine does: with its own manifest and list."""
    other = ServiceHarness(beside=harness, root="memory://other-inbox")
    other.catalog = harness.catalog
    await other.publish(adopting(table, name, producer="engine"))
    await other.run_until_settled()


async def test_a_file_that_another_engine_adds_between_plan_and_swap_is_not_added_again() -> None:
    harness = ServiceHarness()
    table = await allowed_table(harness)
    async with harness.running():
        # The committer keeps this base, and plans on it without a look.
        await harness.publish(build_request(table, producer="beside"))
        await harness.settle(10.0)
        await swap_in(harness, table, "a")
        assert await live(harness) == ["a.parquet"]
        await harness.publish(adopting(table, "a", producer="late"))
        await harness.settle()
    assert await live(harness) == ["a.parquet"]
    [record] = await harness.quarantined()
    assert record.conflict == "live"


async def test_appends_beside_read_nothing_and_an_adoption_reads_manifests_once() -> None:
    harness = ServiceHarness()
    table = await allowed_table(harness)
    async with harness.running():
        for epoch in range(3):
            await harness.publish(build_request(table, producer="beside", epoch=epoch))
            await harness.settle(10.0)
        harness.storage.calls.clear()
        await harness.publish(build_request(table, producer="beside", epoch=3))
        await harness.settle(10.0)
        assert harness.storage.calls["get"] == 0
        harness.storage.calls.clear()
        await harness.publish(adopting(table, "a"))
        await harness.settle(10.0)
        assert harness.storage.calls["get"] <= 4
    assert await live(harness) == ["a.parquet"]


EXPIRING = {
    "frazil.expire.enabled": "true",
    "history.expire.min-snapshots-to-keep": "2",
    "history.expire.max-snapshot-age-ms": "0",
}
