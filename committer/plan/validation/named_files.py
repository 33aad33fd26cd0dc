"""Checks that the data files that an operation names are live. Codes `exist`, `missing`,
`partition`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from committer.iceberg.deletes.delete_index import partition_of
from committer.iceberg.deletes.position_deletes import referenced_data_file
from committer.iceberg.entry.data_file import DataFile, ManifestContent, ManifestEntry
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.plan.operations.conflict import PATHS_MAX, Conflict, ConflictCode
from committer.plan.operations.head import Head
from committer.plan.validation.loaded_manifests import Loaded

MayHold = Callable[[ManifestFile], bool]


@dataclass(frozen=True, slots=True)
class NamedFiles:
    """Looks up live data files by their paths.

    `may_hold`: which manifests are likely to list them. The others are read only if a file is in
    none of these.
    """

    head: Head
    paths: frozenset[str]
    may_hold: MayHold = lambda row: True

    def rows(self) -> Iterable[ManifestFile]:
        if not self.paths:
            return []
        return [row for row in self.head.live_rows(ManifestContent.DATA) if self.may_hold(row)]

    def find(self, loaded: Loaded) -> dict[str, ManifestEntry]:
        """Return the entries of those that are live, by their path."""
        found = _by_path(loaded.live(self.rows()), self.paths)
        if len(found) < len(self.paths):
            rows = self.head.live_rows(ManifestContent.DATA)
            unread = [row for row in rows if row.manifest_path not in loaded.entries]
            for entries in self.head.entries(unread):
                found |= _by_path((one for one in entries if one.is_live), self.paths)
        return found


def _by_path(entries: Iterable[ManifestEntry], paths: frozenset[str]) -> dict[str, ManifestEntry]:
    return {one.data_file.file_path: one for one in entries if one.data_file.file_path in paths}


@dataclass(frozen=True, slots=True)
class LiveCheck:
    """Refuses a change unless all the named files are live. `what`: their part in it."""

    files: NamedFiles
    code: ConflictCode
    what: str

    def rows(self) -> Iterable[ManifestFile]:
        return self.files.rows()

    def conflict(self, loaded: Loaded) -> Conflict | None:
        missing = sorted(self.files.paths - self.files.find(loaded).keys())
        if not missing:
            return None
        return Conflict(
            self.code,
            f"{len(missing)} data files that {self.what} are not live, first {missing[0]}: run the"
            " job again on the current table",
            paths=tuple(missing[:PATHS_MAX]),
        )


@dataclass(frozen=True, slots=True)
class PlaceCheck:
    """Refuses delete files that name a data file of another spec or partition: readers fail on
    these, or do not apply them. `added`: data files of the change itself, by their paths."""

    files: NamedFiles
    deletes: Sequence[DataFile]
    added: Mapping[str, DataFile]

    def rows(self) -> Iterable[ManifestFile]:
        return self.files.rows()

    def conflict(self, loaded: Loaded) -> Conflict | None:
        live = {path: one.data_file for path, one in self.files.find(loaded).items()}
        wrong = [one for one in self.deletes if _is_elsewhere(one, {**live, **self.added})]
        if not wrong:
            return None
        first = wrong[0]
        return Conflict(
            ConflictCode.OTHER_PARTITION,
            f"{len(wrong)} delete files are of another partition than the data file that they"
            f" name, first {first.file_path} of {referenced_data_file(first)}: write them for the"
            " spec and the partition of their data file",
            paths=tuple(one.file_path for one in wrong[:PATHS_MAX]),
        )


def _is_elsewhere(delete: DataFile, live: Mapping[str, DataFile]) -> bool:
    named = live.get(referenced_data_file(delete) or "")
    return named is not None and partition_of(named) != partition_of(delete)
