"""Transactions whose tables belong to several committers, each of which has writers of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from committer.ports.pointer_swap import LoadedTable
from tests.support.builders.request_builders import build_request
from tests.support.builders.transactions import build_group
from tests.support.service.replicas import Replicas, cancel_others
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True
WRITERS = 16
SWAP_S = 0.05


@pytest.fixture
async def replicas(tmp_path: Path) -> AsyncIterator[Replicas]:
    yield Replicas(tmp_path)
    await cancel_others()


async def write(
    harness: ServiceHarness, table: LoadedTable, writer: int, over: asyncio.Event
) -> int:
    """Publish one append after another until it is over; return how many."""
    epoch = 0
    while not over.is_set():
        await harness.publish(build_request(table, producer=f"writer-{writer}", epoch=epoch))
        await asyncio.sleep(0.5)
        epoch += 1
    return epoch


async def test_a_transaction_of_two_committers_lands_beside_writers_that_never_pause(
    replicas: Replicas,
) -> None:
    """Every table commits all the time: the swap of another committer conflicts again and again,
    until it is given a turn."""
    harness, over = replicas.harness, asyncio.Event()
    replicas.start("a")
    replicas.start("b")
    await asyncio.sleep(10.0)
    tables = [await replicas.table_of("a", "b"), await replicas.table_of("b", "a")]
    names = [str(table.identifier) for table in tables]
    harness.catalog.swap_s.update(dict.fromkeys(names, SWAP_S))
    writing = [
        asyncio.create_task(write(harness, table, writer, over))
        for table in tables
        for writer in range(WRITERS)
    ]
    await asyncio.sleep(5.0)
    for epoch in range(3):
        requests = build_group(tables, producer="group", epoch=epoch)
        for sealed in requests:
            await harness.publish(sealed)
        await asyncio.sleep(10.0)
        waiting = await harness.outstanding()
        assert not {sealed.key for sealed in requests} & set(waiting)
    over.set()
    written = [await each for each in writing]
    await asyncio.sleep(60.0)
    assert await harness.outstanding() == []
    assert await harness.quarantined() == []
    landed = [len(await harness.live_files(name)) for name in names]
    assert landed == [3 + sum(written[:WRITERS]), 3 + sum(written[WRITERS:])]


@pytest.mark.parametrize("leaves", ["a", "b"])
async def test_a_shard_that_moves_takes_its_part_of_a_transaction_along(
    replicas: Replicas, leaves: str
) -> None:
    """Either owner ends, in order, between the requests of a transaction and at its swap."""
    harness = replicas.harness
    running = {name: replicas.start(name) for name in "ab"}
    await asyncio.sleep(10.0)
    tables = [await replicas.table_of("a", "b"), await replicas.table_of("b", "a")]
    names = [str(table.identifier) for table in tables]
    early, late = build_group(tables, producer="split")
    await harness.publish(early)
    harness.catalog.swap_s.update(dict.fromkeys(names, 3.0))
    for sealed in build_group(tables, producer="whole"):
        await harness.publish(sealed)
    await asyncio.sleep(1.0)
    await running[leaves].end()
    harness.catalog.swap_s.clear()
    await harness.publish(late)
    for table in tables:
        await harness.publish(build_request(table, producer="lone"))
    await asyncio.sleep(60.0)
    assert await harness.outstanding() == []
    assert await harness.quarantined() == []
    assert [len(await harness.live_files(name)) for name in names] == [3, 3]
