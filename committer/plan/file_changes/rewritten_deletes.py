"""Checks that the delete files of a rewrite may take the place of those that it replaces.

An equality delete hits data of lower sequence numbers only. Under a higher number it deletes rows
that came after it, under a lower one deleted rows return. So the numbers have to be the same; what
the files hold is not read.

Position deletes and vectors hit data of equal numbers too. Under a lower number than that of a
delete which they replace they would miss data that it hits. And a compaction based on a state
between the two numbers has not seen that delete, but would take its successor for an older one.
Source: the specification, "Scan Planning" (the scope rules of deletes).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from committer.iceberg.deletes.position_deletes import referenced_data_file
from committer.iceberg.entry.data_file import (
    DataFile,
    ManifestEntry,
    is_equality_delete_file,
    is_position_delete_file,
)
from committer.plan.file_changes.new_manifests import NewManifests, explicit_number
from committer.plan.operations.change import Change, removed_delete
from committer.plan.operations.conflict import PATHS_MAX, Conflict, changed_rows


def check_rewritten_deletes(
    changes: Iterable[Change], live: Sequence[ManifestEntry], new: NewManifests
) -> Conflict | None:
    """Return the conflict of a rewrite that adds equality deletes under another sequence number
    than that of one which it removes, or removes none; or any deletes under a number below that of
    one which they replace. `live`: at least the delete files that the changes remove by name, and
    those that may apply to the data files of their vectors.
    """
    for change in changes:
        added = list(change.added_deletes()) if change.operation == "rewrite-files" else []
        equality = next(filter(is_equality_delete_file, added), None)
        conflict = None if equality is None else _disagreement(change, equality, live, new)
        conflict = conflict or _numbered_back(change, added, live, new)
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


def _numbered_back(
    change: Change, added: Sequence[DataFile], live: Iterable[ManifestEntry], new: NewManifests
) -> Conflict | None:
    number = explicit_number(new.metadata, change)
    if number is None or not added:
        return None
    with_vectors = {one.referenced_data_file for one in added if one.is_deletion_vector}
    newer = [
        one
        for one in live
        if (one.sequence_number or 0) > number and _is_replaced(one.data_file, change, with_vectors)
    ]
    if not newer:
        return None
    first = max(newer, key=lambda one: one.sequence_number or 0)
    return changed_rows(
        f"its delete file {added[0].file_path} would have the sequence number {number}, below the"
        f" {first.sequence_number} of {first.data_file.file_path}, which it replaces: name that"
        " number as `data-sequence-number`",
        first.data_file.file_path,
    )


def _is_replaced(file: DataFile, change: Change, with_vectors: Collection[str | None]) -> bool:
    """Return whether a change removes a delete file: by name, or as position deletes of a data file
    that it adds a vector for. A vector that others have added is united with that."""
    if removed_delete(file) in change.removed_delete_files:
        return True
    return is_position_delete_file(file) and referenced_data_file(file) in with_vectors
