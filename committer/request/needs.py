"""The part of a commit request that says what its operation removes, and what must not have
happened since its client read the table.

Each operation has its own needs (`check_needs`): a need that it does not know is refused, because
its client expects a check that would not be made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, JsonValue, model_validator

from committer.iceberg.entry.data_file import DataFile
from committer.request.request_model import FIRST_ERROR, Count, Model, Name, finite

# Of each list: as objects a path takes a few hundred bytes.
FILES_NAMED_MAX = 20_000

Operation = Literal[
    "append",
    "overwrite",
    "replace-partitions",
    "delete",
    "row-delta",
    "rewrite-files",
    "rewrite-manifests",
    "cherry-pick",
    "alter",
]
TAKE_DELETES: frozenset[Operation] = frozenset({"row-delta", "rewrite-files"})
FilePath = Annotated[str, Field(min_length=1, max_length=4096)]
FilePaths = Annotated[tuple[FilePath, ...], Field(max_length=FILES_NAMED_MAX), FIRST_ERROR]
SnapshotId = Annotated[int, Field(ge=0, le=2**63 - 1)]


def _is_filter(value: object) -> object:
    """Refuse anything else with a sentence: of a union pydantic names each member's problem."""
    if not isinstance(value, dict | bool):
        raise ValueError(
            "expected an expression, which is a JSON object, or `true` or `false` without quotes"
        )
    return finite(value)


Filter = Annotated[dict[str, JsonValue] | bool, BeforeValidator(_is_filter)]


class RemovedDeleteFile(Model):
    """A delete file to remove. A deletion vector is named with its place in the Puffin file, as its
    siblings have the same path.
    """

    file_path: FilePath
    content_offset: Count | None = None
    content_size_in_bytes: Count | None = None

    @classmethod
    def of(cls, file: DataFile) -> Self:
        """Name a delete file to remove."""
        if not file.is_deletion_vector:
            return cls(file_path=file.file_path)
        return cls(
            file_path=file.file_path,
            content_offset=file.content_offset,
            content_size_in_bytes=file.content_size_in_bytes,
        )

    @model_validator(mode="after")
    def _whole_place(self) -> Self:
        if (self.content_offset is None) != (self.content_size_in_bytes is None):
            raise ValueError("expected `content-offset` and `content-size-in-bytes` together")
        return self


class RewriteGroup(Model):
    """Files of a rewrite that replace others, and may land without the other groups."""

    removed_data_files: Annotated[FilePaths, Field(min_length=1)]
    added_data_files: FilePaths = ()


class Needs(Model):
    """The files that an operation removes, and the state that it rests on.

    `base_snapshot_id`, `base_sequence_number`: the snapshot that the client has read; 0 of an empty
    table. `row_filter`: rows to remove, by whole files. `conflict_filter`: the rows that others
    must not have changed; all without one. `referenced_data_files`: they have to be live.
    `updates_rows`: the deleted rows come again in the files that are added. `append_only`: the
    partitions must be empty. `rewritten_manifests`: those of the branch that are written anew; all
    of data without any. `on_conflict`: keep a request that conflicts, or only say so.
    """

    base_snapshot_id: SnapshotId | None = None
    base_sequence_number: Count | None = None
    row_filter: Filter | None = None
    added_files_match_filter: bool = False
    conflict_filter: Filter | None = None
    case_sensitive: bool = True
    isolation_level: Literal["serializable", "snapshot"] | None = None
    removed_data_files: FilePaths = ()
    removed_delete_files: Annotated[
        tuple[RemovedDeleteFile, ...], Field(max_length=FILES_NAMED_MAX), FIRST_ERROR
    ] = ()
    referenced_data_files: FilePaths = ()
    updates_rows: bool = False
    data_sequence_number: Count | None = None
    groups: Annotated[tuple[RewriteGroup, ...], Field(max_length=1_000), FIRST_ERROR] = ()
    append_only: bool = False
    rewritten_manifests: FilePaths = ()
    source_snapshot_id: SnapshotId | None = None
    wap_id: Name | None = None
    on_conflict: Literal["quarantine", "fail"] = "quarantine"

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        # A plain append, as most requests are, says nothing here.
        if not self.model_fields_set:
            return self
        self._take_files_of_groups()
        _refuse_repeated("removed-data-files", self.removed_data_files)
        _refuse_repeated("referenced-data-files", self.referenced_data_files)
        _refuse_repeated("removed-delete-files", self.removed_delete_files)
        _refuse_repeated("rewritten-manifests", self.rewritten_manifests)
        if not set(self.removed_data_files).isdisjoint(self.referenced_data_files):
            raise ValueError("a data file is in `removed-data-files` and `referenced-data-files`")
        if self.added_files_match_filter and self.row_filter is None:
            raise ValueError("expected `row-filter` with `added-files-match-filter`")
        if self.isolation_level is not None and not self.has_base:
            raise ValueError(f"expected {_BASE} with `isolation-level`")
        if self.updates_rows and not self.has_base:
            raise ValueError(f"expected {_BASE} with `updates-rows`")
        is_checked = self.isolation_level is not None or self.updates_rows
        if self.conflict_filter is not None and not is_checked:
            raise ValueError("expected `isolation-level` or `updates-rows` with `conflict-filter`")
        self._check_groups()
        return self

    def _take_files_of_groups(self) -> None:
        """Let the removed files be those of the groups, where these alone name them."""
        if self.groups and not self.removed_data_files:
            removed = tuple(path for group in self.groups for path in group.removed_data_files)
            if len(removed) > FILES_NAMED_MAX:
                raise ValueError(f"expected at most {FILES_NAMED_MAX} files in all of `groups`")
            object.__setattr__(self, "removed_data_files", removed)

    def _check_groups(self) -> None:
        removed = [path for group in self.groups for path in group.removed_data_files]
        added = [path for group in self.groups for path in group.added_data_files]
        _refuse_repeated("groups", removed)
        _refuse_repeated("groups", added)
        if self.groups and set(removed) != set(self.removed_data_files):
            raise ValueError(
                "expected each of `removed-data-files` in one of `groups`, or no"
                " `removed-data-files`: then those of `groups` are removed"
            )
        if self.groups and self.removed_delete_files:
            raise ValueError(
                "expected no `removed-delete-files` with `groups`: those of a removed"
                " data file alone go with it"
            )

    @property
    def has_base(self) -> bool:
        return self.base_snapshot_id is not None or self.base_sequence_number is not None

    @property
    def removes_files(self) -> bool:
        """Whether files are removed, by their names or by a filter."""
        named = self.removed_data_files or self.removed_delete_files
        return bool(named) or self.row_filter is not None

    @property
    def named_files(self) -> tuple[str, ...]:
        """The files that are named to be removed, to be live, or to be written anew."""
        deletes = (one.file_path for one in self.removed_delete_files)
        data = (*self.removed_data_files, *self.referenced_data_files)
        return (*data, *deletes, *self.rewritten_manifests)

    def said(self) -> frozenset[str]:
        """Return the names of the needs that differ from their defaults."""
        fields = type(self).model_fields
        set_ = self.model_fields_set
        return frozenset(one for one in set_ if getattr(self, one) != fields[one].default)


