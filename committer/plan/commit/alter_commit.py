"""The commit of a request that moves refs or changes the table: an `alter`, a cherry-pick of a
snapshot that follows the head, or an append that brings the columns along which its files need.

Without files it makes no snapshot where the whole metadata file is the condition of the swap. A
catalog that checks requirements would let two such changes of one base pass, each with a ledger
that lacks the other's entry: there the request's branch moves too, by a snapshot that adds nothing,
unless the change moves it itself (see `head_move.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.updates.metadata_update import (
    RemoveSnapshotRef,
    SetSnapshotRef,
    Update,
    apply_updates,
)
from committer.plan.batch.batch import Batch, PreparedManifest
from committer.plan.cleanup.maintenance import Upkeep
from committer.plan.commit.commit import CommitPlan, NeedsObjects, base_head, plan_commit
from committer.plan.commit.ledger_changes import LedgerCleanup, change_ledger, landed_at
from committer.plan.commit.operation_step import InConflict, readable
from committer.plan.commit.step_plan import Attempt, moved_ref
from committer.plan.commit.swap import plan_swap
from committer.plan.ledger.state import TableState
from committer.plan.operations.alter import plan_alter
from committer.plan.operations.cherry_pick import MoveHead, plan_pick
from committer.plan.operations.conflict import Conflict
from committer.plan.operations.head import Head, MissingObjectsError, ObjectsAtHand
from committer.request.commit_request import CommitRequest


@dataclass(frozen=True, slots=True)
class _Planning:
    """One attempt at a batch of one request. `moves_head`: whether the catalog checks the heads of
    branches alone."""

    state: TableState
    batch: Batch
    prepared: tuple[PreparedManifest, ...]
    attempt: Attempt
    cleanup: LedgerCleanup
    objects: ObjectsAtHand
    moves_head: bool

    @property
    def request(self) -> CommitRequest:
        return self.batch.requests[0].request


def plan_alter_commit(
    state: TableState,
    batch: Batch,
    prepared: tuple[PreparedManifest, ...],
    attempt: Attempt,
    cleanup: LedgerCleanup,
    objects: ObjectsAtHand,
    *,
    moves_head: bool,
) -> CommitPlan | NeedsObjects | InConflict | None:
    """Plan one attempt at a batch of one such request; None if it has to write files after all.

    `moves_head`: whether the catalog checks the heads of branches alone.
    """
    planning = _Planning(state, batch, prepared, attempt, cleanup, objects, moves_head)
    request = planning.request
    if request.operation == "cherry-pick":
        return _plan_pick(planning)
    updates = plan_alter(request.changes, state.metadata, request.branch, now_ms=attempt.now_ms)
    if isinstance(updates, Conflict):
        return InConflict({batch.requests[0].sealed.key: updates})
    return _commit(planning, updates)


def table_to_write(batch: Batch, metadata: TableMetadata, *, now_ms: int) -> TableMetadata:
    """Return the table that the files of a batch are written for: with the columns that its request
    adds."""
    if not batch.changes_table or not batch.steps[0].is_append:
        return metadata
    request = batch.requests[0].request
    updates = plan_alter(request.changes, metadata, request.branch, now_ms=now_ms)
    if isinstance(updates, Conflict):
        return metadata
    return apply_updates(metadata, updates, base_location=None, now_ms=now_ms)


def _plan_pick(planning: _Planning) -> CommitPlan | NeedsObjects | InConflict | None:
    branch = planning.request.branch
    head = base_head(planning.state, branch, planning.objects, {})
    if not isinstance(head, Head):
        return head
    try:
        picked = readable(partial(plan_pick, planning.request.needs, head))
    except MissingObjectsError as missing:
        return NeedsObjects(missing.needs)
    if not isinstance(picked, MoveHead):
        return None
    ref = moved_ref(head.metadata, branch, picked.snapshot)
    return _commit(planning, (SetSnapshotRef(branch, ref),))


def _commit(
    planning: _Planning, updates: Sequence[Update]
) -> CommitPlan | NeedsObjects | InConflict:
    altered, request = _altered(planning, updates), planning.request
    is_append = request.operation == "append"
    if is_append or (planning.moves_head and not _moves(updates, request.branch)):
        return _with_snapshot(planning, altered, updates)
    # It has no snapshot: it landed with the head that its branch has then.
    landed = {request.inbox_key: landed_at(request, altered.metadata.branch_head(request.branch))}
    cleanup = planning.cleanup.of_branch(request.branch)
    ledger = change_ledger(altered, planning.batch, landed, cleanup, planning.attempt.now_ms)
    swap = plan_swap(
        planning.state.table,
        (*updates, *ledger.updates),
        uuid=planning.attempt.metadata_uuid,
        now_ms=planning.attempt.now_ms,
    )
    # A rollback freezes producers: the ledger is read again.
    after = TableState.of(swap.table, planning.state)
    return CommitPlan(swap, (), (), landed, cleanup, Upkeep(), after, {})


def _altered(planning: _Planning, updates: Sequence[Update]) -> TableState:
    """Return the table after the change alone."""
    table = planning.state.table
    metadata = apply_updates(
        table.metadata, updates, base_location=None, now_ms=planning.attempt.now_ms
    )
    return TableState.of(replace(table, metadata=metadata), planning.state)


def _moves(updates: Sequence[Update], branch: str) -> bool:
    return any(
        isinstance(one, SetSnapshotRef | RemoveSnapshotRef) and one.ref_name == branch
        for one in updates
    )


def _with_snapshot(
    planning: _Planning, altered: TableState, updates: Sequence[Update]
) -> CommitPlan | NeedsObjects | InConflict:
    """Plan the change together with a snapshot, which adds the files of the request, or nothing, on
    the table after it."""
    attempt, table = planning.attempt, planning.state.table
    plan = plan_commit(
        altered,
        planning.batch,
        planning.prepared,
        attempt,
        planning.cleanup,
        objects=planning.objects,
    )
    if not isinstance(plan, CommitPlan):
        return plan
    swap = plan_swap(
        table,
        (*updates, *plan.swap.updates),
        uuid=attempt.metadata_uuid,
        now_ms=attempt.now_ms,
    )
    return replace(plan, swap=swap, state=replace(plan.state, table=swap.table))
