"""One attempt at an in-flight batch: plan → write in parallel → swap → act on one of four answers.

`Conflict`, `Rejected` and `Unknown` take the same road: forget the base, and the next round finds
out. An attempt whose answer is lost is conditional on its base, exactly like the next one:
whichever lands, the other cannot.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import assert_never

from committer.errors import CatalogUnavailableError
from committer.plan.commit.commit import CommitPlan
from committer.plan.commit.landed_commit import CommitObserver, LandedCommit
from committer.plan.commit.operation_step import InConflict
from committer.plan.ledger.state import TableState
from committer.ports.pointer_swap import Committed, Conflict, LoadedTable, Rejected, Unknown
from committer.reason import Reason
from committer.service.table.cached_table import CachedTable
from committer.service.table.commit_pacer import CommitPacer
from committer.service.table.commit_planner import CommitPlanner, PlanCrashedError
from committer.service.table.inflight_batch import BatchSelector, InflightBatch
from committer.service.table.swap_sender import SwapSender

# So many equal answers that tell nothing, on a table that has not moved, may be the batch's fault:
# some servers fail where they should refuse.
EQUAL_UNKNOWNS_MAX = 5


@dataclass(eq=False)
class BatchCommitter:
    """Commits the batches of one table, one attempt a round. `observers`: told of each landed
    commit, in this order.
    """

    planner: CommitPlanner
    sender: SwapSender
    cached_table: CachedTable
    batches: BatchSelector
    pacer: CommitPacer
    observers: Sequence[CommitObserver]

    def __post_init__(self) -> None:
        # In a row: a catalog that is at fault for all batches is asked ever less often.
        self._set_apart = 0

    async def attempt(
        self, inflight: InflightBatch, state: TableState, *, known_before: Set[str]
    ) -> None:
        """Try to land it on this state. Errors: those of the ports, where nothing was swapped.

        `known_before`: the keys of the requests that waited before the load of the state began; of
        a state that was not loaded in this round, none. It may lack what the client of any other
        request has read. A conflict of such a one proves nothing: the table is loaded, and planned
        again.
        """
        inflight.attempts += 1
        if inflight.attempts == 1:
            inflight.started_ms = self.pacer.started()
        try:
            plan = await self.planner.plan(
                inflight.batch, inflight.prepared, inflight.upkeep, state, inflight.attempts
            )
        except PlanCrashedError as error:
            self.batches.crashed(inflight, error)
            return
        if isinstance(plan, InConflict) and not plan.landed.keys() <= known_before:
            proven = {key: one for key, one in plan.landed.items() if key in known_before}
            self.batches.in_conflict(InConflict(proven))
            self.cached_table.forget()
            return
        if isinstance(plan, InConflict):
            self.batches.in_conflict(plan)
            return
        answer = await self.sender.send(inflight, plan)
        self.pacer.swapped()
        match answer:
            case Committed(table):
                self._landed(inflight, plan, table)
            case Unknown(cause) if inflight.unanswered(cause, plan) >= EQUAL_UNKNOWNS_MAX:
                self.cached_table.forget()
                self.sender.condition.answered_alike(EQUAL_UNKNOWNS_MAX, cause)
                self.batches.set_apart(inflight, CatalogUnavailableError(cause))
                self._set_apart += 1
                await self.pacer.back_off(inflight.attempts + self._set_apart)
            case Conflict() | Unknown():
                self.cached_table.forget()
                await self.pacer.back_off(inflight.attempts + self._set_apart)
            case Rejected(reason):
                self.cached_table.forget()
                self.batches.isolate(inflight.batch.requests, (Reason.COMMIT_REJECTED, reason))
            case _:
                assert_never(answer)

    def _landed(self, inflight: InflightBatch, plan: CommitPlan, table: LoadedTable) -> None:
        self._set_apart = 0
        is_as_planned = table.metadata is plan.swap.metadata
        commit = LandedCommit(
            inflight.batch,
            plan,
            # The catalog may have chosen another name for the metadata file.
            replace(plan.state, table=table) if is_as_planned else TableState.of(table, plan.state),
            is_as_planned,
            inflight.attempts,
            inflight.started_ms,
            inflight.metadata_bytes,
        )
        for observer in self.observers:
            observer.landed(commit)
