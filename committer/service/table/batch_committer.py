"""One attempt at an in-flight batch: plan → write in parallel → swap → act on one of four answers.

`Conflict`, `Rejected` and `Unknown` take the same road: forget the base, and the next round finds
out. An attempt whose answer is lost is conditional on its base, exactly like the next one:
whichever lands, the other cannot.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import assert_never

from committer.errors import CatalogUnavailableError, FrazilError
from committer.plan.commit.attempt_log import AttemptLog
from committer.plan.commit.commit import CommitPlan
from committer.plan.commit.landed_commit import (
    CONFLICT,
    UNKNOWN,
    CommitObserver,
    LandedCommit,
)
from committer.plan.commit.operation_step import InConflict
from committer.plan.ledger.state import TableState
from committer.ports.catalog import Catalog
from committer.ports.pointer_swap import (
    Committed,
    Conflict,
    LoadedTable,
    Rejected,
    SwapAnswer,
    Unknown,
)
from committer.ports.storage import Storage
from committer.reason import Reason
from committer.request.table_identifier import TableIdentifier
from committer.service.table.cached_table import CachedTable
from committer.service.table.commit_pacer import CommitPacer
from committer.service.table.commit_planner import CommitPlanner, PlanCrashedError
from committer.service.table.inflight_batch import BatchSelector, InflightBatch
from committer.service.tasks.recent_objects import TableObjects
from committer.service.tasks.steps import (
    create_all,
    history_bytes,
    off_loop_if_large,
    send_swap,
)
from committer.service.telemetry.log import log
from committer.service.telemetry.table_condition import TableCondition

# So many equal answers that tell nothing, on a table that has not moved, may be the batch's fault:
# some servers fail where they should refuse.
EQUAL_UNKNOWNS_MAX = 5
# An occasional lost answer is no condition to report; a catalog that never answers is.
UNKNOWN_SHOWN_AFTER = 3


@dataclass(eq=False)
class SwapSender:
    """Writes the files of an attempt, and records the answer to its swap in the attempt log."""

    identifier: TableIdentifier
    catalog: Catalog
    storage: Storage
    attempts: AttemptLog
    condition: TableCondition
    objects: TableObjects

    async def write(self, inflight: InflightBatch, plan: CommitPlan) -> None:
        """Write manifests that are not there yet,
        the list and the metadata file in one parallel round. Errors: those of the storage."""
        weight = history_bytes(plan.swap.metadata)
        before = await off_loop_if_large(weight, self.catalog.objects_before, plan.swap)
        self.attempts.sending(plan, [created.location for created in before])
        fresh = [created for created in plan.objects if created.location not in inflight.written]
        await create_all(self.storage, (*fresh, *before))
        self.objects.written(fresh)
        inflight.written.update(created.location for created in fresh)
        inflight.metadata_bytes = sum(len(created.content) for created in before) or None

    def answered(self, answer: SwapAnswer, inflight: InflightBatch, plan: CommitPlan) -> None:
        """Record the answer to the swap of a plan that was written."""
        self.condition.answered(answer)
        about: dict[str, object] = {
            "table": str(self.identifier),
            "snapshot_id": plan.snapshot_id,
            "attempt": inflight.attempts,
            "requests": len(inflight.batch.requests),
        }
        match answer:
            case Committed():
                pass
            case Conflict():
                inflight.failures[CONFLICT] += 1
                self.attempts.refused(plan)
                log.info("commit.conflicted", **about)
            case Unknown(cause, crash):
                inflight.failures[UNKNOWN] += 1
                self.attempts.lost(plan)
                if crash is not None:
                    self.condition.swap_crashed(crash)
                log.warning("commit.unknown", cause=cause, **about)
                if inflight.attempts >= UNKNOWN_SHOWN_AFTER:
                    self.condition.unanswered(cause)
            case Rejected(reason):
                self.attempts.refused(plan)
                log.warning("commit.rejected", reason=reason, **about)
            case _:
                assert_never(answer)


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
    ) -> int:
        """Try to land it on this state. Return how many attempts to back off for; 0: for none.
        `known_before`: as of `plan`. Errors: those of the ports, where nothing was swapped.
        """
        inflight.attempts += 1
        if inflight.attempts == 1:
            inflight.started_ms, inflight.started_s = self.pacer.started()
        try:
            plan = await self.plan(inflight, state, known_before=known_before)
            if plan is None:
                return 0
            await self.sender.write(inflight, plan)
            answer = await send_swap(self.sender.catalog, plan.swap)
        except FrazilError as error:
            inflight.failures[type(error).__name__] += 1
            raise
        return self.answered(inflight, plan, answer)

    async def plan(
        self, inflight: InflightBatch, state: TableState, *, known_before: Set[str]
    ) -> CommitPlan | None:
        """Plan an attempt; None: a request is in conflict, or planning failed, and the batch is
        dropped. Errors: as `CommitPlanner.plan`.

        `known_before`: the keys of the requests that waited before the load of the state began. The
        state may lack what the client of any other request has read. A conflict of such a request
        proves nothing: the table is loaded, and planned again.
        """
        try:
            plan = await self.planner.plan(
                inflight.batch, inflight.prepared, inflight.upkeep, state, inflight.attempts
            )
        except PlanCrashedError as error:
            self.batches.crashed(inflight, error)
            return None
        if not isinstance(plan, InConflict):
            return plan
        if not plan.landed.keys() <= known_before:
            plan = InConflict({key: plan.landed[key] for key in plan.landed.keys() & known_before})
            self.cached_table.forget()
        self.batches.in_conflict(plan, self.cached_table.moves)
        return None

    def answered(self, inflight: InflightBatch, plan: CommitPlan, answer: SwapAnswer) -> int:
        """Act on the answer to a swap. Return how many attempts to back off for; 0: for none."""
        self.sender.answered(answer, inflight, plan)
        self.pacer.swapped()
        match answer:
            case Committed(table):
                self._landed(inflight, plan, table)
                return 0
            case Unknown(cause) if inflight.unanswered(cause, plan) >= EQUAL_UNKNOWNS_MAX:
                self.cached_table.forget()
                self.sender.condition.answered_alike(EQUAL_UNKNOWNS_MAX, cause)
                self.batches.set_apart(inflight, CatalogUnavailableError(cause))
                self._set_apart += 1
                return inflight.attempts + self._set_apart
            case Conflict() | Unknown():
                self.cached_table.forget()
                return inflight.attempts + self._set_apart
            case Rejected(reason):
                self.cached_table.forget()
                self.batches.isolate(inflight.batch.requests, (Reason.COMMIT_REJECTED, reason))
                return 0
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
            inflight.failures,
            inflight.started_ms,
            inflight.started_s,
            inflight.metadata_bytes,
        )
        for observer in self.observers:
            observer.landed(commit)
