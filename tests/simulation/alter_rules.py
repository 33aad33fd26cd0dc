"""I22: a request that changes the table, and not its files, has made just the change it asks for.

Its swap has what it says, moves no ref that it does not name, and no other snapshot is dropped.
Judged of the metadata before and after, without the code that plans the change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.request import alterations as ask
from committer.request.commit_request import CommitRequest


def moved_refs(requests: Sequence[CommitRequest]) -> set[str]:
    """Return the refs that these requests may create, move or drop."""
    found: set[str] = set()
    for request in requests:
        if request.operation == "cherry-pick":
            found.add(request.branch)
        for change in request.changes:
            match change:
                case ask.CreateTag(name=name) | ask.CreateBranch(name=name):
                    found.add(name)
                case ask.RemoveSnapshotRef(ref_name=name):
                    found.add(name)
                case ask.FastForward(branch=branch):
                    found.add(branch or request.branch)
                case ask.RollbackToSnapshot():
                    found.add(request.branch)
                case _:
                    pass
    return found


def set_back_refs(requests: Sequence[CommitRequest]) -> set[str]:
    """Return the refs that these requests roll back or drop."""
    found: set[str] = set()
    for request in requests:
        for change in request.changes:
            if isinstance(change, ask.RemoveSnapshotRef):
                found.add(change.ref_name)
            elif isinstance(change, ask.RollbackToSnapshot):
                found.add(request.branch)
    return found


def altered_as_asked(
    before: TableMetadata, after: TableMetadata, requests: Sequence[CommitRequest]
) -> Iterator[str]:
    """Yield what the metadata lacks, and which refs have moved that no request names."""
    for request in requests:
        for change in request.changes:
            problem = _undone(change, before, after, request.branch)
            if problem:
                yield f"epoch {request.epoch} of {request.producer.id}: {problem}"
    # A catalog that checks heads alone has the branch move, too, by an empty snapshot.
    free = moved_refs(requests) | {request.branch for request in requests}
    for name in {*before.refs, *after.refs} - free:
        if before.refs.get(name) != after.refs.get(name):
            yield f"the ref `{name}` has moved, which no request names"


def _undone(
    change: ask.TableChange, before: TableMetadata, after: TableMetadata, branch: str
) -> str | None:
    match change:
        case ask.SetProperties(updates=updates):
            is_done = all(after.properties.get(key) == text for key, text in updates.items())
        case ask.AddColumn(name=name):
            columns = (field.name for field in after.current_schema.fields)
            is_done = name in columns and len(after.schemas) > len(before.schemas)
        case ask.CreateTag(name=name) | ask.CreateBranch(name=name):
            head = before.branch_head(branch)
            is_done = (
                head is not None
                and name not in before.refs
                and name in after.refs
                and after.refs[name].snapshot_id == head.snapshot_id
            )
        case ask.RemoveSnapshotRef(ref_name=name):
            is_done = name in before.refs and name not in after.refs
        case ask.FastForward(branch=moved, to=to):
            known, target = before.refs.get(moved or branch), before.refs[to].snapshot_id
            is_done = after.refs[moved or branch].snapshot_id == target and (
                known is None or before.is_ancestor(known.snapshot_id, of=target)
            )
        case ask.RollbackToSnapshot(snapshot_id=snapshot_id):
            is_done = after.refs[branch].snapshot_id == snapshot_id
        case _:
            is_done = True
    return None if is_done else f"it did not {change.action}"
