"""Checks that no one else deleted rows in scope by delete files, or moved rows of a DELETE. Code
`newdel`.

Deletes of rows that an operation copies are the matter of `file_deletes.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from committer.iceberg.deletes.delete_index import PartitionKey, partition_of
from committer.iceberg.entry.data_file import (
    ManifestContent,
    ManifestEntry,
    is_position_delete_file,
)
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.metadata.snapshot import Snapshot
from committer.plan.operations.conflict import Conflict, ConflictCode
from committer.plan.operations.head import Head
from committer.plan.validation.file_deletes import deletes_on
from committer.plan.validation.loaded_manifests import Loaded, conflict_with
from committer.plan.validation.named_files import NamedFiles
from committer.plan.validation.rewrites import without_rewritten
from committer.plan.validation.scopes import Scope
from committer.plan.validation.since import Since

_ADDED_DATA = "added-data-files"
_ADDED_DELETES = "added-delete-files"
_REMOVED_DELETES = "removed-delete-files"
_OTHER_CHANGES = frozenset({_ADDED_DELETES, _REMOVED_DELETES, "deleted-data-files"})


@dataclass(frozen=True, slots=True)
class NewDeletesCheck:
    """Any new delete in scope counts."""

    head: Head
    since: Since
    scope: Scope

    def rows(self) -> Iterable[ManifestFile]:
        return filter(self.scope.may_hold, self.since.rows(self.head, ManifestContent.DELETES))

    def conflict(self, loaded: Loaded) -> Conflict | None:
        found = [
            one
            for one in loaded.live(self.rows())
            if self.since.is_new(one) and self.scope.may_match(one.data_file)
        ]
        others = without_rewritten(found, self.head, self.since)
        if not others:
            return None
        what = f"delete files that may hit {self.scope.text}"
        return conflict_with(ConflictCode.NEW_DELETES, others, "added", what)


@dataclass(frozen=True, slots=True)
class MovedRowsCheck:
    """An UPDATE deletes a row by its position, and adds it again in a data file of its snapshot.

    A DELETE that has not seen that hits the old position only, and the row survives it. Deletion
    vectors are compared by their positions instead, where the two are united.

    `targets`: the data files that the change names as those of its position deletes; `unnamed`:
    the partitions of position deletes of which nothing says whose they are.

    The summary of a retained snapshot counts its additions, also once their files were rewritten.
    Of an expired one nothing tells: it may have moved rows if there is newer data of which no
    retained snapshot says that it was only appended.
    """

    head: Head
    since: Since
    targets: NamedFiles
    unnamed: frozenset[PartitionKey] = frozenset()

    def rows(self) -> Iterable[ManifestFile]:
        yield from self.since.rows(self.head, ManifestContent.DELETES)
        yield from self.targets.rows()

    def conflict(self, loaded: Loaded) -> Conflict | None:
        newer = [
            one
            for one in loaded.live(self.since.rows(self.head, ManifestContent.DELETES))
            if self.since.is_new(one) and is_position_delete_file(one.data_file)
        ]
        if not newer:
            return None
        hit = deletes_on(self.targets.find(loaded).values(), newer, self.head.metadata)
        paths = {one.data_file.file_path for one in hit}
        found = [
            one
            for one in newer
            if one.data_file.file_path in paths or partition_of(one.data_file) in self.unnamed
        ]
        moved = self._of_updates(without_rewritten(found, self.head, self.since))
        if not moved:
            return None
        what = "position delete files, beside data files, that may have moved rows it deletes"
        return conflict_with(ConflictCode.NEW_DELETES, moved, "added", what)

    def _of_updates(self, found: list[ManifestEntry]) -> list[ManifestEntry]:
        """Leave out those whose snapshots have moved no rows."""
        told = self._told_by_summaries()
        is_any_untold = any(one.snapshot_id not in told for one in found)
        may_have_moved = is_any_untold and self._has_untold_data()
        return [one for one in found if told.get(one.snapshot_id, may_have_moved)]

    def _told_by_summaries(self) -> Mapping[int | None, bool]:
        """Return which retained snapshots may have moved rows; not those whose summary has no
        counts. One that has replaced new delete files may have carried those of any update on.
        """
        told: dict[int | None, bool] = {}
        counted = {one.snapshot_id: _counted(one) for one in self.since.later}
        any_update = not self.since.is_whole or any(
            {_ADDED_DATA, _ADDED_DELETES} <= one for one in counted.values()
        )
        for snapshot_id, one in counted.items():
            if _ADDED_DATA in one:
                told[snapshot_id] = True
            elif _ADDED_DELETES in one:
                told[snapshot_id] = _REMOVED_DELETES in one and any_update
        return told

    def _has_untold_data(self) -> bool:
        """Return whether live data files hold rows that are newer than the base, which no retained
        snapshot has appended."""
        rows = list(self.since.rows(self.head, ManifestContent.DATA))
        entries = (one for some in self.head.entries(rows) for one in some if one.is_live)
        appends = {one.snapshot_id for one in self.since.later if _only_appends(_counted(one))}
        found = [
            one for one in entries if self.since.is_new(one) and one.snapshot_id not in appends
        ]
        return bool(without_rewritten(found, self.head, self.since))


def _counted(snapshot: Snapshot) -> frozenset[str]:
    """Return which keys of its summary are not zero."""
    return frozenset(key for key, text in (snapshot.summary or {}).items() if text != "0")


def _only_appends(counted: frozenset[str]) -> bool:
    return _ADDED_DATA in counted and counted.isdisjoint(_OTHER_CHANGES)
