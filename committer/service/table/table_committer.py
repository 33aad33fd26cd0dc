"""One task for one table: gathers its requests, and lands them with one swap after another."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from uuid import UUID

from committer.errors import FrazilError, InvariantError, TableFrozenError, TransientError
from committer.plan.ledger.state import TableState
from committer.plan.scheduling.backoff import backoff_s
from committer.request.table_identifier import TableIdentifier
from committer.service.requests.pending import FAULT_PAUSE_S, Pending, Waiting
from committer.service.table.commit_pacer import CommitPacer
from committer.service.table.eviction import Eviction
from committer.service.table.table_rounds import TableRounds
from committer.service.telemetry.lag import DurableByCause, LagCause
from committer.service.telemetry.log import log
from committer.service.telemetry.table_condition import TableCondition
from committer.service.upkeep.ledger_upkeep import LedgerUpkeep
from committer.service.upkeep.table_upkeep import TableUpkeep

IDLE_S_MAX = 600.0
NO_TABLE_S_MAX = 1.0
STUCK_S_MAX = 30.0
# How soon a table that an operator has accepted, or put right, is found to be.
FROZEN_PAUSE_S = 5.0
# For how long a table commits nothing so that another committer's transaction gets through: far
# less than a lease, after which another committer may own the table.
YIELD_S_MAX = 2.0


@dataclass(eq=False)
class TableCommitter:
    """Commits the requests of one table (name and uuid), one attempt at a time."""

    identifier: TableIdentifier
    table_uuid: UUID
    waiting: Waiting
    rounds: TableRounds
    eviction: Eviction
    pacer: CommitPacer
    condition: TableCondition
    upkeep: TableUpkeep

    def __post_init__(self) -> None:
        self._yielding: asyncio.Task[None] | None = None

    # --- What others see ---

    def submit(self, pending: Pending) -> None:
        """Add a request, or another copy of one that waits."""
        if pending.sealed.request.transaction is None:
            self.waiting.add(pending)
        else:
            self.rounds.part.add(pending)

    def stop(self) -> None:
        """End after the current attempt; waiting requests stay unacknowledged."""
        self.pacer.stop()
        self.rounds.part.stop()
        self.waiting.changed.set()

    def yield_turn(self) -> None:
        """Commit nothing for a moment: a transaction that another committer decides has met a
        conflict on this table again and again.
        """
        if self._yielding is None or self._yielding.done():
            self._yielding = asyncio.create_task(self._yield_turn())

    async def _yield_turn(self) -> None:
        turn = self.rounds.part.turn
        await turn.take()
        try:
            if self.state is not None and await self.pacer.wait_for_move(self.state, YIELD_S_MAX):
                self.rounds.cached_table.forget()
        except FrazilError as error:
            # The next round finds out, and reports it.
            log.debug("table.yield_failed", table=str(self.identifier), error=str(error))
        finally:
            turn.give_back()

    @property
    def is_stopping(self) -> bool:
        return self.pacer.is_stopping

    @property
    def is_gone(self) -> bool:
        """Whether the catalog had no such table when it was asked last."""
        return self.rounds.is_gone

    @property
    def is_stuck(self) -> bool:
        """Whether it has made no progress for a while: it is frozen, or its servers fail."""
        return self.condition.is_stuck

    def oldest_ms(self) -> DurableByCause:
        """Return since when the oldest request of each cause has been durable. While the whole
        table is held or unavailable, no request merely waits.
        """
        oldest, cause = self.waiting.oldest_ms(), self.condition.lag_cause
        waiting_ms = oldest.pop(LagCause.WAITING, None)
        if waiting_ms is not None:
            cause = cause or LagCause.WAITING
            oldest[cause] = min(oldest.get(cause, waiting_ms), waiting_ms)
        return oldest

    @property
    def state(self) -> TableState | None:
        """The table as last loaded or committed; None before the first round."""
        return self.rounds.cached_table.state

    @property
    def is_in_catalog(self) -> bool:
        """Whether the catalog has shown it: a frozen table has no state, but is there."""
        return self.rounds.cached_table.is_in_catalog

    @property
    def generation(self) -> int:
        """How often the state was loaded."""
        return self.rounds.cached_table.generation

    @property
    def ledger_upkeep(self) -> LedgerUpkeep:
        """The clean-up of its ledger, which its commits include."""
        return self.upkeep.ledger

    # --- The loop ---

    async def run(self) -> None:
        """Work until stopped, or until idle for long."""
        if not self.is_stopping:
            self.rounds.part.start()
        try:
            await self._work_on()
        finally:
            self.rounds.part.stop()
            if self._yielding is not None:
                self._yielding.cancel()
            # A transaction that has the turn ends its attempt first.
            async with self.rounds.part.turn.for_round():
                # The table's next committer reports its condition.
                self.condition.clear()
                self.eviction.close()
                await self.rounds.close()
                await self.upkeep.close()

    async def _work_on(self) -> None:
        while await self._wait_for_work():
            try:
                is_turn = await self._wait_for_turn()
                async with self.rounds.part.turn.for_round():
                    attempts = await self.rounds.run_one(is_turn=is_turn)
                self.condition.recovered(is_sure=not self.rounds.cached_table.is_in_doubt)
                if attempts:
                    await self.pacer.back_off(attempts)
            except TransientError as error:
                delay_s = backoff_s(self.condition.failures, 1.0)
                self.condition.failed("unavailable", error)
                await self._pause(delay_s)
            except TableFrozenError as error:
                await self._freeze(error)
            except FrazilError as error:
                if isinstance(error, InvariantError):
                    self.rounds.batches.drop()
                self.condition.failed("misconfigured", error)
                await self._pause(FAULT_PAUSE_S)
            except Exception as error:  # noqa: BLE001  # our bug: keep the evidence, go on later
                self.rounds.batches.drop()
                self.condition.crashed(error)
                await self._pause(FAULT_PAUSE_S)

    async def _wait_for_work(self) -> bool:
        while not self.is_stopping:
            next_s = self.waiting.recall()
            self.eviction.evict_blocked(is_stuck=self.is_stuck)
            if self.waiting.has_ready:
                return True
            self.waiting.changed.clear()
            try:
                async with asyncio.timeout(self._idle_s_max if next_s is None else next_s):
                    await self.waiting.changed.wait()
            except TimeoutError:
                if not self.waiting:
                    return False
        return False

    @property
    def _idle_s_max(self) -> float:
        """How long to idle before the committer ends. One for a name without a table ends soon; a
        stuck table, for which large requests wait in the inbox, is retried.
        """
        if self.is_stuck:
            return STUCK_S_MAX
        is_there = self.state is not None and self.state.metadata.table_uuid == self.table_uuid
        return IDLE_S_MAX if is_there else NO_TABLE_S_MAX

    async def _wait_for_turn(self) -> bool:
        """Wait until the next commit may start. False if it may not: a request of a transaction has
        come, and joins it in a round before that, as other tables may wait for it.
        """
        if self.rounds.batches.are_urgent:
            return True
        if not await self.pacer.wait(self.state):
            self.rounds.cached_table.forget()
        return self.pacer.is_turn

    async def _freeze(self, error: TableFrozenError) -> None:
        """Keep the requests waiting, and stop upkeep, until the table is healthy again."""
        self.condition.frozen(error)
        self.waiting.share_all()
        await self.upkeep.close()
        await self._pause(FROZEN_PAUSE_S)

    async def _pause(self, delay_s: float) -> None:
        self.rounds.cached_table.forget()
        await self.pacer.pause(delay_s)
