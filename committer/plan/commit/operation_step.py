"""The step of a batch that does more than append: whether it may land, and what it makes of the
branch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from committer.errors import InvalidMetadataError, InvariantError, UnsupportedError
from committer.plan.batch.batch import Step
from committer.plan.batch.request_check import CheckedRequest
from committer.plan.file_changes.step_manifests import produce
from committer.plan.operations.change import Base, Change
from committer.plan.operations.cherry_pick import MoveHead, Pick, plan_pick
from committer.plan.operations.conflict import Conflict, ConflictCode
from committer.plan.operations.head import Head, TooMuchToReadError
from committer.plan.operations.live_files import AddedFiles, check_not_live
from committer.plan.operations.step_output import Produced, StepNames
from committer.plan.validation.since import never_was
from committer.plan.validation.validate import lost_groups, validate

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class InConflict:
    """The requests of a batch that stand in the way of its plan, by their key.

    `landed`: those that conflict with what has landed, so that they cannot. `waiting`: those that
    conflict with earlier ones of their batch only: once these have landed, they are planned again.
    """

    landed: Mapping[str, Conflict] = field(default_factory=dict)
    waiting: frozenset[str] = frozenset()

    def joined(self, other: InConflict) -> InConflict:
        return InConflict({**self.landed, **other.landed}, self.waiting | other.waiting)


def produce_operations(
    head: Head, base: Head, step: Step, names: StepNames
) -> Produced | InConflict:
    """Plan the operations of a step on `head`, which is `base` after the steps before.
    Errors: `MissingObjectsError`; those of reading manifests and deletion vectors.
    """
    if step.is_pick:
        return _picked(head, step.requests[0], names)
    found = [landable(Change.of(checked), head) for checked in step.requests]
    changes = [one for one in found if isinstance(one, Change)]
    if len(changes) == len(found):
        produced = _produced(head, changes, names)
        if isinstance(produced, Produced):
            return produced
        at_fault = _at_fault(head, step.requests, changes, names)
    else:
        at_fault = [
            checked
            for checked, one in zip(step.requests, found, strict=True)
            if isinstance(one, Conflict)
        ]
    return _told(at_fault, base, names)


def refuse_base(base: Head, step: Step) -> InConflict | None:
    """Return the conflicts of appends that name a base which never was."""
    landed = {
        checked.sealed.key: conflict
        for checked in step.requests
        if (conflict := never_was(Base.of(checked.request.needs), base)) is not None
    }
    return InConflict(landed) if landed else None


def refuse_live(head: Head, base: Head, checked: CheckedRequest) -> InConflict | None:
    """Return the conflict of a request that adopts a file which is live on `head`, the branch
    `base` after the steps before. Errors: `MissingObjectsError`.
    """
    added = [AddedFiles.of(manifest) for manifest in checked.manifests]
    if readable(partial(check_not_live, added, head)) is None:
        return None
    landed = readable(partial(check_not_live, added, base))
    key = checked.sealed.key
    return InConflict({key: landed}) if landed else InConflict(waiting=frozenset({key}))


def _picked(head: Head, checked: CheckedRequest, names: StepNames) -> Produced | InConflict:
    """Plan a snapshot that is made again on this head. Errors: `MissingObjectsError`."""
    picked = readable(partial(plan_pick, checked.request.needs, head))
    if isinstance(picked, MoveHead):
        raise InvariantError("a pick that moves the head makes no snapshot")
    produced = _produced(head, [picked.change], names) if isinstance(picked, Pick) else picked
    if isinstance(picked, Pick) and isinstance(produced, Produced):
        return replace(produced, label=picked.label, extra={**produced.extra, **picked.summary})
    assert isinstance(produced, Conflict)  # noqa: S101  # what is left; tells the type checker
    return InConflict({checked.sealed.key: produced})


def landable(change: Change, head: Head) -> Change | Conflict:
    """Return what of a change may land: all of it, or, of a rewrite whose client allows that, the
    groups that do not conflict. Errors: `MissingObjectsError`.
    """
    conflict = readable(partial(validate, change, head))
    if conflict is None:
        return change
    if not change.groups:
        return conflict
    lost = readable(partial(lost_groups, change, head))
    if isinstance(lost, Conflict):
        return lost
    return conflict if len(lost) == len(change.groups) else change.without_groups(lost)


def _produced(head: Head, changes: Sequence[Change], names: StepNames) -> Produced | Conflict:
    return readable(partial(produce, head, changes, names))


def readable(ask: Callable[[], _Answer]) -> _Answer | Conflict:
    """Return the answer; a conflict where a manifest of the branch cannot be read. An append reads
    none: a damaged one stops the operations that need it, and not the table."""
    try:
        return ask()
    except TooMuchToReadError as error:
        return Conflict(ConflictCode.UNDECIDED, str(error))
    except (InvalidMetadataError, UnsupportedError) as error:
        return Conflict(
            ConflictCode.UNDECIDED,
            f"it cannot be planned: {error}; appends still land, and so do operations that need not"
            " read that file: rewrite the manifests with an engine that reads it, then replay",
        )


def _at_fault(
    head: Head, requests: Sequence[CheckedRequest], changes: Sequence[Change], names: StepNames
) -> list[CheckedRequest]:
    """Return the requests that conflict alone; all but the first, if they do so with each other."""
    alone = [
        checked
        for checked, change in zip(requests, changes, strict=True)
        if isinstance(_produced(head, [change], names), Conflict)
    ]
    return alone or list(requests[1:])


def _told(at_fault: Sequence[CheckedRequest], base: Head, names: StepNames) -> InConflict:
    """Tell those that conflict with what has landed from those that have to wait."""
    landed: dict[str, Conflict] = {}
    for checked in at_fault:
        change = landable(Change.of(checked), base)
        found = _produced(base, [change], names) if isinstance(change, Change) else change
        if isinstance(found, Conflict):
            landed[checked.sealed.key] = found
    keys = (checked.sealed.key for checked in at_fault)
    return InConflict(landed, frozenset(key for key in keys if key not in landed))
