"""Collects the swaps of one transaction, each from its table's round, and hands out their answer.

The last table to arrive sends all swaps. Before that nothing is sent, so an attempt whose meeting
is broken up surely never lands, and every table is answered so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import assert_never
from uuid import UUID

from committer.errors import FrazilError
from committer.ports.catalog import Catalog
from committer.ports.pointer_swap import (
    Committed,
    Conflict,
    GroupAnswer,
    GroupCommitted,
    GroupConflict,
    Rejected,
    Swap,
    SwapAnswer,
    Unknown,
)
from committer.service.tasks.steps import send_swaps

# Enough for a table to finish its current attempt and its gap for other engines.
MEET_S_MAX = 60.0


class Meeting:
    """One attempt of a transaction: a swap for each of its tables, in their order."""

    def __init__(self, tables: Sequence[UUID]) -> None:
        self._tables = tuple(tables)
        self._swaps: dict[UUID, Swap] = {}
        self._is_sent = False
        # None: broken up before anything was sent.
        self._answer: asyncio.Future[GroupAnswer | FrazilError | None] = (
            asyncio.get_running_loop().create_future()
        )

    @property
    def is_over(self) -> bool:
        return self._answer.done()

    @property
    def is_broken_up(self) -> bool:
        """Whether it ended before anything was sent."""
        return self._answer.done() and self._answer.result() is None

    async def swap(self, catalog: Catalog, table_uuid: UUID, swap: Swap) -> SwapAnswer:
        """Come with a table's swap, and return its answer. Errors: as `Catalog.swap_together`."""
        self._swaps[table_uuid] = swap
        if len(self._swaps) == len(self._tables):
            await self._send(catalog)
        else:
            await self._wait()
        return self._answer_for(table_uuid)

    def break_up(self) -> None:
        """End the meeting, unless its swaps are on their way."""
        if not self._is_sent and not self._answer.done():
            self._answer.set_result(None)

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(MEET_S_MAX):
                await asyncio.shield(self._answer)
        except TimeoutError:
            self.break_up()
            await asyncio.shield(self._answer)
        except asyncio.CancelledError:
            self.break_up()
            raise

    async def _send(self, catalog: Catalog) -> None:
        self._is_sent = True
        outcome: GroupAnswer | FrazilError = Unknown("stopped before the answer came")
        try:
            outcome = await send_swaps(catalog, [self._swaps[table] for table in self._tables])
        except FrazilError as error:
            outcome = error
        finally:
            self._answer.set_result(outcome)

    def _answer_for(self, table_uuid: UUID) -> SwapAnswer:
        match self._answer.result():
            case GroupCommitted(tables):
                return Committed(tables[self._tables.index(table_uuid)])
            case None | GroupConflict():
                return Conflict()
            case Rejected() | Unknown() as answer:
                return answer
            case FrazilError() as error:
                raise error
            case other:
                assert_never(other)
