"""The results of compactions, as their callers get them. Values only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FailedGroup:
    """A group of files that was not rewritten, and why.

    `in_doubt`: no answer came, so it may have been, or may be yet.
    """

    files: int
    size_bytes: int
    message: str
    in_doubt: bool = False


@dataclass(frozen=True, slots=True)
class RewriteResult:
    """The result of a compaction: files and bytes before and after, of the groups that landed.

    `snapshot_ids`: of the snapshots that it made, in their order. `removed_delete_files`: how many
    applied to nothing any more, and went (option `remove-dangling-deletes`).
    """

    rewritten_files: int = 0
    added_files: int = 0
    rewritten_bytes: int = 0
    added_bytes: int = 0
    failed_groups: tuple[FailedGroup, ...] = ()
    snapshot_ids: tuple[int, ...] = ()
    removed_delete_files: int = 0


@dataclass(frozen=True, slots=True)
class DeletesResult:
    """The result of a rewrite of delete files, of the groups that landed: the files and bytes
    that went, and those that came. Of a deletion vector its own bytes count.

    `snapshot_ids`: of the snapshots that it made, in their order.
    """

    rewritten_delete_files: int = 0
    added_delete_files: int = 0
    rewritten_bytes: int = 0
    added_bytes: int = 0
    failed_groups: tuple[FailedGroup, ...] = ()
    snapshot_ids: tuple[int, ...] = ()
