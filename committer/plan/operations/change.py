"""The change of one request: what it adds to a branch and removes from it, and what must not have
happened since its client read the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from committer.iceberg.expressions.expression import Expression
from committer.plan.batch.submitted_manifest import CheckedManifest

IsolationLevel = Literal["serializable", "snapshot"]


@dataclass(frozen=True, slots=True, order=True)
class RemovedDelete:
    """A delete file to remove. A deletion vector is told from its siblings in one Puffin file by
    its offset and size, which are None for other files.
    """

    file_path: str
    content_offset: int | None = None
    content_size_in_bytes: int | None = None


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """`operation`: by the name that the request gives it. The fields are those of its `needs`
    (docs/reference/commit-request.schema.json), typed.

    `added`: its manifests, of data and of deletes. `referenced_data_files`: those that have to be
    live, with the ones that its deletion vectors name. `updates_rows`: the rows that it deletes
    come again in the files that it adds. `groups`: parts of a rewrite that may land without the
    others.
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
