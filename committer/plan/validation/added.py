"""Did others add data files that may hold rows in scope? Code `added`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from committer.iceberg.entry.data_file import ManifestContent
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.plan.operations.conflict import Conflict, ConflictCode
from committer.plan.operations.head import Head
from committer.plan.validation.loaded_manifests import Loaded, conflict_with, live_rows
from committer.plan.validation.rewrites import without_rewritten
from committer.plan.validation.scopes import Scope
from committer.plan.validation.since import Since


@dataclass(frozen=True, slots=True)
class AddedCheck:
    """Rewritten files do not count: their rows were there."""

    head: Head
    since: Since
    scope: Scope

    def rows(self) -> Iterable[ManifestFile]:
        for row in live_rows(self.head, ManifestContent.DATA):
            if self.since.may_hold_new(row) and self.scope.may_hold(row):
                yield row

    def conflict(self, loaded: Loaded) -> Conflict | None:
        found = [
            one
            for one in loaded.live(self.rows())
            if self.since.is_new(one) and self.scope.may_match(one.data_file)
        ]
        others = without_rewritten(found, self.head, self.since)
        if not others:
            return None
        what = f"data files that may hold {self.scope.text}"
        return conflict_with(ConflictCode.ADDED, others, "added", what)
