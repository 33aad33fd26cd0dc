"""The checks of an operation, in the order in which their answers count.

Nothing but the branch's head is asked, where that is enough: files are newer than the base by their
sequence numbers, and named files are live or not. What came and went since is missed, rightly.
Source: docs/reference/iceberg-notes.md 12.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from committer.iceberg.deletes.delete_index import PartitionKey, partition_of
from committer.iceberg.deletes.position_deletes import referenced_data_file
from committer.iceberg.entry.data_file import DataFile, DataFileContent, is_position_delete_file
from committer.iceberg.expressions.expression import ALWAYS_TRUE, Expression, Or
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.plan.operations.change import Change, RewriteGroup
from committer.plan.operations.conflict import Conflict, ConflictCode
from committer.plan.operations.head import Head, may_hold_any
from committer.plan.validation.added import AddedCheck, NumberedBackCheck
from committer.plan.validation.added_within import AddedWithinCheck
from committer.plan.validation.deleted import DeletedCheck
from committer.plan.validation.file_deletes import (
    NUMBERED_BACK,
    REPLACED,
    UPDATED,
    FileDeletesCheck,
)
from committer.plan.validation.loaded_manifests import Check, dealt, load
from committer.plan.validation.named_files import LiveCheck, MayHold, NamedFiles, PlaceCheck
from committer.plan.validation.new_deletes import (
    MovedRowsCheck,
    NewDeletesCheck,
)
from committer.plan.validation.partitions_empty import PartitionsEmptyCheck
from committer.plan.validation.rewritten_rows import (
    RewrittenNumberCheck,
    RewrittenRowsCheck,
    added_rows,
)
from committer.plan.validation.scopes import (
    DeletedPositionsScope,
    FilterScope,
    Scope,
    replaced_scope,
)
from committer.plan.validation.since import Since, never_was, since_base


def validate(change: Change, head: Head) -> Conflict | None:
    """Return what has happened since the change's base that it cannot land beside.

    Removed delete files are looked up by `produce`, which unites deletion vectors.
    Errors: `MissingObjectsError`; those of reading manifests.
    """
    rests = _rests_on_base(change)
    since = since_base(change.base, head) if rests else never_was(change.base, head)
    if isinstance(since, Conflict):
        return since
    checks = list(_checks(change, head, since))
    loaded = load(head, checks)
    return next(filter(None, (check.conflict(loaded) for check in checks)), None)


def lost_groups(change: Change, head: Head) -> list[RewriteGroup]:
    """Return the groups of a rewrite that cannot land, each validated as if it were alone.

    The manifests that the checks ask for are read and walked once for all groups: the work does not
    grow with the files of the branch times the groups. Errors: as `validate`.
    """
    since = since_base(change.base, head)
    if isinstance(since, Conflict):
        return list(change.groups)
    loaded = load(head, list(_of_rewrite(change, head, since)))
    rows = added_rows(change)
    shared = change.referenced_data_files
    lost: list[RewriteGroup] = []
    for group, own in zip(change.groups, dealt(loaded, change.groups, shared), strict=True):
        checks = _of_rewrite(change.only(group), head, since, rows)
        if any(check.conflict(own) for check in checks):
            lost.append(group)
    return lost


def _rests_on_base(change: Change) -> bool:
    return change.base.is_known and (
        change.operation in ("row-delta", "rewrite-files") or change.isolation_level is not None
    )


def _checks(change: Change, head: Head, since: Since | None) -> Iterator[Check]:
    match change.operation:
        case "overwrite":
            yield from _of_overwrite(change, head, since)
        case "replace-partitions":
            yield from _of_replaced_partitions(change, head, since)
        case "delete":
            yield _missing(_removed(change, head))
        case "row-delta":
            yield from _of_row_delta(change, head, since)
        case "rewrite-files":
            yield from _of_rewrite(change, head, since)


def _of_overwrite(change: Change, head: Head, since: Since | None) -> Iterator[Check]:
    if change.added_files_match_filter:
        yield AddedWithinCheck(head.metadata, change)
    removed = _removed(change, head)
    if since is not None:
        yield from _since_overwritten(change, head, since, removed)
    yield _missing(removed)


def _since_overwritten(
    change: Change, head: Head, since: Since, removed: NamedFiles
) -> Iterator[Check]:
    removed_rows = _removed_scope(change, head)
    if change.isolation_level == "serializable":
        yield AddedCheck(head, since, _scope(change, head, removed_rows), removed)
    if removed_rows is not None:
        yield NewDeletesCheck(head, since, removed_rows)
        yield DeletedCheck(head, since, removed_rows)
    if removed.paths:
        yield FileDeletesCheck(head, since, removed)


def _of_replaced_partitions(change: Change, head: Head, since: Since | None) -> Iterator[Check]:
    scope = replaced_scope(head.metadata, change)
    if since is not None:
        if change.isolation_level == "serializable":
            yield AddedCheck(head, since, scope)
        yield DeletedCheck(head, since, scope)
        yield NewDeletesCheck(head, since, scope)
    if change.append_only:
        yield PartitionsEmptyCheck(head, scope)


def _of_row_delta(change: Change, head: Head, since: Since | None) -> Iterator[Check]:
    deletes = list(change.added_deletes())
    added = _added_data(change, deletes)
    referenced = _referenced(change, head, deletes, added)
    yield LiveCheck(referenced, ConflictCode.NOT_LIVE, "it deletes rows of")
    yield PlaceCheck(referenced, deletes, added)
    removed = _removed(change, head)
    if since is not None:
        scope = _scope(change, head)
        unnamed = _unnamed_partitions(change, deletes)
        if unnamed:
            yield DeletedCheck(head, since, _of_positions(head, unnamed))
        if change.isolation_level == "serializable":
            yield AddedCheck(head, since, scope, referenced)
        if change.updates_rows:
            yield FileDeletesCheck(head, since, removed)
            yield FileDeletesCheck(head, since, referenced, UPDATED)
            if unnamed:
                yield NewDeletesCheck(head, since, _of_positions(head, unnamed))
            if not _names_all_that_it_reads(change, referenced):
                yield NewDeletesCheck(head, since, scope)
        elif change.isolation_level is not None and any(map(is_position_delete_file, deletes)):
            yield MovedRowsCheck(head, since, referenced, unnamed)
    yield _missing(removed)


def _of_rewrite(
    change: Change, head: Head, since: Since | None, rows: Mapping[str, int] | None = None
) -> Iterator[Check]:
    """Yield the checks of a rewrite. `rows`: those of the data files that it adds, by path, where
    they are known."""
    deletes = list(change.added_deletes())
    added = _added_data(change, deletes)
    referenced = _referenced(change, head, deletes, added)
    removed = _removed(change, head)
    number = change.data_sequence_number
    if since is not None and removed.paths:
        copied = REPLACED if number is None else NUMBERED_BACK
        yield FileDeletesCheck(head, since, removed, copied)
    elif since is not None and not deletes:
        yield NumberedBackCheck(head, since)
    yield LiveCheck(referenced, ConflictCode.NOT_LIVE, "its delete files are of")
    yield PlaceCheck(referenced, deletes, added)
    yield _missing(removed)
    if since is not None and removed.paths:
        yield RewrittenRowsCheck(change, since, removed, rows)
    if since is not None and number is not None:
        yield RewrittenNumberCheck(number, since, removed, referenced)


# --- What a change looks at ----------------------------------------------------------------------


def _scope(change: Change, head: Head, removed: Scope | None = None) -> Scope:
    """Return the rows that the change has read: those of its conflict filter, else those that it
    removes if it does so by filter alone, else all. What it removes it has read. `removed`: its
    `_removed_scope`, if that is at hand."""
    filter = change.conflict_filter
    if filter is not None or not change.removed_data_files:
        removed = removed or _removed_scope(change, head)
        if removed is not None:
            return removed
    return _filter_scope(change, head, ALWAYS_TRUE if filter is None else filter)


def _removed_scope(change: Change, head: Head) -> Scope | None:
    """Return the rows that a row filter removes, with those of the conflict filter; None if there
    is no row filter."""
    removed, filter = change.row_filter, change.conflict_filter
    if removed is None:
        return None
    return _filter_scope(change, head, removed if filter is None else Or.of(filter, removed))


def _filter_scope(change: Change, head: Head, filter: Expression) -> Scope:
    return FilterScope(head.metadata, filter, case_sensitive=change.case_sensitive)


def _missing(removed: NamedFiles) -> Check:
    return LiveCheck(removed, ConflictCode.MISSING, "it removes")


def _removed(change: Change, head: Head) -> NamedFiles:
    """Return the data files to remove. A scan with the conflict filter has found them: they are
    in manifests that it matches."""
    if change.conflict_filter is None:
        return NamedFiles(head, change.removed_data_files)
    return NamedFiles(head, change.removed_data_files, _scope(change, head).may_hold)


def _referenced(
    change: Change, head: Head, deletes: list[DataFile], added: Mapping[str, DataFile]
) -> NamedFiles:
    """Return the data files that have to be live: those that are named, and those that added
    delete files are for alone. Not those of the change itself."""
    named = {path for one in deletes if (path := referenced_data_file(one)) is not None}
    paths = (change.referenced_data_files | named) - added.keys() - change.left_out_data_files
    return NamedFiles(head, paths, _holds_one_of(head, deletes))


def _unnamed_partitions(change: Change, deletes: list[DataFile]) -> frozenset[PartitionKey]:
    """Return the partitions of position deletes for files that nothing names: neither the delete
    file, by itself or its bounds, nor the change."""
    if change.referenced_data_files:
        return frozenset()
    return frozenset(
        partition_of(one)
        for one in deletes
        if one.content is DataFileContent.POSITION_DELETES and referenced_data_file(one) is None
    )


def _added_data(change: Change, deletes: list[DataFile]) -> dict[str, DataFile]:
    """Return the data files that a change adds, where its delete files may be for them."""
    if not deletes:
        return {}
    return {file.file_path: file for one in change.added_data for file in one.files()}


def _holds_one_of(head: Head, deletes: list[DataFile]) -> MayHold:
    """Return a test whether a manifest may list files of the partitions of these delete files."""
    partitions = {partition_of(one): one.partition for one in deletes}
    by_spec: defaultdict[int, list[tuple[object, ...]]] = defaultdict(list)
    for (spec_id, _), partition in partitions.items():
        by_spec[spec_id].append(partition)

    def may_hold(row: ManifestFile) -> bool:
        found = by_spec.get(row.partition_spec_id, ())
        return not by_spec or may_hold_any(head.metadata, row, found)

    return may_hold


def _of_positions(head: Head, unnamed: frozenset[PartitionKey]) -> DeletedPositionsScope:
    specs = head.metadata.partition_specs
    return DeletedPositionsScope(
        unnamed, frozenset(one.spec_id for one in specs if one.is_unpartitioned)
    )


def _names_all_that_it_reads(change: Change, referenced: NamedFiles) -> bool:
    """Return whether only the rows of these files count for an update: not if a row that it has
    read and left alone counts too, and not if it deletes rows of files that it does not name.
    """
    if change.isolation_level == "serializable" or not referenced.paths:
        return False
    unnamed = any(referenced_data_file(one) is None for one in change.added_deletes())
    return not unnamed or bool(change.referenced_data_files)
