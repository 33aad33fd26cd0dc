"""Checks that no one else removed data files that held rows in scope. Code `deleted`.

The head does not list what is gone: the history since the base is read, and where it has expired
the operation conflicts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from committer.iceberg.entry.data_file import ManifestContent, ManifestEntry
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.plan.operations.conflict import Conflict, ConflictCode
from committer.plan.operations.head import Head
from committer.plan.validation.history import removed_since
from committer.plan.validation.loaded_manifests import Loaded, conflict_with
from committer.plan.validation.scopes import Scope
from committer.plan.validation.since import Since


@dataclass(frozen=True, slots=True)
class DeletedCheck:
    """Files that came and went since the base do not count."""

    head: Head
    since: Since
    scope: Scope

    def rows(self) -> Iterable[ManifestFile]:
        return ()

    def conflict(self, loaded: Loaded) -> Conflict | None:
        if self.since.is_all:
            return None
        removed = removed_since(self.head, self.since)
        if removed is None:
            return Conflict(
                ConflictCode.HISTORY,
                f"the history since its base, sequence number {self.since.sequence_number}, has"
                f" expired, so files of {self.scope.text} may have been removed unseen: run the job"
                " again on the current table",
            )
        found = [one for one in removed if self._was_in_scope(one)]
        if not found:
            return None
        what = f"data files that may have held {self.scope.text}"
        return conflict_with(ConflictCode.DELETED, found, "removed", what)

    def _was_in_scope(self, entry: ManifestEntry) -> bool:
        file, number = entry.data_file, entry.file_sequence_number or 0
        is_data = file.manifest_content is ManifestContent.DATA
        return is_data and number <= self.since.sequence_number and self.scope.may_match(file)
