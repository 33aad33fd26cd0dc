"""Turns of what few may use at once, in the order of fair queueing by table and producer."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from committer.plan.scheduling.fair_queue import TableFairQueue
from committer.service.requests.inbox_keys import table_folder_of

T = TypeVar("T")


class Turns(Generic[T]):
    """Places that are lent, each to one caller at a time. A place may be there more than once."""

    def __init__(self, free: Iterable[T]) -> None:
        self._free = deque(free)
        self._turns = TableFairQueue[asyncio.Future[T]]()

    @asynccontextmanager
    async def turn(self, folder: str, cost: int) -> AsyncIterator[T]:
        """Wait for a place and have it inside. `folder`: that of the producer's inbox keys."""
        place = await self._take(folder, cost)
        try:
            yield place
        finally:
            self._hand_on(place)

    async def _take(self, folder: str, cost: int) -> T:
        if self._free:
            # One that is idle, if there is one.
            place = max(self._free, key=self._free.count)
            self._free.remove(place)
            return place
        turn: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._turns.add(table_folder_of(folder), folder, cost, turn)
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
