"""The rows that an operation rests on: which files of others may hold some of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from committer.errors import InvalidMetadataError
from committer.iceberg.deletes.delete_index import PartitionKey, partition_of
from committer.iceberg.entry.data_file import DataFile, ManifestContent, is_equality_delete_file
from committer.iceberg.expressions.expression import ALWAYS_TRUE, Expression
from committer.iceberg.expressions.expression_text import print_text
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.scan.entry_reader import with_metrics_of
from committer.iceberg.scan.partition_filter import partition_filter
from committer.iceberg.scan.scan_filter import scan_filter
from committer.plan.operations.change import Change

_TEXT_MAX = 200


class Scope(Protocol):
    """Rows of a table. `text` names them in a message."""

    @property
    def text(self) -> str: ...

    def may_hold(self, row: ManifestFile) -> bool:
        """Return whether a manifest may list files that `may_match`."""

    def may_match(self, file: DataFile) -> bool:
        """Return whether a data file may hold, or a delete file hit, such rows."""


class FilterScope:
    """The rows that a filter matches, bound to the current schema."""

    def __init__(
        self, metadata: TableMetadata, filter: Expression, *, case_sensitive: bool = True
    ) -> None:
        self._filter = filter
        self._scan = scan_filter(metadata, filter, case_sensitive=case_sensitive)

    @property
    def text(self) -> str:
        if self._filter == ALWAYS_TRUE:
            return "the table"
        text = f"rows with {print_text(self._filter)}"
        return text if len(text) <= _TEXT_MAX else text[:_TEXT_MAX] + "…"

    def may_hold(self, row: ManifestFile) -> bool:
        return self._scan.may_match_manifest(row)

    def may_match(self, file: DataFile) -> bool:
        try:
            if self._scan.residual(file.spec_id)(file.partition) is None:
                return False
            may_match = self._scan.may_match_file
            return may_match is None or may_match(_of_rows(file))
        except InvalidMetadataError:
            # Values that another engine has written wrong prove nothing.
            return True


def _of_rows(file: DataFile) -> DataFile:
    """Keep the metrics that are also those of the rows which a delete file hits: the columns that
    it compares. Position deletes and vectors have none of them."""
    if file.manifest_content is ManifestContent.DATA:
        return file
    return with_metrics_of(file, frozenset(file.equality_ids or ()))


@dataclass(frozen=True, slots=True)
class PartitionScope:
    """The rows of some partitions. Of files of other specs their values decide."""

    keys: frozenset[PartitionKey]
    spec_ids: frozenset[int]
    others: FilterScope
    text: str

    def may_hold(self, row: ManifestFile) -> bool:
        return self.others.may_hold(row)

    def may_match(self, file: DataFile) -> bool:
        if file.spec_id in self.spec_ids:
            return partition_of(file) in self.keys
        return self.others.may_match(file)


@dataclass(frozen=True, slots=True)
class DeletedPositionsScope:
    """The rows of data files that some position delete files apply to, where these do not say which
    files they are: all of their specs and partitions. `everywhere`: the specs whose equality
    deletes hit files of any partition."""

    keys: frozenset[PartitionKey]
    everywhere: frozenset[int]
    text = "rows that its position deletes may be for"

    def may_hold(self, row: ManifestFile) -> bool:
        return True

    def may_match(self, file: DataFile) -> bool:
        if is_equality_delete_file(file) and file.spec_id in self.everywhere:
            return True
        return partition_of(file) in self.keys


def replaced_scope(metadata: TableMetadata, change: Change) -> Scope:
    """Return the partitions that a change adds data files to; all, if their spec has no fields."""
    partitions = change.added_partitions()
    specs = {spec_id: metadata.spec_by_id(spec_id) for spec_id in partitions}
    if any(spec.is_unpartitioned for spec in specs.values()):
        return FilterScope(metadata, ALWAYS_TRUE)
    # One spec, as the request's check has seen to.
    ((spec_id, found),) = partitions.items()
    filter = partition_filter(specs[spec_id], metadata.current_schema, list(found.values()))
    text = f"{len(found)} partitions of spec {spec_id}"
    others = FilterScope(metadata, filter)
    return PartitionScope(frozenset(found), frozenset({spec_id}), others, text)
