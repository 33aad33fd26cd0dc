"""Turns of what few may use at once, in the order of fair queueing by producer."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from committer.plan.scheduling.fair_queue import FairQueue

T = TypeVar("T")


class Turns(Generic[T]):
    """Places that are lent, each to one caller at a time. A place may be there more than once."""

    def __init__(self, free: Iterable[T]) -> None:
        self._free = deque(free)
        self._turns = FairQueue[asyncio.Future[T]]()

    @asynccontextmanager
    async def turn(self, producer: str, cost: int) -> AsyncIterator[T]:
        """Wait for a place and have it inside."""
        place = await self._take(producer, cost)
        try:
            yield place
        finally:
            self._hand_on(place)

    async def _take(self, producer: str, cost: int) -> T:
        if self._free:
            # One that is idle, if there is one.
            place = max(self._free, key=self._free.count)
            self._free.remove(place)
            return place
        turn: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._turns.add(producer, cost, turn)
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._hand_on(turn.result())
            raise

    def _hand_on(self, place: T) -> None:
        while len(self._turns):
            turn = self._turns.take()
            if not turn.done():
                turn.set_result(place)
                return
        self._free.append(place)
