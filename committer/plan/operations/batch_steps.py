"""Cuts the requests of a batch into steps, each of which makes one snapshot.

Stream readers stop at snapshots that remove, and equality deletes apply to what has a lower number:
so appends have their own snapshot, and operations one each, in the order in which the requests
arrived; those of one producer by epoch. Requests share a step only if nothing but its number
differs from that. Source: docs/reference/iceberg-notes.md 9.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence

from committer.iceberg.entry.data_file import is_equality_delete_file
from committer.plan.batch.request_check import CheckedRequest
from committer.request.commit_request import CommitRequest

Requests = tuple[CheckedRequest, ...]
# Each is a swap of its own: the branch may be another after it, or not have moved.
_ALONE = frozenset({"alter", "cherry-pick"})


def cut(requests: Requests) -> tuple[Requests, ...]:
    """Return the requests of each step, in order."""
    if all(_is_plain(one.request) for one in requests):
        return (requests,) if requests else ()
    steps: list[list[CheckedRequest]] = []
    for one in by_epoch(requests):
        shared = _step_to_share(steps, one)
        if shared is None:
            steps.append([one])
        else:
            shared.append(one)
    return tuple(tuple(step) for step in steps)


def of_one_swap(steps: Sequence[Requests], *, has_several_snapshots: bool) -> tuple[Requests, ...]:
    """Return the first steps that may land together."""
    if not has_several_snapshots or (steps and _is_alone(steps[0])):
        return tuple(steps[:1])
    count = next((number for number, one in enumerate(steps) if _is_alone(one)), len(steps))
    return tuple(steps[:count])


def _is_alone(step: Requests) -> bool:
    request = step[0].request
    return request.operation in _ALONE or request.stage_only or bool(request.changes)


def _is_plain(request: CommitRequest) -> bool:
    """Return whether a request shares a snapshot with every other of its kind."""
    return _may_share_append(request) and not request.summary


def by_epoch(requests: Sequence[CheckedRequest]) -> list[CheckedRequest]:
    """Put those of one producer in the order of their epochs, in the places that they have; those
    of one epoch in the order of their arrival."""
    of_producer: defaultdict[str, deque[CheckedRequest]] = defaultdict(deque)
    for one in sorted(requests, key=lambda one: one.request.epoch):
        of_producer[one.request.producer.id].append(one)
    return [of_producer[one.request.producer.id].popleft() for one in requests]


def _step_to_share(
    steps: Sequence[list[CheckedRequest]], one: CheckedRequest
) -> list[CheckedRequest] | None:
    if _may_share_append(one.request):
        return _append_to_share(steps, one.request)
    if steps and _only_deletes_positions(one) and _may_share_deletes(steps[-1], one):
        return steps[-1]
    return None


def _may_share_append(request: CommitRequest) -> bool:
    is_append = request.operation == "append" and not request.changes
    return is_append and not (request.adopt_existing or request.stage_only)


def _append_to_share(
    steps: Sequence[list[CheckedRequest]], request: CommitRequest
) -> list[CheckedRequest] | None:
    """Return the appends that this one may join: behind them are only operations that new files
    make no difference to, and none of its own producer."""
    for step in reversed(steps):
        first = step[0].request
        if _may_share_append(first) and first.summary == request.summary:
            return step
        is_own = any(one.request.producer.id == request.producer.id for one in step)
        if is_own or not all(_is_blind_to_appends(one) for one in step):
            return None
    return None


def _is_blind_to_appends(one: CheckedRequest) -> bool:
    request = one.request
    if request.operation == "row-delta":
        is_checked = request.needs.isolation_level == "serializable"
        return not is_checked and not _has_equality_deletes(one)
    return request.operation in ("append", "rewrite-files")


def _may_share_deletes(step: Sequence[CheckedRequest], one: CheckedRequest) -> bool:
    """Return whether the step is of such deletes too, and none replaces what another does."""
    if not all(map(_only_deletes_positions, step)):
        return False
    removed = set(one.request.needs.removed_delete_files)
    others = (other.request.needs.removed_delete_files for other in step)
    return not removed or all(removed.isdisjoint(other) for other in others)


def _only_deletes_positions(one: CheckedRequest) -> bool:
    request, needs = one.request, one.request.needs
    if request.operation != "row-delta" or request.summary or request.stage_only:
        return False
    if request.changes:
        return False
    removes = needs.removed_data_files or needs.updates_rows
    adds_data = any(ref.content == "data" for ref in request.manifests) or request.files
    return not removes and not adds_data and not _has_equality_deletes(one)


def _has_equality_deletes(one: CheckedRequest) -> bool:
    return any(
        is_equality_delete_file(file)
        for manifest in one.manifests
        for file in manifest.walked.delete_files
    )
