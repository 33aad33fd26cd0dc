"""A committer that ends, in order or not, while a transaction waits, is planned or is swapped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from committer.ports.pointer_swap import LoadedTable
from committer.ports.storage import NewObject
from tests.support.builders.request_builders import build_request
from tests.support.builders.transactions import build_group
from tests.support.service.replicas import LEASE_S, Replicas, cancel_others
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True
# How long it is at the point where the committer is told to end.
WORK_S = 20.0
POINTS = ("waiting", "writing", "swapping")


@pytest.fixture
async def replicas(tmp_path: Path) -> AsyncIterator[Replicas]:
    yield Replicas(tmp_path)
    await cancel_others()


def slow_down(
    harness: ServiceHarness, table: LoadedTable, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Have the swap of a table, or the writing of its files, take its time."""
    if point == "swapping":
        harness.catalog.swap_s[str(table.identifier)] = WORK_S
    if point == "writing":
        storage, folder = harness.storage.inner, f"{table.metadata.location}/"
        create = storage.create

        async def slow(objects: Sequence[NewObject]) -> None:
            if any(one.location.startswith(folder) for one in objects):
                await asyncio.sleep(WORK_S)
            await create(objects)

        monkeypatch.setattr(storage, "create", slow)


@pytest.mark.parametrize("is_crash", [False, True], ids=["SIGTERM", "crash"])
@pytest.mark.parametrize("point", POINTS)
async def test_a_transaction_outlives_its_committer(
    replicas: Replicas, point: str, is_crash: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next committer lands it once, on all of its tables, and plain requests beside it."""
    harness, replica = replicas.harness, replicas.start("a")
    tables = [await replicas.table_of("a") for _ in range(3)]
    first, *others = build_group(tables)
    with monkeypatch.context() as patches:
        slow_down(harness, tables[1], point, patches)
        await harness.publish(first)
        if point != "waiting":
            for sealed in others:
                await harness.publish(sealed)
        await asyncio.sleep(2.0)
        for table in tables:
            await harness.publish(build_request(table, producer="lone"))
        await asyncio.sleep(1.0)
        began_s = harness.world.monotonic_s()
        await (replica.crash() if is_crash else replica.end())
        # The committer waits for the calls that are on their way, once for each table at most.
        assert harness.world.monotonic_s() - began_s < 2.5 * WORK_S
    harness.catalog.swap_s.clear()
    replicas.start("a")
    if point == "waiting":
        for sealed in others:
            await harness.publish(sealed)
    await asyncio.sleep(LEASE_S + 30.0)
    names = [str(table.identifier) for table in tables]
    assert [len(await harness.live_files(name)) for name in names] == [2, 2, 2]
    assert await harness.outstanding() == []
    assert await harness.quarantined() == []
