"""Checks that the new files of a rewrite may take the place of the equality delete files it joins.

An equality delete hits data of lower sequence numbers only. Under a higher number it deletes rows
that came after it, under a lower one deleted rows return. So the numbers have to be the same; what
the files hold is not read.
Source: the specification, "Scan Planning" (the scope rules of deletes).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from committer.iceberg.entry.data_file import DataFile, ManifestEntry, is_equality_delete_file
from committer.plan.file_changes.new_manifests import NewManifests, explicit_number
from committer.plan.operations.change import Change, removed_delete
from committer.plan.operations.conflict import PATHS_MAX, Conflict, changed_rows


def check_joined(
    changes: Iterable[Change], live: Sequence[ManifestEntry], new: NewManifests
) -> Conflict | None:
    """Return the conflict of a rewrite that adds equality deletes under another sequence number
    than that of one which it removes, or removes none. `live`: at least the delete files that the
    changes remove by name.
    """
    for change in changes:
        if change.operation != "rewrite-files":
            continue
        added = next(filter(is_equality_delete_file, change.added_deletes()), None)
        if added is not None:
            conflict = _disagreement(change, added, live, new)
            if conflict is not None:
                return conflict
    return None


def _disagreement(
    change: Change, added: DataFile, live: Iterable[ManifestEntry], new: NewManifests
) -> Conflict | None:
    given = explicit_number(new.metadata, change)
    number = new.names.sequence_number if given is None else given
    removed = [
        one
        for one in live
        if is_equality_delete_file(one.data_file)
        and removed_delete(one.data_file) in change.removed_delete_files
    ]
    if not removed:
        return changed_rows(f"it adds the equality delete file {added.file_path}, and removes none")
    others = [one for one in removed if one.sequence_number != number]
    if not others:
        return None
    others.sort(key=lambda one: one.data_file.file_path)
    return changed_rows(
        f"its equality delete file {added.file_path} would have the sequence number {number}, and"
        f" {len(others)} that it removes have another, first {others[0].sequence_number} of"
        f" {others[0].data_file.file_path}, expected the same: join those of one sequence number,"
        " and name it as `data-sequence-number`",
        *(one.data_file.file_path for one in others[:PATHS_MAX]),
    )
