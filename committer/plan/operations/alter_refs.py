"""Changes of branches and tags, by Iceberg Java's rules (`ManageSnapshots`).

A branch moves forward only to a descendant, and rolls back only to an ancestor; any other move has
to be asked for by name (`replace-branch`, `set-current-snapshot`). `main` cannot be removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from committer.errors import InvalidMetadataError
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.metadata.snapshot import MAIN, SnapshotRef
from committer.iceberg.updates.metadata_update import RemoveSnapshotRef, SetSnapshotRef, Update
from committer.iceberg.values.calendar import print_instant
from committer.plan.operations.conflict import Conflict, ConflictCode
from committer.request import alterations as ask

Planned = tuple[Update, ...] | Conflict
_Kind = Literal["branch", "tag"]
_At = ask.CreateBranch | ask.CreateTag | ask.ReplaceBranch | ask.ReplaceTag | ask.SetCurrentSnapshot


def alter_refs(change: ask.RefChange, metadata: TableMetadata, branch: str) -> Planned:
    """Plan one change of refs. `branch`: the request's, which rollbacks move.

    Errors: `InvalidMetadataError` for a change that does not fit the table's refs and snapshots.
    """
    match change:
        case ask.CreateBranch():
            return _created(change, "branch", metadata, branch)
        case ask.CreateTag():
            return _created(change, "tag", metadata, branch)
        case ask.ReplaceBranch():
            return _replaced(change, "branch", metadata, branch)
        case ask.ReplaceTag():
            return _replaced(change, "tag", metadata, branch)
        case ask.SetSnapshotRef():
            return _set(change, metadata)
        case ask.RemoveSnapshotRef():
            return _removed(change, metadata)
        case ask.FastForward(branch=moved, to=to):
            return _forwarded(moved or branch, to, metadata)
        case ask.RollbackToSnapshot(snapshot_id=snapshot_id):
            return _rolled_back(snapshot_id, metadata, branch)
        case ask.RollbackToTimestamp(timestamp_ms=timestamp_ms):
            return _rolled_back_to_time(timestamp_ms, metadata, branch)
        case ask.SetCurrentSnapshot():
            return _moved(branch, _snapshot_of(change, metadata, branch), metadata)


# --- Create, replace, remove ---------------------------------------------------------------------


def _created(
    change: ask.CreateBranch | ask.CreateTag, kind: _Kind, metadata: TableMetadata, branch: str
) -> Planned:
    known = metadata.refs.get(change.name)
    if known is not None:
        if change.if_not_exists and known.type == kind:
            return ()
        raise InvalidMetadataError(
            f"a {known.type} `{change.name}` exists already, expected a free name"
        )
    snapshot_id = _snapshot_of(change, metadata, branch)
    ref = SnapshotRef(snapshot_id, kind, max_ref_age_ms=change.max_ref_age_ms)
    if isinstance(change, ask.CreateBranch):
        ref = replace(
            ref,
            min_snapshots_to_keep=change.min_snapshots_to_keep,
            max_snapshot_age_ms=change.max_snapshot_age_ms,
        )
    return (SetSnapshotRef(change.name, ref),)


def _replaced(
    change: ask.ReplaceBranch | ask.ReplaceTag, kind: _Kind, metadata: TableMetadata, branch: str
) -> Planned:
    known = _ref(change.name, kind, metadata)
    snapshot_id = _snapshot_of(change, metadata, branch)
    return (SetSnapshotRef(change.name, replace(known, snapshot_id=snapshot_id)),)


def _set(change: ask.SetSnapshotRef, metadata: TableMetadata) -> Planned:
    known = metadata.refs.get(change.ref_name)
    absent = "branch" if change.ref_name == MAIN else change.type
    kind = absent if known is None else known.type
    if change.type != kind:
        raise InvalidMetadataError(f"`{change.ref_name}` is a {kind}, expected a {change.type}")
    _require(change.snapshot_id, metadata)
    if change.type == "tag" and (change.min_snapshots_to_keep or change.max_snapshot_age_ms):
        raise InvalidMetadataError(
            f"tag `{change.ref_name}`: expected no `min-snapshots-to-keep` and no"
            " `max-snapshot-age-ms`, which only a branch has"
        )
    ref = SnapshotRef(
        change.snapshot_id,
        change.type,
        change.min_snapshots_to_keep,
        change.max_snapshot_age_ms,
        change.max_ref_age_ms,
    )
    return (SetSnapshotRef(change.ref_name, ref),)


def _removed(change: ask.RemoveSnapshotRef, metadata: TableMetadata) -> Planned:
    name = change.ref_name
    if name == MAIN:
        raise InvalidMetadataError(f"branch `{MAIN}` cannot be removed")
    if name not in metadata.refs and change.if_exists:
        return ()
    _ref(name, change.type, metadata)
    return (RemoveSnapshotRef(name),)


# --- Move ----------------------------------------------------------------------------------------


def _forwarded(branch: str, to: str, metadata: TableMetadata) -> Planned:
    target = _ref(to, None, metadata)
    if branch not in metadata.refs:
        return (SetSnapshotRef(branch, SnapshotRef(target.snapshot_id)),)
    known = _ref(branch, "branch", metadata)
    if not metadata.is_ancestor(known.snapshot_id, of=target.snapshot_id):
        return Conflict(
            ConflictCode.NO_ANCESTOR,
            f"branch `{branch}` cannot be fast-forwarded to `{to}`: its head"
            f" {known.snapshot_id} is not among the retained ancestors of {target.snapshot_id}",
            known.snapshot_id,
        )
    return _moved(branch, target.snapshot_id, metadata)


def _rolled_back(snapshot_id: int, metadata: TableMetadata, branch: str) -> Planned:
    _require(snapshot_id, metadata)
    head = metadata.branch_head(branch)
    if head is None or not metadata.is_ancestor(snapshot_id, of=head.snapshot_id):
        return Conflict(
            ConflictCode.NO_ANCESTOR,
            f"branch `{branch}` cannot be rolled back to snapshot {snapshot_id}, which is not among"
            " the retained ancestors of its head",
            None if head is None else head.snapshot_id,
        )
    return _moved(branch, snapshot_id, metadata)


def _rolled_back_to_time(timestamp_ms: int, metadata: TableMetadata, branch: str) -> Planned:
    older = [one for one in metadata.branch_history(branch) if one.timestamp_ms < timestamp_ms]
    if not older:
        raise InvalidMetadataError(
            f"branch `{branch}` has no retained snapshot that is older than"
            f" {print_instant(timestamp_ms)}"
        )
    latest = max(older, key=lambda one: (one.timestamp_ms, one.sequence_number))
    return _moved(branch, latest.snapshot_id, metadata)


def _moved(branch: str, snapshot_id: int, metadata: TableMetadata) -> Planned:
    known = metadata.refs.get(branch) or SnapshotRef(snapshot_id)
    if known.type != "branch":
        raise InvalidMetadataError(f"`{branch}` is a tag, expected a branch")
    return (SetSnapshotRef(branch, replace(known, snapshot_id=snapshot_id)),)


# --- Look-up -------------------------------------------------------------------------------------


def _snapshot_of(change: _At, metadata: TableMetadata, branch: str) -> int:
    if change.snapshot_id is None:
        return _ref(change.ref or branch, None, metadata).snapshot_id
    _require(change.snapshot_id, metadata)
    return change.snapshot_id


def _ref(name: str, kind: _Kind | None, metadata: TableMetadata) -> SnapshotRef:
    known = metadata.refs.get(name)
    if known is None:
        if name == MAIN:
            raise InvalidMetadataError(
                "the table has no snapshot yet, expected at least one: commit to `main` first"
            )
        wanted = kind or "branch or tag"
        raise InvalidMetadataError(
            f"expected a {wanted} `{name}`, found none{_near(name, metadata.refs)}"
        )
    if kind is not None and known.type != kind:
        raise InvalidMetadataError(f"`{name}` is a {known.type}, expected a {kind}")
    return known


def _near(name: str, refs: Mapping[str, SnapshotRef]) -> str:
    """Return a hint if a ref differs in case alone."""
    found = next((one for one in sorted(refs) if one.lower() == name.lower()), None)
    return "" if found is None else f"; there is `{found}`"


def _require(snapshot_id: int, metadata: TableMetadata) -> None:
    if metadata.snapshot_by_id(snapshot_id) is None:
        raise InvalidMetadataError(
            f"expected a snapshot {snapshot_id}, found none: it has expired, or never was"
        )
