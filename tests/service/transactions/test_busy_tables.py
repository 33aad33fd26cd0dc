"""A transaction over tables that several committers own lands although each table is busy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from committer.ports.pointer_swap import LoadedTable
from tests.support.builders.request_builders import build_request
from tests.support.builders.transactions import build_group
from tests.support.service.replicas import Replicas, cancel_others

VIRTUAL_TIME = True
WRITERS = 16
SWAP_S = 0.05
LANDED_S_MAX = 10.0


@pytest.fixture
async def replicas(tmp_path: Path) -> AsyncIterator[Replicas]:
    yield Replicas(tmp_path)
    await cancel_others()


async def keep_writing(replicas: Replicas, table: LoadedTable, number: int) -> None:
    epoch = 0
    while True:
        await replicas.harness.publish(
            build_request(table, producer=f"writer-{number}", epoch=epoch)
        )
        epoch += 1
        await asyncio.sleep(0.02 + number / 1000)


async def test_a_transaction_lands_beside_busy_writers_of_other_committers_tables(
    replicas: Replicas,
) -> None:
    for name in ("a", "b"):
        replicas.start(name)
    await asyncio.sleep(5.0)
    harness = replicas.harness
    tables = [await replicas.table_of(name, "a", "b") for name in ("a", "b")]
    for table in tables:
        harness.catalog.swap_s[str(table.identifier)] = SWAP_S
    writers = [
        asyncio.ensure_future(keep_writing(replicas, table, number))
        for table in tables
        for number in range(WRITERS)
    ]
    await asyncio.sleep(0.5)
    for epoch in range(2):
        began_s = harness.world.monotonic_s()
        await asyncio.gather(*map(harness.publish, build_group(tables, epoch=epoch)))
        while not await has_landed(replicas, tables, epoch):
            await asyncio.sleep(0.05)
            assert harness.world.monotonic_s() - began_s < LANDED_S_MAX
    for writer in writers:
        writer.cancel()


async def has_landed(replicas: Replicas, tables: list[LoadedTable], epoch: int) -> bool:
    counts = [
        sum(
            "frazil.transaction" in (snapshot.summary or {})
            for snapshot in (await replicas.harness.load(str(table.identifier))).snapshots
        )
        for table in tables
    ]
    return min(counts) > epoch
