"""A change of properties alone, for a catalog that checks the head of a branch and nothing else.

There two such changes of one base would both pass, and the second would undo the first without
having seen it. A commit that was planned before the change would pass as well, and write the
ledger's entry as it was. So the change moves the head that others require, by a snapshot that adds
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from committer.errors import InvariantError
from committer.iceberg.metadata.snapshot import MAIN
from committer.iceberg.updates.metadata_update import (
    AddSnapshot,
    RemoveProperties,
    SetProperties,
    SetSnapshotRef,
    Update,
)
from committer.ledger_entry import parse_property_key
from committer.plan.batch.batch import Batch, Step, snapshot_id_from
from committer.plan.commit.commit import NeedsObjects, Planning, plan_commit
from committer.plan.commit.ledger_changes import LedgerCleanup
from committer.plan.commit.operation_step import InConflict
from committer.plan.commit.step_plan import Attempt
from committer.plan.ledger.state import TableState
from committer.plan.operations.head import ObjectsAtHand
from committer.ports.storage import NewObject


@dataclass(frozen=True, slots=True)
class HeadMove:
    """The updates that move a head, and the manifest list that has to be there before."""

    updates: tuple[Update, ...]
    objects: tuple[NewObject, ...]


def branch_to_move(state: TableState, updates: Sequence[Update]) -> str | None:
    """Return the branch whose head has to move: the one whose ledger the updates change, or main
    for other properties. None if they change no property, or move its head themselves, or if the
    branch is not there: then no commit rests on it.
    """
    keys = _keys(updates)
    branches = {parsed[1] for key in keys if (parsed := parse_property_key(key))}
    if len(branches) > 1:
        raise InvariantError(f"the ledgers of {sorted(branches)} are changed in one swap")
    moved = {one.ref_name for one in updates if isinstance(one, SetSnapshotRef)}
    for branch in (branches or {MAIN}) - moved if keys else ():
        if branch == MAIN or branch in state.metadata.refs:
            return branch
    return None


def _keys(updates: Sequence[Update]) -> list[str]:
    keys: list[str] = []
    for update in updates:
        match update:
            case SetProperties(changed):
                keys += changed
            case RemoveProperties(removals):
                keys += removals
            case _:
                pass
    return keys


def move_head(
    state: TableState,
    branch: str,
    *,
    random: UUID,
    uuid: UUID,
    now_ms: int,
    objects: ObjectsAtHand,
) -> HeadMove | NeedsObjects:
    """Plan the snapshot that adds nothing. `random` makes its id, `uuid` the name of its list."""
    snapshot_id = snapshot_id_from(random, state.metadata)
    if snapshot_id is None:
        raise InvariantError("a random snapshot id is taken: try again")
    batch = Batch((Step((), snapshot_id),), uuid, empty_on=branch)
    attempt = Attempt(1, uuid, now_ms)
    plan = plan_commit(Planning(state, batch, (), attempt, LedgerCleanup(), objects=objects))
    if isinstance(plan, NeedsObjects):
        return plan
    if isinstance(plan, InConflict):
        raise InvariantError("a batch without requests conflicts")
    moves = tuple(one for one in plan.swap.updates if isinstance(one, AddSnapshot | SetSnapshotRef))
    return HeadMove(moves, plan.objects)
