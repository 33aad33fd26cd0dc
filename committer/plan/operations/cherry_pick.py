"""Cherry-pick: a snapshot that no branch has (a staged one, most of the time) joins a branch.

If its parent is the branch's head, the branch moves to it and nothing is written. Else it is made
again on the head: its data files as new ones, with new numbers and row ids. That is possible for an
append; for a replacement of partitions, while nothing was added to these and all that it removed is
live; for anything else, and for what changes delete files under such a label, it is not. Nor is it
where the history since then has expired, which may have the pick already, or where one of its files
is live on the branch: a path that is listed twice doubles its rows.
Source: docs/reference/iceberg-notes.md 7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from committer.errors import InvalidRequestError
from committer.iceberg.entry.data_file import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    with_order,
)
from committer.iceberg.manifest.manifest_list import ManifestFile, decode_manifest_list
from committer.iceberg.manifest.manifest_writer import encode_additions
from committer.iceberg.metadata.snapshot import WAP_ID, Snapshot
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.schema.bound_forms import bound_forms
from committer.plan.batch.batch import manifest_context
from committer.plan.batch.submitted_manifest import CheckedManifest, HeaderCheck
from committer.plan.operations.change import Base, Change
from committer.plan.operations.conflict import PATHS_MAX, Conflict, ConflictCode
from committer.plan.operations.head import Head, ObjectRange
from committer.plan.operations.live_files import AddedFiles, check_not_live
from committer.request.needs import Needs

_PUBLISHED_WAP_ID = "published-wap-id"
_SOURCE = "source-snapshot-id"
_REPLACES_PARTITIONS = "replace-partitions"
_SYNC = b"frazil picked 01"


@dataclass(frozen=True, slots=True)
class MoveHead:
    """The branch moves to the picked snapshot."""

    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class Pick:
    """The picked snapshot is made again: this change, under its label, and with these entries of
    its summary."""

    change: Change
    label: str
    summary: Mapping[str, str]


def plan_pick(needs: Needs, head: Head) -> MoveHead | Pick | Conflict:
    """Plan the pick of a snapshot, which is named by its id or by the `wap.id` of its summary.

    Errors: `MissingObjectsError`; those of reading manifests.
    """
    source = _source(head, needs.source_snapshot_id, needs.wap_id)
    if isinstance(source, Conflict):
        return source
    picked = _picked_before(head, source)
    if picked is not None:
        return picked
    head_id = None if head.snapshot is None else head.snapshot.snapshot_id
    if source.parent_snapshot_id == head_id:
        return MoveHead(source)
    return _unknown_history(head, source) or _made_again(head, source)


# --- Which snapshot ------------------------------------------------------------------------------


def _source(head: Head, snapshot_id: int | None, wap_id: str | None) -> Snapshot | Conflict:
    if snapshot_id is not None:
        found = head.metadata.snapshot_by_id(snapshot_id)
        return found or _refused(
            f"expected a snapshot {snapshot_id}, found none: it has expired, or never was"
        )
    staged = [one for one in head.metadata.snapshots if _entry(one, WAP_ID) == wap_id]
    if len(staged) == 1:
        return staged[0]
    if staged:
        published = _published_before(head, wap_id)
        if published is not None:
            return published
        ids = ", ".join(str(one.snapshot_id) for one in staged[:PATHS_MAX])
        return _refused(f"{len(staged)} snapshots have `wap.id` `{wap_id}`: pick one of {ids}")
    return _refused(f"no snapshot has `wap.id` `{wap_id}`: it has expired, or was never staged")


def _published_before(head: Head, wap_id: str | None) -> Conflict | None:
    for one in head.ancestors():
        if wap_id in _wap_ids(one):
            return Conflict(ConflictCode.PICKED, _published_text(wap_id, one), one.snapshot_id)
    return None


def _published_text(wap_id: str | None, ancestor: Snapshot) -> str:
    return f"`wap.id` `{wap_id}` was published before, in snapshot {ancestor.snapshot_id}"


def _picked_before(head: Head, source: Snapshot) -> Conflict | None:
    """Return a conflict if the branch has the snapshot, has it again, or has its WAP id. A pick of
    a pick is one of the first snapshot, as far as the snapshots between them are retained."""
    known = {str(one.snapshot_id): one for one in head.metadata.snapshots}
    own = _picked_from(source, known)
    wap_ids = {wap_id for one in own.values() for wap_id in _wap_ids(one)}
    for one in head.ancestors():
        shared = next((each for each in _picked_from(one, known) if each in own), None)
        published = next((each for each in _wap_ids(one) if each in wap_ids), None)
        if shared is not None:
            what = _said_before(shared, one, source, head.branch)
        elif published is not None:
            what = _published_text(published, one)
        else:
            continue
        return Conflict(ConflictCode.PICKED, what, one.snapshot_id)
    return None


def _picked_from(snapshot: Snapshot, known: Mapping[str, Snapshot]) -> dict[str, Snapshot | None]:
    """Return the snapshot, the one that it is a pick of, and so on, by their ids; None for the last
    one, if it is not retained."""
    found: dict[str, Snapshot | None] = {str(snapshot.snapshot_id): snapshot}
    last: Snapshot | None = snapshot
    while last is not None:
        source = _entry(last, _SOURCE)
        if source is None or source in found:
            break
        found[source] = last = known.get(source)
    return found


def _said_before(shared: str, ancestor: Snapshot, source: Snapshot, branch: str) -> str:
    is_own = shared == str(source.snapshot_id)
    named = f"snapshot {shared}" + ("" if is_own else f", picked as snapshot {source.snapshot_id},")
    if shared == str(ancestor.snapshot_id):
        return f"{named} is in the history of branch `{branch}`"
    return f"{named} was picked before, as snapshot {ancestor.snapshot_id}"


def _unknown_history(head: Head, source: Snapshot) -> Conflict | None:
    """Return a conflict if a snapshot that has expired may have picked the source: its files would
    be added twice. The pick would be a retained ancestor's, with a higher number.
    """
    last: Snapshot | None = None
    for last in head.ancestors():
        if last.snapshot_id == source.parent_snapshot_id:
            return None
    if last is None or _is_as_old(last, source):
        return None
    return Conflict(
        ConflictCode.HISTORY,
        f"the history of branch `{head.branch}` since snapshot {source.snapshot_id} was staged has"
        " expired, and may have published it: look at the table, and stage the files again if they"
        " are not in it",
        source.snapshot_id,
    )


def _is_as_old(one: Snapshot, source: Snapshot) -> bool:
    """Return whether no snapshot between the two could be a pick of the source. Format version 1
    has no numbers."""
    if source.sequence_number == 0:
        return one.timestamp_ms <= source.timestamp_ms
    return one.sequence_number <= source.sequence_number + 1


def _wap_ids(snapshot: Snapshot | None) -> tuple[str, ...]:
    """Return the `wap.id` that a snapshot was staged with, and the one that it has published."""
    if snapshot is None:
        return ()
    found = (_entry(snapshot, WAP_ID), _entry(snapshot, _PUBLISHED_WAP_ID))
    return tuple(filter(None, found))


def _entry(snapshot: Snapshot, key: str) -> str | None:
    return (snapshot.summary or {}).get(key)


# --- Made again ----------------------------------------------------------------------------------


def _made_again(head: Head, source: Snapshot) -> Pick | Conflict:
    is_replacement = (
        source.operation == "overwrite"
        and (_entry(source, _REPLACES_PARTITIONS) or "").lower() == "true"
    )
    if (source.operation != "append" and not is_replacement) or source.manifest_list is None:
        return _refused(
            f"snapshot {source.snapshot_id} ({source.operation}) can only be picked while its"
            f" parent {source.parent_snapshot_id} is the head: it is neither an append nor a"
            " replacement of partitions"
        )
    rows = _listed(head, source)
    own = [row for row in rows if row.added_snapshot_id == source.snapshot_id]
    entries = [entry for entries in head.entries(own) for entry in entries]
    changed = [one for one in entries if one.data_file.manifest_content is ManifestContent.DATA]
    if _loses_deletes(entries, rows, removes_data=is_replacement):
        return _refused(
            f"snapshot {source.snapshot_id} ({source.operation}) can only be picked while its"
            f" parent {source.parent_snapshot_id} is the head: it adds or removes delete files"
        )
    files = [one.data_file for one in changed if one.status == ManifestEntryStatus.ADDED]
    gone = [one.data_file for one in changed if one.status == ManifestEntryStatus.DELETED]
    if is_replacement:
        conflict = _changed_since(head, source, files)
        if conflict is not None:
            return conflict
    added = _manifests(head.metadata, files, source)
    if isinstance(added, Conflict):
        return added
    removed = frozenset(one.file_path for one in gone)
    live = _live_already(head, source, added, removed)
    if live is not None:
        return live
    change = Change(operation="overwrite", base=Base(), added=added, removed_data_files=removed)
    summary = {_SOURCE: str(source.snapshot_id)}
    if wap_ids := _wap_ids(source):
        summary[_PUBLISHED_WAP_ID] = wap_ids[0]
    return Pick(change, "overwrite" if is_replacement else "append", summary)


def _live_already(
    head: Head, source: Snapshot, added: Iterable[CheckedManifest], removed: frozenset[str]
) -> Conflict | None:
    """Return a conflict if the branch has a file that is to be added, and the pick does not remove.
    Errors: `MissingObjectsError`; those of reading manifests.
    """
    files = (AddedFiles.of(one) for one in added)
    new = [replace(one, paths=[path for path in one.paths if path not in removed]) for one in files]
    found = check_not_live(new, head)
    if found is None:
        return None
    message = f"snapshot {source.snapshot_id} cannot be picked: {found.message}"
    return replace(found, message=message)


def _listed(head: Head, source: Snapshot) -> list[ManifestFile]:
    (content,) = head.contents([ObjectRange(source.manifest_list or "")])
    return list(decode_manifest_list(content).rows)


def _loses_deletes(
    entries: Iterable[ManifestEntry], rows: Iterable[ManifestFile], *, removes_data: bool
) -> bool:
    """Return whether there are changes of delete files that the files of data do not tell: labels
    do not either, as a row delta that adds data and removes deletes is an append. Deletes that are
    older than all data apply to nothing, and those of removed data go with it.
    """
    numbers = (row.min_sequence_number for row in rows if row.content is ManifestContent.DATA)
    oldest = min(numbers, default=0)
    deletes = [one for one in entries if one.data_file.manifest_content is ManifestContent.DELETES]
    if any(one.status == ManifestEntryStatus.ADDED for one in deletes):
        return True
    gone = (one for one in deletes if one.status == ManifestEntryStatus.DELETED)
    return not removes_data and any((one.sequence_number or 0) >= oldest for one in gone)


def _changed_since(head: Head, source: Snapshot, files: Iterable[DataFile]) -> Conflict | None:
    """Return a conflict if the branch is not what the replacement was based on, in the partitions
    that it fills."""
    since = _since(head, source.parent_snapshot_id)
    if since is None:
        return Conflict(
            ConflictCode.NO_ANCESTOR,
            f"snapshot {source.snapshot_id} replaces partitions of {source.parent_snapshot_id},"
            f" which is not among the retained ancestors of branch `{head.branch}`",
            source.snapshot_id,
        )
    filled = {_partition(one) for one in files}
    rows = head.live_rows(ManifestContent.DATA)
    newer = [
        entry
        for entries in head.entries([row for row in rows if row.added_snapshot_id in since])
        for entry in entries
        if entry.is_live and entry.snapshot_id in since
    ]
    hit = [one for one in newer if _partition(one.data_file) in filled]
    if not hit:
        return None
    return Conflict(
        ConflictCode.ADDED,
        f"snapshot {source.snapshot_id} replaces partitions that files were added to since its"
        f" parent {source.parent_snapshot_id}",
        hit[0].snapshot_id,
        tuple(one.data_file.file_path for one in hit[:PATHS_MAX]),
    )


def _since(head: Head, base_id: int | None) -> frozenset[int] | None:
    """Return the snapshots of the branch after a base; None if it is no retained ancestor."""
    since: set[int] = set()
    for one in head.ancestors():
        if one.snapshot_id == base_id:
            return frozenset(since)
        since.add(one.snapshot_id)
        if base_id is None and one.parent_snapshot_id is None:
            return frozenset(since)
    return None


def _partition(file: DataFile) -> tuple[int, str]:
    # By its text: NaN is not equal to itself.
    return file.spec_id, repr(file.partition)


def _manifests(
    metadata: TableMetadata, files: Iterable[DataFile], source: Snapshot
) -> tuple[CheckedManifest, ...] | Conflict:
    """Write the files as additions, which inherit new numbers and row ids."""
    by_spec: dict[int, list[DataFile]] = {}
    for file in files:
        by_spec.setdefault(file.spec_id, []).append(with_order(file))
    forms = bound_forms(metadata.schemas, metadata.current_schema, metadata.last_column_id)
    check = HeaderCheck(metadata.format_version, metadata.schemas, metadata.partition_specs, forms)
    found = []
    for spec_id, group in sorted(by_spec.items()):
        content = encode_additions(group, manifest_context(metadata, spec_id), sync=_SYNC).content
        try:
            found.append(check.check(content, "data", f"snapshot {source.snapshot_id}"))
        except InvalidRequestError as error:
            return _refused(f"its files cannot be added again: {error}")
    return tuple(found)


def _refused(message: str) -> Conflict:
    return Conflict(ConflictCode.INCOMPATIBLE, message)
