"""Did others delete rows in scope by delete files? Code `newdel`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from committer.iceberg.entry.data_file import ManifestContent, ManifestEntry
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.plan.operations.conflict import Conflict, ConflictCode
from committer.plan.operations.head import Head
from committer.plan.validation.file_deletes import deletes_on
from committer.plan.validation.loaded_manifests import Loaded, conflict_with
from committer.plan.validation.named_files import NamedFiles
from committer.plan.validation.rewrites import without_rewritten
from committer.plan.validation.scopes import Scope
from committer.plan.validation.since import Since


@dataclass(frozen=True, slots=True)
class NewDeletesCheck:
    """`updated`: the only data files whose rows matter, where the operation names all of them.
    Deletion vectors on those are united by their positions, and no conflict here.
    """

    head: Head
    since: Since
    scope: Scope
    updated: NamedFiles | None = None

    def rows(self) -> Iterable[ManifestFile]:
        yield from self._rows()
        if self.updated is not None:
            yield from self.updated.rows()

    def _rows(self) -> Iterable[ManifestFile]:
        for row in self.head.live_rows(ManifestContent.DELETES):
            if self.since.may_hold_new(row) and self.scope.may_hold(row):
                yield row

    def conflict(self, loaded: Loaded) -> Conflict | None:
        found = [
            one
            for one in loaded.live(self._rows())
            if self.since.is_new(one) and self.scope.may_match(one.data_file)
        ]
        others = self._that_matter(without_rewritten(found, self.head, self.since), loaded)
        if not others:
            return None
        what = f"delete files that may hit {self.scope.text}"
        return conflict_with(ConflictCode.NEW_DELETES, others, "added", what)

    def _that_matter(self, found: list[ManifestEntry], loaded: Loaded) -> list[ManifestEntry]:
        if self.updated is None or not found:
            return found
        targets = self.updated.find(loaded).values()
        no_vectors = [one for one in found if not one.data_file.is_deletion_vector]
        return deletes_on(targets, no_vectors, self.head.metadata)
