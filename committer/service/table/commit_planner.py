"""Plans the attempts of one table: prepares a batch once, then plans each attempt at it.

An exception while planning is our bug: it is counted and logged, and must not stop other requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version

from committer.errors import FrazilError
from committer.ledger_entry import property_key
from committer.plan.batch.batch import (
    Batch,
    PreparedManifest,
    Step,
    prepare_manifests,
    snapshot_id_from,
)
from committer.plan.batch.request_check import CheckedRequest
from committer.plan.cleanup.maintenance import Upkeep
from committer.plan.commit.alter_commit import plan_alter_commit, table_to_write
from committer.plan.commit.commit import CommitPlan, NeedsObjects, Planning, plan_commit
from committer.plan.commit.operation_step import InConflict
from committer.plan.commit.staged_commit import plan_staged_commit
from committer.plan.commit.step_plan import Attempt
from committer.plan.ledger.state import TableState
from committer.plan.operations.batch_steps import Requests
from committer.ports.storage import Storage
from committer.ports.world import World
from committer.request.table_identifier import TableIdentifier
from committer.service.tasks.plan_reads import PlanReads
from committer.service.tasks.recent_objects import TableObjects
from committer.service.tasks.steps import (
    LISTED_BYTES,
    OFF_LOOP_BYTES,
    history_bytes,
    off_loop_if_large,
    weight_bytes,
)
from committer.service.telemetry.log import log
from committer.service.telemetry.metrics import Metrics
from committer.service.upkeep.ledger_upkeep import LedgerUpkeep

# In the summary of each snapshot.
_VERSION = version("frazil")


class PlanCrashedError(Exception):
    """The planner itself failed, with `cause`. Whether the table or a request is at fault is not
    known.
    """

    def __init__(self, cause: Exception) -> None:
        super().__init__(repr(cause))
        self.cause = cause


@dataclass(eq=False)
class CommitPlanner:
    """Plans for one table. `moves_head`: whether each change has to move the head of a branch, as
    the catalog checks nothing else.
    """

    identifier: TableIdentifier
    storage: Storage
    world: World
    metrics: Metrics
    ledger_upkeep: LedgerUpkeep
    objects: TableObjects
    moves_head: bool = False

    async def prepare(
        self, steps: Sequence[Requests], state: TableState
    ) -> tuple[Batch, tuple[PreparedManifest, ...]]:
        """Make a batch of these steps, with its manifests. Errors: `PlanCrashedError`."""
        named = tuple(Step(requests, self._new_snapshot_id(state)) for requests in steps)
        batch = Batch(named, self.world.uuid())
        weight = sum(one.weight_bytes for one in batch.requests)
        try:
            metadata = table_to_write(batch, state.metadata, now_ms=self.world.now_ms())
            prepared = await off_loop_if_large(weight, prepare_manifests, batch, metadata)
        except Exception as error:  # isolates the request that our own bug trips over
            raise self._crashed(batch.requests, error) from error
        return batch, prepared

    async def plan(
        self,
        batch: Batch,
        prepared: tuple[PreparedManifest, ...],
        upkeep: Upkeep,
        state: TableState,
        number: int,
    ) -> CommitPlan | InConflict:
        """Plan the attempt of this number. Errors: those of the storage; `InvalidMetadataError` for
        a table whose files do not exist; `PlanCrashedError`.
        """
        attempt = Attempt(number, self.world.uuid(), self.world.now_ms(), _VERSION)
        requests = (one.request for one in batch.requests)
        landing = dict.fromkeys(property_key(one.producer.id, one.branch) for one in requests)
        try:
            cleanup = self.ledger_upkeep.cleanup(state.ledger, landing)
            reads = self._reads(batch)
            planning = Planning(
                state, batch, prepared, attempt, cleanup, upkeep, changes=self.objects.changes
            )
            while True:
                plan = await off_loop_if_large(
                    self._weight_bytes(batch, state, reads),
                    self._plan_once,
                    replace(planning, objects=reads.at_hand),
                )
                if not isinstance(plan, NeedsObjects):
                    return plan
                await reads.fetch(plan.ranges)
        except FrazilError:
            raise
        except Exception as error:  # our bug must not stop the other requests
            raise self._crashed(batch.requests, error) from error

    def _plan_once(self, planning: Planning) -> CommitPlan | NeedsObjects | InConflict:
        if planning.batch.changes_table:
            plan = plan_alter_commit(planning, moves_head=self.moves_head)
            if plan is not None:
                return plan
        if planning.batch.is_staged:
            return plan_staged_commit(planning)
        return plan_commit(planning)

    def _reads(self, batch: Batch) -> PlanReads:
        looks = any(step.adopts or not step.is_append for step in batch.steps)
        return PlanReads(self.identifier, self.storage, self.objects.use() if looks else None)

    def _weight_bytes(self, batch: Batch, state: TableState, reads: PlanReads) -> int:
        """Return what a plan counts as: what it writes anew with each commit, and what it may
        decode. An append looks into what it asked for alone: a list of any number of rows, which
        took longer to read than a thread takes to begin."""
        if reads.read:
            return OFF_LOOP_BYTES
        listed = LISTED_BYTES * state.listed_count(batch.branch)
        decoded = 0 if reads.recent is None else weight_bytes(state.head_rows(batch.branch))
        return listed + history_bytes(state.metadata) + decoded

    def _crashed(self, requests: tuple[CheckedRequest, ...], error: Exception) -> PlanCrashedError:
        log.exception("plan.crashed", table=str(self.identifier), requests=len(requests))
        self.metrics.crashed("plan")
        return PlanCrashedError(error)

    def _new_snapshot_id(self, state: TableState) -> int:
        while True:
            snapshot_id = snapshot_id_from(self.world.uuid(), state.metadata)
            if snapshot_id is not None:
                return snapshot_id
