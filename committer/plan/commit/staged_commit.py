"""The commit of a request whose snapshot gets no ref: it is staged, to be looked at and published
(`cherry_pick.py`).

Its producer's entry in the ledger names the head of the branch instead: a staged snapshot is no
ancestor of the branch, which would look like a rollback. The head stays as it is, and the swap
requires that, as no ref update says so to a catalog that checks requirements.
"""

from __future__ import annotations

from dataclasses import replace

from committer.iceberg.updates.metadata_update import AddSnapshot
from committer.iceberg.updates.requirement import AssertRefSnapshotId
from committer.ledger_entry import Landed
from committer.plan.batch.batch import Batch
from committer.plan.cleanup.maintenance import Upkeep
from committer.plan.commit.commit import CommitPlan, NeedsObjects, Planning, plan_commit
from committer.plan.commit.ledger_changes import change_ledger, landed_at
from committer.plan.commit.operation_step import InConflict
from committer.plan.commit.swap import plan_swap
from committer.plan.ledger.state import TableState
from committer.ports.pointer_swap import Swap


def plan_staged_commit(planning: Planning) -> CommitPlan | NeedsObjects | InConflict:
    """Plan one attempt at a batch whose snapshots are staged. It takes no upkeep along, which
    belongs to a branch."""
    plan = plan_commit(replace(planning, upkeep=Upkeep()))
    if not isinstance(plan, CommitPlan):
        return plan
    state, batch, attempt = planning.state, planning.batch, planning.attempt
    ledger = change_ledger(state, batch, _at_head(state, batch), plan.cleanup, attempt.now_ms)
    updates = (*(AddSnapshot(one) for one in plan.snapshots), *ledger.updates)
    swap = plan_swap(state.table, updates, uuid=attempt.metadata_uuid, now_ms=attempt.now_ms)
    return replace(
        plan,
        swap=_with_head(swap, batch.branch),
        upkeep=Upkeep(),
        state=TableState(swap.table, ledger.ledger, state.heads),
    )


def _at_head(state: TableState, batch: Batch) -> dict[str, Landed]:
    head = state.metadata.branch_head(batch.branch)
    return {one.request.inbox_key: landed_at(one.request, head) for one in batch.requests}


def _with_head(swap: Swap, branch: str) -> Swap:
    head = swap.base.metadata.branch_head(branch)
    unmoved = AssertRefSnapshotId(branch, None if head is None else head.snapshot_id)
    return replace(swap, requirements=(*swap.requirements, unmoved))
