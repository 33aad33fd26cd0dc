"""Calls at one time: several to be finished together, and those that come while one is under way,
which go together in the next, a group commit for back ends.

The latter costs a lone call nothing but a task; of many at a time each back end sees few. No timer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")


async def finish_all(calls: Iterable[Coroutine[object, object, Answer]]) -> list[Answer]:
    """Let every call end, then raise the first error, as an error must leave nothing under way; or
    return the answers, in the order of the calls.
    """
    answers: list[Answer] = []
    for answer in await asyncio.gather(*calls, return_exceptions=True):
        if isinstance(answer, BaseException):
            raise answer
        answers.append(answer)
    return answers


async def finish_in_turns(
    act: Callable[[Item], Awaitable[Answer]], items: Iterable[Item], *, at_once_max: int
) -> list[Answer]:
    """Act on every item, on some at once. Answers and errors as of `finish_all`."""
    turns = asyncio.Semaphore(at_once_max)

    async def in_turn(item: Item) -> Answer:
        async with turns:
            return await act(item)

    return await finish_all(map(in_turn, items))


class GroupCommit(Generic[Item, Answer]):
    """Hands the items of concurrent calls to `work` in groups, at most `lanes` groups at a time,
    each a fair share of what waits.

    `work` returns an answer or an exception for each item, in their order; an exception of its own
    is that of every item. A canceled call may still take effect.
    """

    def __init__(
        self,
        work: Callable[[Sequence[Item]], Awaitable[Sequence[Answer | Exception]]],
        *,
        lanes: int = 1,
        items_max: int = 256,
    ) -> None:
        self._work = work
        self._lanes = lanes
        self._items_max = items_max
        self._waiting: deque[tuple[Item, asyncio.Future[Answer]]] = deque()
        self._running: set[asyncio.Task[None]] = set()

    async def call(self, item: Item) -> Answer:
        """Return the answer for this item. Errors: whatever `work` says of it."""
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if len(self._running) < self._lanes:
            task = asyncio.create_task(self._drain())
            self._running.add(task)
        return await future

    async def _drain(self) -> None:
        try:
            while self._waiting:
                count = min(-(-len(self._waiting) // self._lanes), self._items_max)
                await self._serve([self._waiting.popleft() for _ in range(count)])
        finally:
            # Nothing is awaited between looking for more and this: a later call starts its own.
            task = asyncio.current_task()
            if task is not None:
                self._running.discard(task)

    async def _serve(self, group: Sequence[tuple[Item, asyncio.Future[Answer]]]) -> None:
        answers: Sequence[Answer | Exception]
        try:
            answers = await self._work([item for item, _ in group])
        except Exception as error:  # noqa: BLE001  # handed on to every caller
            answers = [error] * len(group)
        except BaseException:
            for _, future in group:
                future.cancel()
            raise
        for (_, future), answer in zip(group, answers, strict=True):
            if future.done():
                continue
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)
