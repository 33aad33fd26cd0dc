from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from committer.group_commit import GroupCommit


class Server:
    """Answers each item with its double; waits at a gate; refuses odd items by name."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.gate = asyncio.Event()
        self.is_down = False

    async def work(self, items: Sequence[int]) -> list[int | Exception]:
        self.groups.append(list(items))
        await self.gate.wait()
        if self.is_down:
            raise ConnectionError("down")
        return [ValueError(f"{item} is odd") if item % 2 else item * 2 for item in items]


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_what_comes_while_a_call_is_under_way_goes_together() -> None:
    server = Server()
    together = GroupCommit(server.work)
    calls = [asyncio.create_task(together.call(0))]
    await settle()
    calls += [asyncio.create_task(together.call(number)) for number in (2, 4, 6)]
    await settle()
    assert server.groups == [[0]]
    server.gate.set()
    assert await asyncio.gather(*calls) == [0, 4, 8, 12]
    assert server.groups == [[0], [2, 4, 6]]
    assert await together.call(8) == 16


async def test_lanes_and_the_size_of_a_group_are_bounded() -> None:
    server = Server()
    together = GroupCommit(server.work, lanes=2, items_max=3)
    calls = []
    for number in range(0, 20, 2):
        calls.append(asyncio.create_task(together.call(number)))
        await settle()
    assert server.groups == [[0], [2]]
    server.gate.set()
    assert await asyncio.gather(*calls) == [number * 2 for number in range(0, 20, 2)]
    assert max(map(len, server.groups)) == 3


async def test_each_call_gets_its_own_error() -> None:
    server = Server()
    server.gate.set()
    together = GroupCommit(server.work)
    answers = await asyncio.gather(
        *(together.call(number) for number in range(4)), return_exceptions=True
    )
    assert [answers[0], answers[2]] == [0, 4]
    assert [str(answers[1]), str(answers[3])] == ["1 is odd", "3 is odd"]
    server.is_down = True
    with pytest.raises(ConnectionError, match="down"):
        await together.call(2)


async def test_a_canceled_call_takes_nothing_from_the_others() -> None:
    server = Server()
    together = GroupCommit(server.work)
    first, second = (asyncio.create_task(together.call(number)) for number in (2, 4))
    await settle()
    first.cancel()
    await settle()
    server.gate.set()
    assert await second == 8
    assert first.cancelled()
