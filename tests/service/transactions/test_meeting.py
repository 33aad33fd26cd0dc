"""The swaps of a transaction meet, and go out together once all are there, or not at all."""

from __future__ import annotations

import asyncio

import pytest

from committer.errors import CatalogUnavailableError
from committer.ports.pointer_swap import Committed, Conflict, Rejected, Swap, Unknown
from committer.service.transactions.meeting import MEET_S_MAX, Meeting
from tests.support.builders.table_builders import build_swap, build_table
from tests.support.clock.virtual_time import LoopWorld
from tests.support.faults.faulty_catalog import Fault, FaultyCatalog
from tests.support.memory.memory_catalog import MemoryCatalog
from tests.support.memory.memory_storage import MemoryStorage

VIRTUAL_TIME = True


class Case:
    """Two tables, and a meeting of their swaps."""

    def __init__(self) -> None:
        self.catalog = FaultyCatalog(MemoryCatalog(storage=MemoryStorage(world=LoopWorld())))
        self.swaps: list[Swap] = []

    async def meeting(self) -> Meeting:
        await self.catalog.create_namespace(("db",))
        for name in ("db.flights", "db.trains"):
            table = build_table(name, warehouse="memory://warehouse")
            await self.catalog.create_table(table)
            self.swaps.append(build_swap(table))
        return Meeting([swap.base.metadata.require_uuid() for swap in self.swaps])

    def come(self, meeting: Meeting, number: int) -> asyncio.Task[object]:
        swap = self.swaps[number]
        uuid = swap.base.metadata.require_uuid()
        return asyncio.create_task(meeting.swap(self.catalog, uuid, swap))

    async def moved(self) -> list[bool]:
        return [
            await self.catalog.current_location(swap.base.identifier) != swap.base.metadata_location
            for swap in self.swaps
        ]


async def test_each_table_gets_its_own_part_of_the_answer() -> None:
    case = Case()
    meeting = await case.meeting()
    answers = await asyncio.gather(case.come(meeting, 1), case.come(meeting, 0))
    assert [one.table.identifier.name for one in answers if isinstance(one, Committed)] == [
        "trains",
        "flights",
    ]
    assert case.catalog.calls["swap_together"] == 1


@pytest.mark.parametrize(
    ("fault", "kind"),
    [(Fault.CONFLICT, Conflict), (Fault.REJECTED, Rejected), (Fault.LOST_REPLY, Unknown)],
)
async def test_the_answer_to_the_group_is_that_to_every_table(fault: Fault, kind: type) -> None:
    case = Case()
    meeting = await case.meeting()
    case.catalog.plan(fault)
    answers = await asyncio.gather(case.come(meeting, 0), case.come(meeting, 1))
    assert [type(one) for one in answers] == [kind, kind]


async def test_an_error_is_raised_for_every_table() -> None:
    case = Case()
    meeting = await case.meeting()
    case.catalog.plan(Fault.UNAVAILABLE)
    answers = await asyncio.gather(
        case.come(meeting, 0), case.come(meeting, 1), return_exceptions=True
    )
    assert [type(one) for one in answers] == [CatalogUnavailableError] * 2


async def test_a_meeting_that_a_table_does_not_come_to_is_broken_up_and_sends_nothing() -> None:
    case = Case()
    meeting = await case.meeting()
    began_s = asyncio.get_running_loop().time()
    assert await case.come(meeting, 0) == Conflict()
    assert asyncio.get_running_loop().time() - began_s == pytest.approx(MEET_S_MAX)
    assert meeting.is_broken_up
    assert await case.moved() == [False, False]


@pytest.mark.parametrize("is_canceled", [True, False])
async def test_a_meeting_that_is_left_is_broken_up_at_once(is_canceled: bool) -> None:
    case = Case()
    meeting = await case.meeting()
    coming = case.come(meeting, 0)
    await asyncio.sleep(1.0)
    if is_canceled:
        coming.cancel()
        with pytest.raises(asyncio.CancelledError):
            await coming
    else:
        meeting.break_up()
        assert await coming == Conflict()
    assert meeting.is_broken_up
    assert case.catalog.calls["swap_together"] == 0


async def test_swaps_on_their_way_are_waited_for_however_long_and_whoever_is_canceled() -> None:
    case = Case()
    meeting = await case.meeting()
    case.catalog.swap_s["db.trains"] = MEET_S_MAX * 5
    waits, sends = case.come(meeting, 0), case.come(meeting, 1)
    await asyncio.sleep(MEET_S_MAX * 3)
    meeting.break_up()
    assert not waits.done()
    sends.cancel()
    await asyncio.sleep(1.0)
    assert not sends.done()
    with pytest.raises(asyncio.CancelledError):
        await sends
    assert isinstance(await waits, Unknown)
    assert await case.moved() == [True, True]
