"""Plans everything that one attempt writes, from a batch and the table's state.

Each attempt is planned anew from the state that its swap is conditional on. The steps of the batch
are planned one after another, each on the branch as the step before leaves it; one swap lands them
all. The planner asks for bytes as a value (`NeedsObjects`) and is called again with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from committer.errors import InvalidMetadataError
from committer.iceberg.metadata.snapshot import MAIN, Snapshot
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.updates.metadata_update import (
    AddSnapshot,
    SetSnapshotRef,
    Update,
)
from committer.ledger_entry import Landed
from committer.plan.batch.batch import Batch, PreparedManifest, Step
from committer.plan.cleanup.automatic_tags import due_tag
from committer.plan.cleanup.expiry import ExpiredSnapshots, applicable_expiry
from committer.plan.cleanup.maintenance import MergedManifests, Upkeep, applicable_merges
from committer.plan.commit.append_step import produce_append
from committer.plan.commit.ledger_changes import (
    LedgerChanges,
    LedgerCleanup,
    change_ledger,
    landed_at,
)
from committer.plan.commit.operation_step import (
    InConflict,
    produce_operations,
    refuse_base,
    refuse_live,
)
from committer.plan.commit.step_plan import (
    Attempt,
    StepPlan,
    head_after,
    moved_ref,
    names_of,
    plan_step,
)
from committer.plan.commit.swap import plan_swap
from committer.plan.ledger.state import ListedManifest, TableState
from committer.plan.operations.change_index import Changes
from committer.plan.operations.head import (
    Head,
    MissingObjectsError,
    ObjectRange,
    Objects,
    ObjectsAtHand,
)
from committer.plan.operations.step_output import Produced, StepNames
from committer.ports.pointer_swap import Swap
from committer.ports.storage import NewObject


@dataclass(frozen=True, slots=True)
class Planning:
    """All that one attempt is planned from.

    `prepared`: the manifests of the batch's appends. `upkeep`: what background work has finished;
    what no longer applies to this base is left out. `objects`: what was read, for this plan or an
    earlier one; `changes`: those of earlier commits.
    """

    state: TableState
    batch: Batch
    prepared: tuple[PreparedManifest, ...]
    attempt: Attempt
    cleanup: LedgerCleanup
    upkeep: Upkeep = field(default_factory=Upkeep)
    objects: ObjectsAtHand = field(default_factory=Objects)
    changes: Changes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NeedsObjects:
    """The plan needs these bytes: read them, and plan again with them."""

    ranges: frozenset[ObjectRange]


@dataclass(frozen=True, slots=True)
class CommitPlan:
    """The objects that an attempt writes in parallel, the swap after them, and the state after it.

    `snapshots`: those of its steps, a chain, none of a change without files; `changes`: what each
    of them changes. `landed` is keyed by inbox key. `cleanup` and `upkeep` become part of this
    commit.
    """

    swap: Swap
    objects: tuple[NewObject, ...]
    snapshots: tuple[Snapshot, ...]
    landed: Mapping[str, Landed]
    cleanup: LedgerCleanup
    upkeep: Upkeep
    state: TableState
    changes: Changes

    @property
    def snapshot(self) -> Snapshot:
        """The newest of its snapshots: the branch's head after it."""
        return self.snapshots[-1]

    @property
    def snapshot_id(self) -> int | None:
        """The id of the newest; None if it adds none."""
        return self.snapshots[-1].snapshot_id if self.snapshots else None

    @property
    def manifest_lists(self) -> tuple[str, ...]:
        return tuple(one.manifest_list for one in self.snapshots if one.manifest_list)


def plan_commit(planning: Planning) -> CommitPlan | NeedsObjects | InConflict:
    """Plan one attempt.

    Requests in conflict are named, all that there are: the batch does not land without them, as
    they may have landed by an earlier attempt.
    """
    head = base_head(planning)
    if isinstance(head, NeedsObjects):
        return head
    steps = _plan_steps(head, planning)
    if not isinstance(steps, _Planned):
        return steps
    planned, merges = steps.steps, steps.merges
    state, batch, attempt = planning.state, planning.batch, planning.attempt
    cleanup = planning.cleanup.of_branch(batch.branch)
    landed = _landed(batch, planned)
    ledger = change_ledger(state, batch, landed, cleanup, attempt.now_ms)
    tag = due_tag(state.metadata, now_ms=attempt.now_ms) if batch.branch == MAIN else None
    expired = _expired(planning, tag)
    updates = (
        *_updates(state.metadata, batch.branch, planned, ledger),
        *((tag,) if tag else ()),
        *(expired.updates if expired else ()),
    )
    swap = plan_swap(state.table, updates, uuid=attempt.metadata_uuid, now_ms=attempt.now_ms)
    after = TableState(swap.table, ledger.ledger, _heads(state, batch.branch, planned[-1]))
    return CommitPlan(
        swap,
        tuple(written for step in planned for written in step.objects),
        tuple(step.snapshot for step in planned),
        landed,
        cleanup,
        Upkeep(merges, expired),
        after,
        {step.snapshot.snapshot_id: step.changes for step in planned},
    )


