"""What the changes of a step make of a branch: its manifests after them, and what the snapshot says
of itself.

Whether they may land is decided in `plan/validation/`; here they conflict only where there is no
right result. Source: docs/reference/iceberg-notes.md 5.2, 7, 8.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from committer.iceberg.entry.data_file import ManifestContent, ManifestEntry
from committer.iceberg.expressions.expression import ALWAYS_FALSE
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.splice.manifest_filter import filter_manifest
from committer.iceberg.splice.manifest_merge import Removal
from committer.plan.file_changes.data_removal import (
    REPLACE_PARTITIONS,
    find_removed_data,
    manifest_context,
)
from committer.plan.file_changes.delete_removal import DeleteRemoval, named_deletes
from committer.plan.file_changes.new_manifests import (
    NewManifests,
    NumberedFile,
    explicit_number,
    list_added_data,
    list_added_deletes,
)
from committer.plan.file_changes.tally import Tally
from committer.plan.file_changes.vector_union import (
    StepVectors,
    added_deletes,
    removed_delete,
    unite_vectors,
)
from committer.plan.ledger.state import ListedManifest
from committer.plan.operations.change import Change, RemovedDelete
from committer.plan.operations.conflict import PATHS_MAX, Conflict, ConflictCode
from committer.plan.operations.head import Head, ObjectRange
from committer.plan.operations.step_output import Produced, StepNames

# The entries of manifests, by their path.
_Entries = Mapping[str, Sequence[ManifestEntry]]


def produce(head: Head, changes: Sequence[Change], names: StepNames) -> Produced | Conflict:
    """Return the branch after the changes of one step.

    Only manifests that list a removed file are written anew. No two changes of a step remove one
    file. Errors: `MissingObjectsError`; those of reading manifests and vectors.
    """
    data = find_removed_data(head, changes)
    if isinstance(data, Conflict):
        return data
    new, tally = NewManifests(head.metadata, names), Tally(head.metadata)
    added_data = list_added_data(new, changes, tally)
    kept_data = _without(head, ManifestContent.DATA, data, new, tally)
    removal = DeleteRemoval(
        head.metadata, changes, _all(data), _oldest_data(kept_data, changes, new)
    )
    live = _live_deletes(head, removal, named_deletes(changes))
    vectors = unite_vectors(head, changes, _all(live), names)
    if isinstance(vectors, Conflict):
        return vectors
    chosen = named_deletes(changes) | vectors.superseded
    missing = _missing_deletes(chosen - vectors.gone, live)
    if missing is not None:
        return missing
    deletes = _removed_deletes(live, chosen, removal)
    new_deletes = list_added_deletes(new, _numbered(changes, vectors, new), tally)
    kept_deletes = _without(head, ManifestContent.DELETES, deletes, new, tally)
    manifests = (*added_data, *kept_data, *new_deletes, *kept_deletes)
    return Produced(
        _label(changes),
        manifests,
        {**tally.counts(), **_manifest_counts(manifests, len(data) + len(deletes), names)},
        {**tally.partition_entries(), **_extra(changes)},
        (*new.objects, *vectors.objects),
    )


def _all(found: _Entries) -> list[ManifestEntry]:
    return [entry for entries in found.values() for entry in entries]


# --- Manifests of the branch ---------------------------------------------------------------------


def _without(
    head: Head, content: ManifestContent, removed: _Entries, new: NewManifests, tally: Tally
) -> list[ListedManifest]:
    """Return the branch's manifests of one content without the removed files, in their order.

    One that has no live files is left out, unless it became so now: its entries say of the snapshot
    which files it has removed.
    """
    listed: list[ListedManifest] = []
    for one in head.manifests:
        if one.row.content != content:
            continue
        entries = removed.get(one.row.manifest_path)
        if entries:
            tally.remove(entries)
            listed.append(_filtered(head, one.row, entries, new))
        elif one.row.has_live_files:
            listed.append(one)
    return listed


def _filtered(
    head: Head, row: ManifestFile, removed: Sequence[ManifestEntry], new: NewManifests
) -> ListedManifest:
    (content,) = head.contents([ObjectRange(row.manifest_path)])
    keys = {removed_delete(entry.data_file) for entry in removed}
    removal = Removal(
        new.names.snapshot_id,
        frozenset(key.file_path for key in keys),
        lambda entry: removed_delete(entry.data_file) in keys,
    )
    context = manifest_context(head.metadata, row)
    return new.listed(filter_manifest(row, content, context, removal, new.sync()), context, row)


def _oldest_data(
    kept: Iterable[ListedManifest], changes: Iterable[Change], new: NewManifests
) -> int:
    """Return a sequence number that no data file of the branch is below: deletes below it apply to
    nothing. New files count with the number that they are given."""
    found = [one.row.min_sequence_number for one in kept]
    given = (explicit_number(new.metadata, change) for change in changes)
    return min((*found, *(one for one in given if one is not None), new.names.sequence_number - 1))


# --- Delete files --------------------------------------------------------------------------------


def _live_deletes(
    head: Head, removal: DeleteRemoval, named: frozenset[RemovedDelete]
) -> dict[str, list[ManifestEntry]]:
    """Return the live delete files of each manifest that may list some of those in question.

    Those that are named belong to the data files of the step, as a rule; only if some do not, all
    manifests of deletes are read.
    """
    rows = [one.row for one in head.manifests if one.row.content == ManifestContent.DELETES]
    rows = [row for row in rows if row.has_live_files]
    first = [row for row in rows if removal.may_match(row)]
    found = _read(head, first)
    if named - {removed_delete(entry.data_file) for entry in _all(found)}:
        found = _read(head, rows)
    return found


def _read(head: Head, rows: Sequence[ManifestFile]) -> dict[str, list[ManifestEntry]]:
    return {
        row.manifest_path: [entry for entry in entries if entry.is_live]
        for row, entries in zip(rows, head.entries(rows), strict=True)
    }


def _removed_deletes(
    live: _Entries, chosen: frozenset[RemovedDelete], removal: DeleteRemoval
) -> dict[str, list[ManifestEntry]]:
    found = {
        path: [e for e in entries if removed_delete(e.data_file) in chosen or removal.takes(e)]
        for path, entries in live.items()
    }
    return {path: entries for path, entries in found.items() if entries}


def _missing_deletes(wanted: frozenset[RemovedDelete], live: _Entries) -> Conflict | None:
    missing = sorted(wanted - {removed_delete(entry.data_file) for entry in _all(live)})
    if not missing:
        return None
    paths = tuple(one.file_path for one in missing[:PATHS_MAX])
    return Conflict(
        ConflictCode.MISSING,
        f"delete files that it removes are not live: {', '.join(paths)}",
        paths=paths,
    )


def _numbered(
    changes: Iterable[Change], vectors: StepVectors, new: NewManifests
) -> list[NumberedFile]:
    """Return the delete files to add, with the sequence number that their request gives them."""
    given = [
        (file, explicit_number(new.metadata, change))
        for change in changes
        for file in added_deletes(change)
    ]
    numbers = {removed_delete(file): number for file, number in given}
    plain = [(file, number) for file, number in given if not file.is_deletion_vector]
    return plain + [(file, numbers.get(removed_delete(file))) for file in vectors.added]


# --- The snapshot's summary ----------------------------------------------------------------------


def _label(changes: Sequence[Change]) -> str:
    """Return the operation of the snapshot: by what is asked for, not by what it did."""
    match changes[0].operation:
        case "overwrite":
            return _overwrite_label(changes)
        case "row-delta":
            return _row_delta_label(changes)
        case "rewrite-files" | "rewrite-manifests":
            return "replace"
        case "replace-partitions":
            return "overwrite"
        case operation:
            return operation


def _overwrite_label(changes: Sequence[Change]) -> str:
    adds, removes = any(map(_adds_data, changes)), any(map(_removes_data, changes))
    if adds == removes:
        return "overwrite"
    return "append" if adds else "delete"


def _row_delta_label(changes: Sequence[Change]) -> str:
    adds, removes = any(map(_adds_data, changes)), any(map(_removes_data, changes))
    adds_deletes = any(True for change in changes for _ in added_deletes(change))
    if adds and not adds_deletes and not removes:
        return "append"
    return "delete" if adds_deletes and not adds else "overwrite"


def _adds_data(change: Change) -> bool:
    return any(one.walked.paths and not one.walked.delete_files for one in change.added)


def _removes_data(change: Change) -> bool:
    return bool(change.removed_data_files) or change.row_filter not in (None, ALWAYS_FALSE)


def _manifest_counts(
    manifests: Sequence[ListedManifest], replaced: int, names: StepNames
) -> dict[str, int]:
    created = sum(one.row.added_snapshot_id == names.snapshot_id for one in manifests)
    return {
        "manifests-created": created,
        "manifests-kept": len(manifests) - created,
        "manifests-replaced": replaced,
    }


def _extra(changes: Sequence[Change]) -> dict[str, str]:
    if any(change.operation == REPLACE_PARTITIONS for change in changes):
        return {REPLACE_PARTITIONS: "true"}
    return {}
