"""The commit of a request that moves refs or changes the table: an `alter`, a cherry-pick of a
snapshot that follows the head, or one that brings the columns along which its files need.

Without files it makes no snapshot where the whole metadata file is the condition of the swap. A
catalog that checks requirements would let two such changes of one base pass, each with a ledger
that lacks the other's entry: there the request's branch moves too, by a snapshot that adds nothing,
unless the change moves it itself (see `head_move.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.updates.metadata_update import (
    RemoveSnapshotRef,
    SetSnapshotRef,
    Update,
    apply_updates,
)
from committer.plan.batch.batch import Batch
from committer.plan.cleanup.maintenance import Upkeep
from committer.plan.commit.commit import (
    CommitPlan,
    NeedsObjects,
    Planning,
    base_head,
    plan_commit,
)
from committer.plan.commit.ledger_changes import change_ledger, landed_at
from committer.plan.commit.operation_step import InConflict, readable
from committer.plan.commit.step_plan import moved_ref
from committer.plan.commit.swap import plan_swap
from committer.plan.ledger.state import TableState
from committer.plan.operations.alter import plan_alter
from committer.plan.operations.cherry_pick import MoveHead, plan_pick
from committer.plan.operations.conflict import Conflict
from committer.plan.operations.head import Head, MissingObjectsError
from committer.request.commit_request import CommitRequest

_WITHOUT_FILES = frozenset({"alter", "cherry-pick"})


def plan_alter_commit(
    planning: Planning, *, moves_head: bool
) -> CommitPlan | NeedsObjects | InConflict | None:
    """Plan one attempt at a batch of one such request; None if it has to write files after all. It
    takes no upkeep along.

    `moves_head`: whether the catalog checks the heads of branches alone.
    """
    checked = planning.batch.requests[0]
    request = checked.request
    updates = _updates(planning, request)
    if isinstance(updates, Conflict):
        return InConflict({checked.sealed.key: updates})
    if updates is None or isinstance(updates, NeedsObjects):
        return updates
    adds_files = request.operation not in _WITHOUT_FILES
    if adds_files or (moves_head and not _moves(updates, request.branch)):
        return _with_snapshot(planning, updates)
    return _without_snapshot(planning, request, updates)


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


def _updates(
    planning: Planning, request: CommitRequest
) -> tuple[Update, ...] | NeedsObjects | Conflict | None:
    """Return the changes of the table. None: it picks a snapshot that does not follow the head."""
    if request.operation != "cherry-pick":
        metadata, now_ms = planning.state.metadata, planning.attempt.now_ms
        return plan_alter(request.changes, metadata, request.branch, now_ms=now_ms)
    head = base_head(planning)
    if not isinstance(head, Head):
        return head
    try:
        picked = readable(partial(plan_pick, request.needs, head))
    except MissingObjectsError as missing:
        return NeedsObjects(missing.needs)
    if not isinstance(picked, MoveHead):
        return None
    ref = moved_ref(head.metadata, request.branch, picked.snapshot)
    return (SetSnapshotRef(request.branch, ref),)


def _without_snapshot(
    planning: Planning, request: CommitRequest, updates: Sequence[Update]
) -> CommitPlan:
    """Plan the change alone: it lands with the head that its branch has then."""
    altered = _altered(planning, updates)
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


def _altered(planning: Planning, updates: Sequence[Update]) -> TableState:
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
    planning: Planning, updates: Sequence[Update]
) -> CommitPlan | NeedsObjects | InConflict:
    """Plan the change together with a snapshot, of what the request does with files, or of nothing,
    on the table after it."""
    plan = plan_commit(replace(planning, state=_altered(planning, updates), upkeep=Upkeep()))
    if not isinstance(plan, CommitPlan):
        return plan
    swap = plan_swap(
        planning.state.table,
        (*updates, *plan.swap.updates),
        uuid=planning.attempt.metadata_uuid,
        now_ms=planning.attempt.now_ms,
    )
    return replace(plan, swap=swap, state=replace(plan.state, table=swap.table))
