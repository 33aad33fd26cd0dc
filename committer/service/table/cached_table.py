"""The table as a committer last read or committed it: the base of its next attempt.

A base may be stale, which the swap finds out; only a fresh one ends a request without a commit.
"""

from __future__ import annotations

from collections.abc import Collection

from committer.plan.attempt_log import AttemptLog
from committer.plan.high_water_mark import HighWaterMark
from committer.plan.state import TableState
from committer.service.table.high_water_check import HighWaterCheck


class CachedTable:
    """The base of one table. `generation` counts its loads."""

    def __init__(self, high_water_mark: HighWaterCheck, attempts: AttemptLog) -> None:
        self._high_water_mark = high_water_mark
        self._attempts = attempts
        self._is_current = False
        self.generation = 0

    @property
    def state(self) -> TableState | None:
        """The state, however old; None before the first load."""
        return self._attempts.state

    @property
    def usable(self) -> TableState | None:
        """The state, unless something has shown that it is stale: then it is to be loaded."""
        return self.state if self._is_current and not self._high_water_mark.is_void else None

    @property
    def known(self) -> HighWaterMark:
        """The high-water mark of everything that the table has shown so far."""
        return self._high_water_mark.known

    async def load(self) -> TableState:
        """Load the table. Errors: as `HighWaterCheck.load`."""
        state = await self._high_water_mark.load(self.state)
        self._attempts.loaded(state)
        self._is_current = True
        self.generation += 1
        return state

    def forget(self) -> None:
        """Load the table before its next use: it may have moved."""
        self._is_current = False

    def landed(self, state: TableState, keys: Collection[str], *, is_as_planned: bool) -> None:
        """A commit of ours has led to this state, and changed these entries of the ledger."""
        self._attempts.landed(state)
        # The returned table may hold more than was planned: it counts as a load.
        self.generation += 0 if is_as_planned else 1
        self._high_water_mark.landed(state, keys)
