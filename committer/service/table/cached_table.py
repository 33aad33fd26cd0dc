"""The table as a committer last read or committed it: the base of its next attempt.

A base may be stale, which the swap finds out; only a fresh one ends a request without a commit. A
base that an attempt was sent on whose answer is lost is in doubt: that attempt may land yet.
"""

from __future__ import annotations

from collections.abc import Collection

from committer.plan.high_water_mark import HighWaterMark
from committer.plan.state import TableState
from committer.service.table.high_water_check import HighWaterCheck


class CachedTable:
    """The base of one table. `generation` counts its loads; `state`: None before the first."""

    def __init__(self, high_water_mark: HighWaterCheck) -> None:
        self._high_water_mark = high_water_mark
        self._is_current = False
        self._doubted: set[str] = set()
        self.state: TableState | None = None
        self.generation = 0

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
        self.state = state
        self._is_current = True
        self.generation += 1
        self._doubted &= {state.table.metadata_location}
        return state

    def forget(self) -> None:
        """Load the table before its next use: it may have moved."""
        self._is_current = False

    def landed(self, state: TableState, keys: Collection[str], *, is_as_planned: bool) -> None:
        """A commit of ours has led to this state, and changed these entries of the ledger."""
        self.state = state
        # The returned table may hold more than was planned: it counts as a load.
        self.generation += 0 if is_as_planned else 1
        self._doubted.clear()
        self._high_water_mark.landed(state, keys)

    # --- Doubt ---

    def doubt(self, metadata_location: str) -> None:
        """The answer to an attempt on this base is lost."""
        self._doubted.add(metadata_location)

    @property
    def has_doubts(self) -> bool:
        return bool(self._doubted)

    def is_doubted(self, state: TableState) -> bool:
        """Whether an earlier attempt may land on this very state."""
        return state.table.metadata_location in self._doubted
