"""Checks that no one else added data files that may hold rows in scope. Code `added`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from committer.iceberg.entry.data_file import ManifestContent
from committer.iceberg.expressions.expression import ALWAYS_TRUE
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.plan.operations.conflict import Conflict, ConflictCode
from committer.plan.operations.head import Head
from committer.plan.validation.loaded_manifests import Loaded, conflict_with
from committer.plan.validation.named_files import NamedFiles
from committer.plan.validation.rewrites import without_rewritten
from committer.plan.validation.scopes import FilterScope, Scope
from committer.plan.validation.since import Since


@dataclass(frozen=True, slots=True)
class AddedCheck:
    """Checks that no one else added data files in scope since the base. Rewritten files do not
    count: their rows were in the base.

    `read`: files that the operation has surely read. If its scope does not match one of them, it
    says less than what was read, and everything counts.
    """

    head: Head
    since: Since
    scope: Scope
    read: NamedFiles | None = None

    def rows(self) -> Iterable[ManifestFile]:
        yield from self._rows(self.scope)
        if self.read is not None:
            yield from self.read.rows()

    def _rows(self, scope: Scope) -> Iterable[ManifestFile]:
        return filter(scope.may_hold, self.since.rows(self.head, ManifestContent.DATA))

    def conflict(self, loaded: Loaded) -> Conflict | None:
        scope = self._true_scope(loaded)
        rows = list(self._rows(scope))
        unread = [row for row in rows if row.manifest_path not in loaded.entries]
        entries = chain(
            loaded.live(row for row in rows if row not in unread),
            (one for some in self.head.entries(unread) for one in some if one.is_live),
        )
        found = [
            one for one in entries if self.since.is_new(one) and scope.may_match(one.data_file)
        ]
        others = without_rewritten(found, self.head, self.since)
        if not others:
            return None
        what = f"data files that may hold {scope.text}"
        return conflict_with(ConflictCode.ADDED, others, "added", what)

    def _true_scope(self, loaded: Loaded) -> Scope:
        read = () if self.read is None else self.read.find(loaded).values()
        if all(self.scope.may_match(one.data_file) for one in read):
            return self.scope
        return FilterScope(self.head.metadata, ALWAYS_TRUE)


@dataclass(frozen=True, slots=True)
class NumberedBackCheck:
    """Checks that no one else added data files that deletes of the base may apply to. Such a file
    has a sequence number that the base had reached: a rewrite gives it.

    Asked where delete files are removed that apply to nothing. What a rollback has brought back is
    no newer than the base: its history must be there.
    """

    head: Head
    since: Since

    def rows(self) -> Iterable[ManifestFile]:
        for row in self.head.live_rows(ManifestContent.DATA):
            is_old = row.min_sequence_number <= self.since.sequence_number
            if is_old and self.since.may_hold_new(row):
                yield row

    def conflict(self, loaded: Loaded) -> Conflict | None:
        if not self.since.is_whole:
            return Conflict(
                ConflictCode.HISTORY,
                "the history since its base has expired, and may have brought older data back:"
                " run the job again on the current table",
            )
        found = [
            one
            for one in loaded.live(self.rows())
            if self.since.is_new(one) and (one.sequence_number or 0) <= self.since.sequence_number
        ]
        if not found:
            return None
        what = "data files with sequence numbers of before its base"
        return conflict_with(ConflictCode.ADDED, found, "added", what)
