"""The turn to commit to one table: its own round has it, or one transaction.

A round never waits for another table, and a transaction that has a turn in hand waits for the next
one for a bounded time only, so a table waits for at most one transaction at a time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager


class CommitTurn:
    """Given to one holder at a time. A round that waits is next after a transaction, and the
    transaction that has waited longest is next after a round.
    """

    def __init__(self) -> None:
        self._is_taken = False
        self._is_of_transaction = False
        self._rounds: deque[asyncio.Future[None]] = deque()
        self._transactions: deque[asyncio.Future[None]] = deque()

    @property
    def is_free(self) -> bool:
        return not self._is_taken

    @asynccontextmanager
    async def for_round(self) -> AsyncIterator[None]:
        """Have the turn for a round of the table itself."""
        await self._take(self._rounds, is_transaction=False)
        try:
            yield
        finally:
            self.give_back()

    async def take(self, *, has_others: bool = False) -> None:
        """Wait for the turn for a transaction, which gives it back. One that has the turns of other
        tables in hand is next, so that these wait less.
        """
        await self._take(self._transactions, is_transaction=True, is_next=has_others)

    async def _take(
        self,
        queue: deque[asyncio.Future[None]],
        *,
        is_transaction: bool,
        is_next: bool = False,
    ) -> None:
        if not self._is_taken:
            self._is_taken, self._is_of_transaction = True, is_transaction
            return
        turn = asyncio.get_running_loop().create_future()
        (queue.appendleft if is_next else queue.append)(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back()  # it was given at the same moment
            elif turn in queue:
                queue.remove(turn)
            raise

    def give_back(self) -> None:
        """Give the turn to the next one that waits."""
        first, second = self._rounds, self._transactions
        if not self._is_of_transaction:
            first, second = second, first
        for queue in (first, second):
            while queue:
                turn = queue.popleft()
                if not turn.done():
                    self._is_of_transaction = queue is self._transactions
                    turn.set_result(None)
                    return
        self._is_taken = False


async def take_turns(turns: Sequence[CommitTurn], wait_s_max: float) -> CommitTurn | None:
    """Take all turns in this order. The wait for the first has no bound, as nothing is in hand;
    each other wait has one. Return None with all turns in hand; or, with none in hand, the turn
    that did not come in time.
    """
    taken: list[CommitTurn] = []
    try:
        for turn in turns:
            async with asyncio.timeout(wait_s_max if taken else None):
                await turn.take(has_others=bool(taken))
            taken.append(turn)
    except TimeoutError:
        late = turns[len(taken)]
        give_back(taken)
        return late
    except BaseException:
        give_back(taken)
        raise
    return None


def give_back(turns: Sequence[CommitTurn]) -> None:
    """Give these turns back, the last one first."""
    for turn in reversed(turns):
        turn.give_back()
