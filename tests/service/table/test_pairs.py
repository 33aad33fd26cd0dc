"""Both orders of every pair of what may befall a table, the second while the first is under way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import product

import pytest

from committer.iceberg.updates.metadata_update import RemoveSnapshots, SetProperties
from committer.ports.pointer_swap import Committed, LoadedTable
from committer.reason import Reason
from committer.request.receipt_model import ReceiptState
from committer.request.request_format import EncodedRequest
from tests.support.builders.flights import foreign_swap
from tests.support.builders.request_builders import build_request
from tests.support.faults.faulty_catalog import Fault
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True


@dataclass(slots=True)
class Stage:
    """A table with a landed epoch 0, and what has to have become of each request in the end."""

    harness: ServiceHarness
    table: LoadedTable
    stack: AsyncExitStack
    landed: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    foreign_commits: int = 0

    async def start(self) -> None:
        await self.stack.enter_async_context(self.harness.running(reconcile_interval_s=5.0))

    async def land(self, sealed: EncodedRequest) -> None:
        self.landed.append(str(sealed.request.attempt))
        await self.harness.publish(sealed)

    def new(self) -> EncodedRequest:
        return build_request(self.table, epoch=len(self.landed), files_count=2)


async def append(stage: Stage) -> None:
    await stage.land(stage.new())


async def one_shot(stage: Stage) -> None:
    producer = f"shot-{len(stage.landed)}"
    await stage.land(build_request(stage.table, producer=producer, one_shot=True, files_count=2))


async def equal_replay(stage: Stage) -> None:
    await stage.harness.publish(build_request(stage.table, epoch=0))


async def other_replay(stage: Stage) -> None:
    sealed = build_request(stage.table, epoch=0, fingerprint="something else")
    stage.refused.append(str(sealed.request.attempt))
    await stage.harness.publish(sealed)


async def lost_answer(stage: Stage) -> None:
    stage.harness.catalog.plan(Fault.LOST_REPLY)
    await append(stage)


async def late_landing(stage: Stage) -> None:
    stage.harness.catalog.plan(Fault.LANDS_LATE)
    await append(stage)


async def flush(stage: Stage) -> None:
    stage.harness.server.flush()


async def crash(stage: Stage) -> None:
    await stage.stack.aclose()
    await stage.start()


async def foreign_expiry(stage: Stage) -> None:
    """Expire all snapshots but the head as another engine, which retries until it wins."""
    stage.foreign_commits += 1
    catalog, answer = stage.harness.catalog.inner, None
    while not isinstance(answer, Committed):
        current = await catalog.load(stage.table.identifier)
        head = current.metadata.current_snapshot_id
        ids = (one.snapshot_id for one in current.metadata.snapshots)
        swap = foreign_swap(
            current,
            RemoveSnapshots(tuple(one for one in ids if one != head)),
            SetProperties({f"foreign-{stage.foreign_commits}": "1"}),
        )
        await stage.harness.storage.inner.create(catalog.objects_before(swap))
        answer = await catalog.swap(swap)


EVENTS: tuple[Callable[[Stage], Awaitable[None]], ...] = (
    append,
    one_shot,
    equal_replay,
    other_replay,
    lost_answer,
    late_landing,
    flush,
    crash,
    foreign_expiry,
)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("first", "second"),
    list(product(EVENTS, EVENTS)),
    ids=lambda event: event.__name__,
)
async def test_after_any_two_events_in_any_order_each_request_is_where_it_belongs(
    first: Callable[[Stage], Awaitable[None]], second: Callable[[Stage], Awaitable[None]]
) -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    async with AsyncExitStack() as stack:
        stage = Stage(harness, table, stack)
        await stage.start()
        await append(stage)
        await harness.settle(1.0)
        await first(stage)
        await harness.settle(0.0)
        await second(stage)
        await harness.settle(12.0)
        await harness.catalog.land_late()
        await harness.settle(3.0)
    await _check(stage)


async def _check(stage: Stage) -> None:
    harness = stage.harness
    paths = [file.file_path for file in await harness.live_files()]
    assert len(set(paths)) == len(paths)
    attempts = sorted(path.rsplit("/", 1)[1][6:42] for path in paths)
    assert attempts == sorted(stage.landed * 2)
    records = await harness.quarantined()
    assert sorted(record.key.rsplit("/", 1)[1] for record in records) == sorted(stage.refused)
    assert {record.reason for record in records} <= {Reason.EPOCH_CONTENT_DIFFERS}
    assert await harness.outstanding() == []
    assert harness.health.conditions == {}
    for receipt in await harness.receipts():
        is_refused = receipt.attempt in stage.refused
        assert (receipt.state is ReceiptState.QUARANTINED) == is_refused
    named = (await harness.load()).properties
    assert sum(key.startswith("foreign-") for key in named) == stage.foreign_commits
