"""The table as a committer last read or committed it: the base of its next attempt.

A base may be stale, which the swap finds out; only a fresh one ends a request without a commit.
"""

from __future__ import annotations

from dataclasses import dataclass

from committer.plan.commit.attempt_log import AttemptLog
from committer.plan.commit.landed_commit import LandedCommit
from committer.plan.ledger.high_water_mark import HighWaterMark
from committer.plan.ledger.state import TableState
from committer.service.requests.pending import Waiting
from committer.service.settle.high_water_check import HighWaterCheck
from committer.service.table.commit_pacer import CommitPacer
from committer.service.upkeep.table_upkeep import TableUpkeep


@dataclass(eq=False)
class CachedTable:
    """The base of one table. `generation` counts its loads, `moves` the commits to it: those of
    this committer, and the loads that showed commits of others.
    """

    high_water_mark: HighWaterCheck
    attempts: AttemptLog
    waiting: Waiting
    pacer: CommitPacer
    upkeep: TableUpkeep

    def __post_init__(self) -> None:
        self._is_current = False
        self.generation = 0
        self.moves = 0

    @property
    def state(self) -> TableState | None:
        """The state, however old; None before the first load."""
        return self.attempts.state

    @property
    def is_in_catalog(self) -> bool:
        """Whether the catalog has shown such a table, also if it lacks a known commit."""
        return self.high_water_mark.has_loaded

    @property
    def usable(self) -> TableState | None:
        """The state, unless something has shown that it is stale: then it is to be loaded."""
        return self.state if self._is_current and not self.high_water_mark.is_void else None

    @property
    def known(self) -> HighWaterMark:
        """The high-water mark of everything that the table has shown so far."""
        return self.high_water_mark.known

    @property
    def is_in_doubt(self) -> bool:
        """Whether an attempt whose answer was lost may land on the state yet."""
        return self.attempts.has_lost

    async def load(self) -> TableState:
        """Load the table. Errors: as `HighWaterCheck.load`."""
        before, decided = self.state, self.known.decided
        present = list(self.waiting.all())
        state = await self.high_water_mark.load(before)
        self.attempts.loaded(state)
        self._is_current = True
        self.generation += 1
        self.waiting.loaded(present, self.generation)
        if before is None or before.table.metadata_location != state.table.metadata_location:
            self.moves += 1
        if self.known.decided > decided:
            self.waiting.share_all()
        self.pacer.saw(before, state.table)
        self.upkeep.loaded()
        return state

    def forget(self) -> None:
        """Load the table before its next use: it may have moved."""
        self._is_current = False

    def landed(self, commit: LandedCommit) -> None:
        """Note a commit that has led to its state, and changed entries of the ledger."""
        self.attempts.landed(commit.state)
        self.moves += 1
        # The returned table may hold more than was planned: it counts as a load.
        self.generation += 0 if commit.is_as_planned else 1
        self.high_water_mark.landed(commit.state, commit.ledger_keys)
        if not commit.is_as_planned and self.high_water_mark.lacks(commit.state):
            self.forget()  # the next load says what is missing, and stops the table
