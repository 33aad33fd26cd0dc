"""The result of a step's changes: the branch's manifests after them, and the snapshot's summary.

`plan/validation/` decides whether they may land; here they conflict only where there is no right
result. Source: docs/reference/iceberg-notes.md 5.2, 13.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from committer.iceberg.entry.data_file import ManifestContent, ManifestEntry
from committer.iceberg.expressions.expression import ALWAYS_FALSE
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.splice.manifest_merge import ManifestMerge
from committer.plan.batch.batch import manifest_context
from committer.plan.file_changes.clustering import cluster_manifests
from committer.plan.file_changes.data_removal import (
    REPLACE_PARTITIONS,
    Match,
    find_removed_data,
    without_files,
)
from committer.plan.file_changes.delete_removal import DeleteRemoval, named_deletes
from committer.plan.file_changes.new_manifests import (
    NewManifests,
    NumberedFile,
    explicit_number,
    list_added_data,
    list_added_deletes,
)
from committer.plan.file_changes.rewritten_deletes import check_rewritten_deletes
from committer.plan.file_changes.tally import Tally
from committer.plan.file_changes.vector_union import (
    StepVectors,
    unite_vectors,
)
from committer.plan.ledger.state import ListedManifest
from committer.plan.operations.change import Change, RemovedDelete, removed_delete
from committer.plan.operations.conflict import PATHS_MAX, Conflict, ConflictCode
from committer.plan.operations.head import Head, ObjectRange
from committer.plan.operations.step_output import Produced, StepNames

# The entries of manifests, by their path.
_Entries = Mapping[str, Sequence[ManifestEntry]]


def produce(head: Head, changes: Sequence[Change], names: StepNames) -> Produced | Conflict:
    """Return the branch after the changes of one step.

    A rewrite of manifests is alone in its step. Only manifests that list a removed file are written
    anew. Two changes that remove one file conflict, but for a vector in whose place both have one.
    Errors: `MissingObjectsError`; those of reading manifests and vectors.
    """
    if any(change.operation == "rewrite-manifests" for change in changes):
        return cluster_manifests(head, names, changes[0].rewritten_manifests)
    data = find_removed_data(head, changes, names.snapshot_id)
    if isinstance(data, Conflict):
        return data
    new, tally = NewManifests(head.metadata, names), Tally(head.metadata)
    added_data = list_added_data(new, changes, tally)
    kept_data = _kept(head, ManifestContent.DATA, data, new, tally)
    removed_data = [entry for one in data.values() for entry in one.removed]
    oldest = _oldest_data(kept_data, changes, new)
    removal = DeleteRemoval(head.metadata, changes, removed_data, oldest)
    live = _live_deletes(head, removal, named_deletes(changes))
    vectors = unite_vectors(head, changes, _all(live), names)
    if isinstance(vectors, Conflict):
        return vectors
    chosen = named_deletes(changes) | vectors.superseded
    missing = _missing_deletes(chosen - vectors.gone, live) or _removed_twice(changes, vectors)
    refused = missing or check_rewritten_deletes(changes, _all(live), new)
    if refused is not None:
        return refused
    deletes = _without_deletes(head, live, chosen, removal, new)
    new_deletes = list_added_deletes(new, _numbered(changes, vectors, new), tally)
    kept_deletes = _kept(head, ManifestContent.DELETES, deletes, new, tally)
    manifests = (*added_data, *kept_data, *new_deletes, *kept_deletes)
    return Produced(
        _label(changes),
        manifests,
        {**tally.counts(), **_manifest_counts(manifests, len(data) + len(deletes), names)},
        {**tally.partition_entries(), **_extra(changes)},
        (*new.objects, *vectors.objects),
        (*removed_data, *(entry for one in deletes.values() for entry in one.removed)),
    )


def _all(found: _Entries) -> list[ManifestEntry]:
    return [entry for entries in found.values() for entry in entries]


# --- Manifests of the branch ---------------------------------------------------------------------


def _kept(
    head: Head,
    content: ManifestContent,
    without: Mapping[str, ManifestMerge],
    new: NewManifests,
    tally: Tally,
) -> list[ListedManifest]:
    """Return the branch's manifests of one content in their order, with those in place that lack
    the removed files.

    One that has no live files is left out, unless it became so now: its entries say of the snapshot
    which files it has removed.
    """
    listed: list[ListedManifest] = []
    for one in head.manifests:
        if one.row.content != content:
            continue
        filtered = without.get(one.row.manifest_path)
        if filtered is not None:
            tally.remove(filtered.removed)
            context = manifest_context(head.metadata, one.row.partition_spec_id, one.row.content)
            listed.append(new.listed(filtered.finish(new.sync()), context, one.row))
        elif one.row.has_live_files:
            listed.append(one)
    return listed


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
    rows = head.live_rows(ManifestContent.DELETES)
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


def _without_deletes(
    head: Head,
    live: _Entries,
    chosen: frozenset[RemovedDelete],
    removal: DeleteRemoval,
    new: NewManifests,
) -> dict[str, ManifestMerge]:
    """Return the manifests of deletes without the chosen files and those that apply to nothing."""
    found: dict[str, ManifestMerge] = {}
    rows = {one.row.manifest_path: one.row for one in head.manifests}
    for path, entries in live.items():
        gone = [e for e in entries if removed_delete(e.data_file) in chosen or removal.takes(e)]
        if gone:
            (content,) = head.contents([ObjectRange(path)])
            match = Match(gone)
            snapshot_id = new.names.snapshot_id
            without = without_files(head.metadata, rows[path], content, [match], snapshot_id)
            if without is not None:
                found[path] = without
    return found


def _missing_deletes(wanted: frozenset[RemovedDelete], live: _Entries) -> Conflict | None:
    there = {removed_delete(entry.data_file) for entry in _all(live)}
    missing = sorted(wanted - there, key=_order)
    if not missing:
        return None
    first = missing[:PATHS_MAX]
    names = ", ".join(map(_deletes_name, first))
    message = f"delete files that it removes are not live: {names}"
    siblings = sorted((one for one in there if one.file_path == first[0].file_path), key=_order)
    if siblings:
        shown = ", ".join(map(_range_text, siblings[:PATHS_MAX]))
        message += f"; live of {first[0].file_path}: {shown}, {len(siblings)} in all"
    return Conflict(ConflictCode.MISSING, message, paths=tuple(one.file_path for one in first))


def _order(one: RemovedDelete) -> tuple[str, int, int]:
    return one.file_path, one.content_offset or 0, one.content_size_in_bytes or 0


def _deletes_name(one: RemovedDelete) -> str:
    """Return the path, of a deletion vector with its place in the Puffin file."""
    is_puffin = one.file_path.endswith(".puffin")
    has_range = one.content_offset is not None or one.content_size_in_bytes is not None
    return f"{one.file_path} ({_range_text(one)})" if is_puffin or has_range else one.file_path


def _range_text(one: RemovedDelete) -> str:
    if one.content_offset is None and one.content_size_in_bytes is None:
        return "no `content-offset` and `content-size-in-bytes`"
    return f"offset {one.content_offset}, size {one.content_size_in_bytes}"


def _removed_twice(changes: Sequence[Change], vectors: StepVectors) -> Conflict | None:
    """Find a file that two changes of a step remove: for one of them it is not live any more."""
    both = vectors.superseded | vectors.gone
    removed = Counter(
        path
        for change in changes
        for path in (
            *change.removed_data_files,
            *(one.file_path for one in change.removed_delete_files - both),
        )
    )
    paths = sorted(path for path, count in removed.items() if count > 1)[:PATHS_MAX]
    if not paths or len(changes) == 1:
        return None
    return Conflict(
        ConflictCode.MISSING,
        f"files that it removes are removed by another request too: {', '.join(paths)}",
        paths=tuple(paths),
    )


def _numbered(
    changes: Iterable[Change], vectors: StepVectors, new: NewManifests
) -> list[NumberedFile]:
    """Return the delete files to add, with the sequence number that their request gives them."""
    given = [
        (file, explicit_number(new.metadata, change))
        for change in changes
        for file in change.added_deletes()
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
        case "rewrite-files":
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
    adds_deletes = any(True for change in changes for _ in change.added_deletes())
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
