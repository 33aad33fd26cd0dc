"""Selects the delete files that an operation removes besides those it names: those that apply to
nothing any more.

Nothing is left for upkeep where a manifest's row tells that it has such a file: its smallest
sequence number, or its partitions. A position delete file of one removed data file stays until it
is older than all data, and the deletes of a removed data file's partition likewise: readers never
apply them, and to find them each commit would read every manifest of deletes.
Source: docs/reference/iceberg-notes.md 6.7, 13.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from committer.iceberg.deletes.delete_index import PartitionKey, partition_of
from committer.iceberg.entry.data_file import DataFile, DataFileContent, ManifestEntry
from committer.iceberg.expressions.expression import ALWAYS_FALSE, ALWAYS_TRUE, Expression
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.pruning.metrics_evaluator import strict_metrics_evaluator
from committer.iceberg.scan.entry_reader import with_metrics_of
from committer.iceberg.scan.scan_filter import scan_filter
from committer.plan.file_changes.data_removal import REPLACE_PARTITIONS
from committer.plan.operations.change import Change, RemovedDelete
from committer.plan.operations.head import may_hold_any


class DeleteRemoval:
    """The delete files that a step removes. `data`: the data files that it removes; `oldest`: the
    smallest sequence number of the data that stays or is added.
    """

    def __init__(
        self,
        metadata: TableMetadata,
        changes: Sequence[Change],
        data: Iterable[ManifestEntry],
        oldest: int,
    ) -> None:
        self._metadata, self._oldest = metadata, oldest
        self._data = {entry.data_file.file_path for entry in data}
        self._filters = [
            _MatchingDeletes(metadata, row_filter, change.case_sensitive)
            for change in changes
            if (row_filter := _row_filter(metadata, change)) is not None
        ]
        self._replaced = _replaced(changes)
        files = [entry.data_file for entry in data] if metadata.format_version > 2 else []
        files += (one for change in changes for one in change.added_deletes())
        self._partitions = _by_spec(
            file for file in files if not file.content or file.is_deletion_vector
        )
        for spec_id, partitions in self._replaced.items():
            self._partitions.setdefault(spec_id, {}).update(partitions)

    def may_match(self, row: ManifestFile) -> bool:
        """Return whether a manifest may have delete files that apply to nothing any more, or to
        data files that the step has a vector for."""
        if self._data and row.min_sequence_number < self._oldest:
            return True
        partitions = self._partitions.get(row.partition_spec_id)
        if partitions and may_hold_any(self._metadata, row, partitions.values()):
            return True
        return any(one.may_match(row) for one in self._filters)

    def takes(self, entry: ManifestEntry) -> bool:
        """Return whether a live delete file applies to nothing once the step has landed."""
        file = entry.data_file
        if 0 < (entry.sequence_number or 0) < self._oldest:
            return True
        if file.is_deletion_vector and file.referenced_data_file in self._data:
            return True
        if partition_of(file) in self._replaced.get(file.spec_id, {}):
            return True
        return any(one.takes(file) for one in self._filters)


def _row_filter(metadata: TableMetadata, change: Change) -> Expression | None:
    """Return the filter on rows of which nothing stays; None if there is none."""
    if change.operation == REPLACE_PARTITIONS:
        specs = map(metadata.spec_by_id, change.added_partitions())
        return ALWAYS_TRUE if any(spec.is_unpartitioned for spec in specs) else None
    return None if change.row_filter == ALWAYS_FALSE else change.row_filter


_Partitions = dict[int, dict[PartitionKey, tuple[object, ...]]]


def _replaced(changes: Sequence[Change]) -> _Partitions:
    found: _Partitions = {}
    for change in changes:
        if change.operation == REPLACE_PARTITIONS:
            for spec_id, partitions in change.added_partitions().items():
                found.setdefault(spec_id, {}).update(partitions)
    return found


def _by_spec(files: Iterable[DataFile]) -> _Partitions:
    found: _Partitions = {}
    for file in files:
        found.setdefault(file.spec_id, {})[partition_of(file)] = file.partition
    return found


class _MatchingDeletes:
    """Delete files that only apply to rows which a filter matches. Those that may apply to others
    stay."""

    def __init__(
        self, metadata: TableMetadata, row_filter: Expression, case_sensitive: bool
    ) -> None:
        schema = metadata.current_schema
        self._scan = scan_filter(metadata, row_filter, case_sensitive=case_sensitive)
        self._must_match = cache(
            lambda residual: strict_metrics_evaluator(schema, residual, case_sensitive)
        )

    def may_match(self, row: ManifestFile) -> bool:
        return self._scan.may_match_manifest(row)

    def takes(self, file: DataFile) -> bool:
        residual = self._scan.residual(file.spec_id)(file.partition)
        if residual is None or residual == ALWAYS_TRUE:
            return residual is not None
        if file.content != DataFileContent.EQUALITY_DELETES:
            return False
        # Other columns of a delete file say nothing about the rows that it deletes.
        compared = with_metrics_of(file, frozenset(file.equality_ids or ()))
        return bool(self._must_match(residual)(compared))


def named_deletes(changes: Sequence[Change]) -> frozenset[RemovedDelete]:
    """Return the delete files that the requests of a step remove by name."""
    return frozenset[RemovedDelete]().union(*(one.removed_delete_files for one in changes))
