"""Selects the data files that an operation removes: those that it names, those whose rows its
filter matches, those of the partitions that it replaces.

A manifest is read only if it can hold such a file. Source: docs/reference/iceberg-notes.md 13.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from committer.iceberg.deletes.delete_index import PartitionKey, partition_key_of
from committer.iceberg.entry.data_file import ManifestContent, ManifestEntry
from committer.iceberg.entry.drafts import new_entry
from committer.iceberg.expressions.expression import ALWAYS_FALSE, ALWAYS_TRUE, Expression
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.pruning.metrics_evaluator import (
    inclusive_metrics_evaluator,
    strict_metrics_evaluator,
)
from committer.iceberg.scan.entry_reader import FileFilter, iter_matching_files
from committer.iceberg.scan.partition_filter import PARTITIONS_MAX, partition_filter, says_all
from committer.iceberg.scan.scan_filter import scan_filter
from committer.iceberg.splice.manifest_filter import filter_manifest
from committer.iceberg.splice.manifest_merge import ManifestMerge, Removal
from committer.plan.batch.batch import manifest_context
from committer.plan.operations.change import Change, removed_delete
from committer.plan.operations.conflict import PATHS_MAX, Conflict, ConflictCode
from committer.plan.operations.head import Head, may_hold_any

REPLACE_PARTITIONS = "replace-partitions"


@dataclass(frozen=True, slots=True)
class Match:
    """The files of a manifest that are to be removed, and those of which only some rows are.
    `without`: the manifest without the files, if it is at hand.
    """

    entries: Sequence[ManifestEntry]
    partly: Sequence[str] = ()
    without: ManifestMerge | None = None


class Selection(Protocol):
    """Selects data files to remove."""

    def may_match(self, row: ManifestFile) -> bool:
        """Return whether a manifest of data may hold such files."""
        ...

    def match(self, row: ManifestFile, content: bytes) -> Match: ...


def find_removed_data(
    head: Head, changes: Sequence[Change], snapshot_id: int
) -> dict[str, ManifestMerge] | Conflict:
    """Return the manifests without the data files that these changes remove, by the path of the
    manifest whose place they take. `snapshot_id`: the snapshot that removes the files.

    A conflict: a named file is not live, or a filter matches a part of a file's rows.
    Errors: `MissingObjectsError`; those of reading manifests.
    """
    metadata = head.metadata
    selections = [one for change in changes for one in _selections(metadata, change, snapshot_id)]
    wanted = [
        (row, asked)
        for row in head.live_rows(ManifestContent.DATA)
        if (asked := [one for one in selections if one.may_match(row)])
    ]
    contents = head.manifest_contents([row for row, _ in wanted])
    found: dict[str, ManifestMerge] = {}
    partly: list[str] = []
    for (row, asked), content in zip(wanted, contents, strict=True):
        matches = [one.match(row, content) for one in asked]
        whole = {entry.data_file.file_path for match in matches for entry in match.entries}
        partly += [path for match in matches for path in match.partly if path not in whole]
        if partly:
            continue
        without = without_files(metadata, row, content, matches, snapshot_id)
        if without is not None:
            found[row.manifest_path] = without
    return _missing(changes, found) or _partial(partly) or found


def without_files(
    metadata: TableMetadata,
    row: ManifestFile,
    content: bytes,
    matches: Sequence[Match],
    snapshot_id: int,
) -> ManifestMerge | None:
    """Return a manifest without the files of all matches; None if there are none."""
    matches = [match for match in matches if match.entries]
    if len(matches) == 1 and matches[0].without is not None:
        return matches[0].without
    keys = {removed_delete(entry.data_file) for match in matches for entry in match.entries}
    removal = Removal(
        snapshot_id,
        frozenset(key.file_path for key in keys),
        lambda entry: removed_delete(entry.data_file) in keys,
    )
    if not keys:
        return None
    context = manifest_context(metadata, row.partition_spec_id, row.content)
    return filter_manifest(row, content, context, removal)


def _missing(changes: Sequence[Change], found: Mapping[str, ManifestMerge]) -> Conflict | None:
    named = frozenset[str]().union(*(change.removed_data_files for change in changes))
    live = {entry.data_file.file_path for one in found.values() for entry in one.removed}
    missing = sorted(named - live)[:PATHS_MAX]
    if not missing:
        return None
    return Conflict(
        ConflictCode.MISSING,
        f"data files that it removes are not live: {', '.join(missing)}",
        paths=tuple(missing),
    )


def _partial(partly: Sequence[str]) -> Conflict | None:
    if not partly:
        return None
    paths = tuple(partly[:PATHS_MAX])
    return Conflict(
        ConflictCode.PARTIAL_MATCH,
        "some, but not all rows are to be removed of data files that can only be removed whole:"
        f" {', '.join(paths)}",
        paths=paths,
    )


def _selections(metadata: TableMetadata, change: Change, snapshot_id: int) -> list[Selection]:
    found: list[Selection] = []
    if change.removed_data_files:
        found.append(_NamedFiles(metadata, Removal(snapshot_id, change.removed_data_files)))
    if change.row_filter not in (None, ALWAYS_FALSE):
        found.append(_MatchingFiles(metadata, change.row_filter, change.case_sensitive))
    if change.operation == REPLACE_PARTITIONS:
        found += _replaced(metadata, change.added_partitions())
    return found


# --- Named files ---------------------------------------------------------------------------------


class _NamedFiles:
    """Nothing but their paths is known of them: every manifest may list them."""

    def __init__(self, metadata: TableMetadata, removal: Removal) -> None:
        self._metadata, self._removal = metadata, removal

    def may_match(self, row: ManifestFile) -> bool:
        return True

    def match(self, row: ManifestFile, content: bytes) -> Match:
        context = manifest_context(self._metadata, row.partition_spec_id, row.content)
        without = filter_manifest(row, content, context, self._removal)
        return Match(without.removed if without else (), without=without)


# --- Files whose rows match ----------------------------------------------------------------------


class _MatchingFiles:
    """Files of which all rows match a filter, by their partition or their metrics."""

    def __init__(
        self, metadata: TableMetadata, row_filter: Expression, case_sensitive: bool
    ) -> None:
        self._metadata, schema = metadata, metadata.current_schema
        self._scan = scan_filter(metadata, row_filter, case_sensitive=case_sensitive)
        self._may_match = cache(
            lambda residual: inclusive_metrics_evaluator(schema, residual, case_sensitive)
        )
        self._must_match = cache(
            lambda residual: strict_metrics_evaluator(schema, residual, case_sensitive)
        )

    def may_match(self, row: ManifestFile) -> bool:
        return self._scan.may_match_manifest(row)

    def match(self, row: ManifestFile, content: bytes) -> Match:
        wanted = FileFilter(
            residual=self._scan.residual(row.partition_spec_id),
            may_match=self._scan.may_match_file,
            field_ids=self._scan.field_ids,
            keeps_metrics=True,
        )
        spec = self._metadata.spec_by_id(row.partition_spec_id)
        entries: list[ManifestEntry] = []
        partly: list[str] = []
        for head, file, residual in iter_matching_files(content, row, spec, wanted):
            if residual == ALWAYS_TRUE or self._must_match(residual)(file):
                entries.append(new_entry(head, file))
            elif self._may_match(residual)(file):
                partly.append(file.file_path)
        return Match(entries, partly)


# --- Files of replaced partitions ----------------------------------------------------------------


def _replaced(
    metadata: TableMetadata, replaced: Mapping[int, Mapping[PartitionKey, tuple[object, ...]]]
) -> Iterable[Selection]:
    for spec_id, by_key in replaced.items():
        if metadata.spec_by_id(spec_id).is_unpartitioned:
            yield _MatchingFiles(metadata, ALWAYS_TRUE, True)
            continue
        yield _FilesOfPartitions(metadata, spec_id, by_key)
        partitions = tuple(by_key.values())
        if len(metadata.partition_specs) > 1:
            for start in range(0, len(partitions), PARTITIONS_MAX):
                yield _FilesOfOtherSpecs(
                    metadata, spec_id, partitions[start : start + PARTITIONS_MAX]
                )


class _FilesOfPartitions:
    """All files of some partitions of one spec."""

    def __init__(
        self,
        metadata: TableMetadata,
        spec_id: int,
        partitions: Mapping[PartitionKey, tuple[object, ...]],
    ) -> None:
        self._metadata, self._spec_id, self._partitions = metadata, spec_id, partitions

    def may_match(self, row: ManifestFile) -> bool:
        if row.partition_spec_id != self._spec_id:
            return False
        return may_hold_any(self._metadata, row, self._partitions.values())

    def match(self, row: ManifestFile, content: bytes) -> Match:
        spec = self._metadata.spec_by_id(self._spec_id)
        found = iter_matching_files(content, row, spec, FileFilter(self._residual))
        return Match([new_entry(head, file) for head, file, _ in found])

    def _residual(self, partition: tuple[object, ...]) -> Expression | None:
        return (
            ALWAYS_TRUE if partition_key_of(self._spec_id, partition) in self._partitions else None
        )


class _FilesOfOtherSpecs:
    """Files of other specs, all of whose rows are in some partitions of this one.

    Iceberg Java leaves them live beside the files that replace the partitions. Here a file that may
    have some of those rows, and others, matches partly.
    """

    def __init__(
        self, metadata: TableMetadata, spec_id: int, partitions: Sequence[tuple[object, ...]]
    ) -> None:
        spec, schema = metadata.spec_by_id(spec_id), metadata.current_schema
        self._spec_id = spec_id
        self._files = _MatchingFiles(metadata, partition_filter(spec, schema, partitions), True)
        self._says_all = all(says_all(spec, schema, one) for one in partitions)

    def may_match(self, row: ManifestFile) -> bool:
        return row.partition_spec_id != self._spec_id and self._files.may_match(row)

    def match(self, row: ManifestFile, content: bytes) -> Match:
        match = self._files.match(row, content)
        if self._says_all:
            return match
        return Match((), [*(e.data_file.file_path for e in match.entries), *match.partly])
