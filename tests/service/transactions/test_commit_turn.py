"""The turn of a table: its rounds and transactions have it one after the other, fairly."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from committer.service.transactions.commit_turn import CommitTurn, give_back, take_turns

VIRTUAL_TIME = True


class Log:
    """The holders of a turn, in order."""

    def __init__(self) -> None:
        self.turn = CommitTurn()
        self.holders: list[str] = []

    async def round(self, name: str, hold_s: float = 1.0) -> None:
        async with self.turn.for_round():
            self.holders.append(name)
            await asyncio.sleep(hold_s)

    async def transaction(self, name: str, hold_s: float = 1.0) -> None:
        await self.turn.take()
        self.holders.append(name)
        await asyncio.sleep(hold_s)
        self.turn.give_back()


async def test_a_round_waits_for_at_most_one_transaction() -> None:
    log = Log()
    transactions = [asyncio.create_task(log.transaction(f"t{number}")) for number in range(4)]
    await asyncio.sleep(0.5)
    for number in range(2):
        await log.round(f"round {number}")
    await asyncio.gather(*transactions)
    assert log.holders == ["t0", "round 0", "t1", "round 1", "t2", "t3"]
    assert log.turn.is_free


async def test_a_transaction_waits_for_at_most_one_round() -> None:
    log = Log()
    rounds = [asyncio.create_task(log.round(f"round {number}")) for number in range(3)]
    await asyncio.sleep(0.5)
    await log.transaction("t0")
    await asyncio.gather(*rounds)
    assert log.holders == ["round 0", "t0", "round 1", "round 2"]


@pytest.mark.parametrize("is_given", [False, True], ids=["while it waits", "as it is given"])
async def test_a_canceled_wait_keeps_no_turn(is_given: bool) -> None:
    log = Log()
    await log.turn.take()
    waiting = asyncio.create_task(log.turn.take())
    await asyncio.sleep(0)
    if is_given:
        log.turn.give_back()
    waiting.cancel()
    await asyncio.wait([waiting])
    if not is_given:
        log.turn.give_back()
    assert log.turn.is_free
    await log.round("round")


async def test_a_wait_with_a_turn_in_hand_is_bounded_and_ends_with_none_in_hand() -> None:
    first, late = CommitTurn(), CommitTurn()
    await late.take()
    assert await take_turns([first, late], wait_s_max=1.0) is late
    assert [turn.is_free for turn in (first, late)] == [True, False]


async def test_the_wait_for_the_first_turn_has_no_bound() -> None:
    first, second = CommitTurn(), CommitTurn()
    await first.take()
    asyncio.get_running_loop().call_later(50.0, first.give_back)
    assert await take_turns([first, second], wait_s_max=1.0) is None
    assert [turn.is_free for turn in (first, second)] == [False, False]
    give_back([first, second])
    assert [turn.is_free for turn in (first, second)] == [True, True]


async def test_transactions_in_opposite_orders_do_not_wait_for_each_other_for_long() -> None:
    turns, chance = [CommitTurn(), CommitTurn()], Random(7)

    async def commit(order: list[CommitTurn]) -> None:
        while await take_turns(order, wait_s_max=0.5 + chance.random() / 2) is not None:
            pass
        await asyncio.sleep(0.1)
        give_back(order)

    async with asyncio.timeout(60.0):
        await asyncio.gather(*(commit(turns[::step]) for step in (1, -1) for _ in range(5)))
    assert all(turn.is_free for turn in turns)
