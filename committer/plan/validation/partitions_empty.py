"""Checks that the partitions are empty that an operation may only append to. Code `live`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from committer.iceberg.entry.data_file import ManifestContent
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.plan.operations.conflict import PATHS_MAX, Conflict, ConflictCode
from committer.plan.operations.head import Head
from committer.plan.validation.loaded_manifests import Loaded
from committer.plan.validation.scopes import Scope


@dataclass(frozen=True, slots=True)
class PartitionsEmptyCheck:
    head: Head
    scope: Scope

    def rows(self) -> Iterable[ManifestFile]:
        rows = self.head.live_rows(ManifestContent.DATA)
        return (row for row in rows if self.scope.may_hold(row))

    def conflict(self, loaded: Loaded) -> Conflict | None:
        live = loaded.live(self.rows())
        paths = [one.data_file.file_path for one in live if self.scope.may_match(one.data_file)]
        if not paths:
            return None
        return Conflict(
            ConflictCode.ALREADY_LIVE,
            f"{len(paths)} data files are live in the partitions that it may only append to, first"
            f" {paths[0]}",
            paths=tuple(paths[:PATHS_MAX]),
        )