_BASE = "`base-snapshot-id` or `base-sequence-number`"


def _refuse_repeated(name: str, values: Iterable[object]) -> None:
    found = list(values)
    if len(set(found)) != len(found):
        raise ValueError(f"`{name}` names a file twice")


# --- Needs of each operation ---------------------------------------------------------------------

_OF_ALL = frozenset({"on_conflict"})
_OF_BASE = frozenset({"base_snapshot_id", "base_sequence_number"})
_OF_SCOPE = frozenset({"conflict_filter", "case_sensitive", "isolation_level"})
_OF_FILES = frozenset({"removed_data_files", "removed_delete_files"})
_OF_FILTER = frozenset({"row_filter", "added_files_match_filter"})
_OF_OPERATION: Mapping[Operation, frozenset[str]] = {
    "append": _OF_BASE,
    "overwrite": _OF_BASE | _OF_SCOPE | _OF_FILES | _OF_FILTER,
    "replace-partitions": _OF_BASE | {"isolation_level", "append_only"},
    "delete": _OF_BASE | {"row_filter", "case_sensitive", "removed_data_files"},
    "row-delta": _OF_BASE | _OF_SCOPE | _OF_FILES | {"referenced_data_files", "updates_rows"},
    "rewrite-files": _OF_BASE
    | _OF_FILES
    | {"data_sequence_number", "groups", "referenced_data_files"},
    "rewrite-manifests": frozenset({"rewritten_manifests"}),
    "cherry-pick": frozenset({"source_snapshot_id", "wap_id"}),
    "alter": frozenset(),
}


def check_needs(operation: Operation, needs: Needs, *, adds_files: bool) -> None:
    """Refuse needs that the operation does not have, and an operation without what it needs.

    Errors: `ValueError` with a sentence.
    """
    for name in sorted(needs.said() - _OF_OPERATION[operation] - _OF_ALL):
        raise ValueError(f"operation `{operation}` does not take `{name.replace('_', '-')}`")
    match operation:
        case "append" | "replace-partitions":
            if not adds_files:
                raise ValueError(f"expected at least one manifest or file with `{operation}`")
        case "delete":
            _check_delete(needs, adds_files=adds_files)
        case "overwrite" | "row-delta":
            if not adds_files and not needs.removes_files:
                raise ValueError(f"expected `{operation}` to add or remove something")
        case "rewrite-files":
            _check_rewrite(needs)
        case "cherry-pick":
            if (needs.source_snapshot_id is None) == (needs.wap_id is None):
                raise ValueError("expected either `source-snapshot-id` or `wap-id`")
    if operation in ("rewrite-manifests", "cherry-pick", "alter") and adds_files:
        raise ValueError(f"expected no manifests and no files with `{operation}`")


def _check_delete(needs: Needs, *, adds_files: bool) -> None:
    if adds_files:
        raise ValueError("expected no manifests and no files with `delete`: it only removes files")
    if not needs.removes_files:
        raise ValueError("expected `row-filter` or `removed-data-files` with `delete`")


def _check_rewrite(needs: Needs) -> None:
    if not needs.removed_data_files and not needs.removed_delete_files:
        raise ValueError(
            "expected `removed-data-files`, `groups` or `removed-delete-files` with `rewrite-files`"
        )
    if not needs.has_base:
        raise ValueError(f"expected {_BASE} with `rewrite-files`: deletes since then would be lost")