def base_head(planning: Planning) -> Head | NeedsObjects:
    """Return the branch as the attempt finds it: one that the batch creates, at the head of main.
    Source: Iceberg Java, `SnapshotUtil.latestSnapshot`.
    """
    state, branch = planning.state, planning.batch.branch
    metadata, objects, changes = state.metadata, planning.objects, planning.changes
    is_new = planning.batch.creates_branch and branch not in metadata.refs
    parent = metadata.branch_head(MAIN if is_new else branch)
    if parent is None:
        return Head(metadata, branch, None, (), objects, changes)
    rows = state.heads.get(parent.snapshot_id)
    if rows is None:
        if parent.manifest_list is None:
            raise InvalidMetadataError(
                f"snapshot {parent.snapshot_id} of table `{state.table.identifier}` lists its"
                " manifests inline (an old format v1 form): expected a manifest list; rewrite the"
                " table's manifests with an engine that reads it"
            )
        wanted = ObjectRange(parent.manifest_list)
        content = objects.find(wanted)
        if content is None:
            return NeedsObjects(frozenset((wanted,)))
        rows = state.with_head(parent.snapshot_id, content).heads[parent.snapshot_id]
    return Head(metadata, branch, parent, rows, objects, changes)


@dataclass(frozen=True, slots=True)
class _Planned:
    steps: tuple[StepPlan, ...]
    merges: tuple[MergedManifests, ...]


def _plan_steps(base: Head, planning: Planning) -> _Planned | NeedsObjects | InConflict:
    """Plan the steps in their order. The last one lists the merged manifests.

    A step that lacks bytes or conflicts is passed over, to learn in one go what stands in the way
    of the others.
    """
    batch, attempt = planning.batch, planning.attempt
    head, planned, merges = base, list[StepPlan](), tuple[MergedManifests, ...]()
    missing, conflicts = frozenset[ObjectRange](), InConflict()
    for number, step in enumerate(batch.steps):
        if planned and planned[-1].snapshot is not head.snapshot:
            head = head_after(head, planned[-1])
        names = names_of(head, step, number, batch.commit_uuid, attempt)
        try:
            produced = _produce(head, base, step, planning.prepared, names)
            if isinstance(produced, InConflict):
                conflicts = conflicts.joined(produced)
                continue
            if number == len(batch.steps) - 1:
                carried, version = produced.manifests, head.metadata.format_version
                merges = applicable_merges(planning.upkeep, batch.branch, carried, version)
            planned.append(plan_step(head, step, names, produced, merges, attempt))
        except MissingObjectsError as error:
            missing |= error.needs
    if missing:
        return NeedsObjects(missing)
    if len(planned) < len(batch.steps):
        return conflicts
    return _Planned(tuple(planned), merges)


def _produce(
    head: Head, base: Head, step: Step, prepared: Sequence[PreparedManifest], names: StepNames
) -> Produced | InConflict:
    """Make the manifests of a step. Errors: `MissingObjectsError`."""
    if not step.is_append:
        return produce_operations(head, base, step, names)
    never_was = refuse_base(base, step)
    if never_was is not None:
        return never_was
    if step.adopts:
        live = refuse_live(head, base, step.requests[0])
        if live is not None:
            return live
    own = [one for one in prepared if one.snapshot_id == step.snapshot_id]
    return produce_append(head, step, own, names)


def _landed(batch: Batch, planned: Sequence[StepPlan]) -> dict[str, Landed]:
    """Return what each request lands as, by its inbox key: with the snapshot of its step."""
    return {
        checked.request.inbox_key: landed_at(checked.request, one.snapshot)
        for step, one in zip(batch.steps, planned, strict=True)
        for checked in step.requests
    }


def _updates(
    metadata: TableMetadata, branch: str, planned: Sequence[StepPlan], ledger: LedgerChanges
) -> tuple[Update, ...]:
    added = (AddSnapshot(one.snapshot) for one in planned)
    moved = SetSnapshotRef(branch, moved_ref(metadata, branch, planned[-1].snapshot))
    return (*added, moved, *ledger.updates)


def _expired(planning: Planning, tag: SetSnapshotRef | None) -> ExpiredSnapshots | None:
    """Return the expiry that this commit takes along: none that would remove the tagged snapshot,
    which was chosen before there was a tag."""
    expired = applicable_expiry(
        planning.upkeep.expired,
        planning.state,
        planning.batch.branch,
        now_ms=planning.attempt.now_ms,
    )
    if expired and tag and tag.ref.snapshot_id in expired.snapshot_ids:
        return None
    return expired


def _heads(state: TableState, branch: str, last: StepPlan) -> dict[int, tuple[ListedManifest, ...]]:
    """Keep the new head's manifests; the old head's unless another ref still names it."""
    others = {ref.snapshot_id for name, ref in state.metadata.refs.items() if name != branch}
    heads = {head: rows for head, rows in state.heads.items() if head in others}
    heads[last.snapshot.snapshot_id] = last.listed
    return heads
