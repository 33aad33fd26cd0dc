"""The change of one request: what it adds to a branch and removes from it, and what must not have
happened since its client read the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from committer.iceberg.deletes.delete_index import PartitionKey, partition_key_of
from committer.iceberg.deletes.position_deletes import referenced_data_file
from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.expressions.expression import Expression
from committer.plan.batch.request_check import CheckedRequest
from committer.plan.batch.submitted_manifest import CheckedManifest
from committer.request.needs import Needs

IsolationLevel = Literal["serializable", "snapshot"]


@dataclass(frozen=True, slots=True, order=True)
class RemovedDelete:
    """A delete file to remove. A deletion vector is told from its siblings in one Puffin file by
    its offset and size, which are None for other files.
    """

    file_path: str
    content_offset: int | None = None
    content_size_in_bytes: int | None = None


def removed_delete(file: DataFile) -> RemovedDelete:
    """Return how a file is named to be removed."""
    return RemovedDelete(file.file_path, file.content_offset, file.content_size_in_bytes)


@dataclass(frozen=True, slots=True)
class RewriteGroup:
    """Files that a rewrite replaces by others, apart from its other groups."""

    removed_data_files: frozenset[str]
    added_data_files: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """The state that a client has read. Both None: it has read nothing, and nothing that has
    happened since can conflict with it.
    """

    snapshot_id: int | None = None
    sequence_number: int | None = None

    @classmethod
    def of(cls, needs: Needs) -> Base:
        return cls(snapshot_id=needs.base_snapshot_id, sequence_number=needs.base_sequence_number)

    @property
    def is_known(self) -> bool:
        """Whether the client has read the table."""
        return self.snapshot_id is not None or self.sequence_number is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """`operation`: by the name that the request gives it. The fields are those of its `needs`
    (docs/reference/commit-request.schema.json), typed.

    `added`: its manifests, of data and of deletes. `referenced_data_files`: those that have to be
    live, with the ones that its deletion vectors name. `updates_rows`: the rows that it deletes
    come again in the files that it adds. `groups`: parts of a rewrite that may land without the
    others; `left_out_data_files`: those of its added files whose group does not land.
    `rewritten_manifests`: the only ones to cluster, if there are some.
    """

    operation: str
    base: Base
    added: tuple[CheckedManifest, ...] = ()
    row_filter: Expression | None = None
    conflict_filter: Expression | None = None
    case_sensitive: bool = True
    isolation_level: IsolationLevel | None = None
    added_files_match_filter: bool = False
    removed_data_files: frozenset[str] = frozenset()
    removed_delete_files: frozenset[RemovedDelete] = frozenset()
    referenced_data_files: frozenset[str] = frozenset()
    updates_rows: bool = False
    append_only: bool = False
    data_sequence_number: int | None = None
    groups: tuple[RewriteGroup, ...] = ()
    left_out_data_files: frozenset[str] = frozenset()
    rewritten_manifests: frozenset[str] = frozenset()

    @classmethod
    def of(cls, checked: CheckedRequest) -> Change:
        """Return the change of a checked request."""
        request, needs = checked.request, checked.request.needs
        vectors = (
            file.referenced_data_file
            for manifest in checked.manifests
            for file in manifest.walked.delete_files
            if file.is_deletion_vector
        )
        return cls(
            operation=request.operation,
            base=Base.of(needs),
            added=checked.manifests,
            row_filter=checked.filters.row,
            conflict_filter=checked.filters.conflict,
            case_sensitive=needs.case_sensitive,
            isolation_level=needs.isolation_level,
            added_files_match_filter=needs.added_files_match_filter,
            removed_data_files=frozenset(needs.removed_data_files),
            removed_delete_files=frozenset(
                RemovedDelete(one.file_path, one.content_offset, one.content_size_in_bytes)
                for one in needs.removed_delete_files
            ),
            referenced_data_files=frozenset(
                (*needs.referenced_data_files, *(path for path in vectors if path is not None))
            ),
            updates_rows=needs.updates_rows,
            append_only=needs.append_only,
            data_sequence_number=needs.data_sequence_number,
            groups=tuple(
                RewriteGroup(frozenset(one.removed_data_files), frozenset(one.added_data_files))
                for one in needs.groups
            ),
            rewritten_manifests=frozenset(needs.rewritten_manifests),
        )

    @property
    def added_data(self) -> tuple[CheckedManifest, ...]:
        """Its manifests of data files."""
        return tuple(one for one in self.added if one.is_of_data)

    def added_deletes(self) -> Iterator[DataFile]:
        """Yield the delete files that it adds, with the ids of their partition specs. Not those of
        left out data files: they would dangle."""
        left_out = self.left_out_data_files
        for manifest in self.added:
            for file in manifest.delete_files():
                if not left_out or referenced_data_file(file) not in left_out:
                    yield file

    def added_partitions(self) -> dict[int, dict[PartitionKey, tuple[object, ...]]]:
        """Return the partitions that it adds data files to, by their key and by their spec."""
        found: dict[int, dict[PartitionKey, tuple[object, ...]]] = {}
        for manifest in self.added_data:
            known = found.setdefault(manifest.spec_id, {})
            for partition in manifest.walked.partitions:
                known[partition_key_of(manifest.spec_id, partition)] = partition
        return found

    def without_groups(self, lost: Iterable[RewriteGroup]) -> Change:
        """Return a rewrite without some of its groups: their files stay as they are, and the files
        that were to replace them are not added."""
        groups = frozenset(lost)
        removed = frozenset[str]().union(*(one.removed_data_files for one in groups))
        added = frozenset[str]().union(*(one.added_data_files for one in groups))
        return replace(
            self,
            removed_data_files=self.removed_data_files - removed,
            groups=tuple(one for one in self.groups if one not in groups),
            left_out_data_files=self.left_out_data_files | added,
        )

    def only(self, group: RewriteGroup) -> Change:
        """Return a rewrite without its other groups."""
        others = (one.added_data_files for one in self.groups if one is not group)
        return replace(
            self,
            removed_data_files=group.removed_data_files,
            groups=(group,),
            left_out_data_files=self.left_out_data_files.union(*others),
        )
