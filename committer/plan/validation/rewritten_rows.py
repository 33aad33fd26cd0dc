"""Checks that a rewrite keeps the rows of the files that it removes. Codes `missing`, `rows`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from committer.iceberg.entry.data_file import ManifestEntry
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.plan.operations.change import Change
from committer.plan.operations.conflict import PATHS_MAX, Conflict, ConflictCode, changed_rows
from committer.plan.validation.loaded_manifests import Loaded
from committer.plan.validation.named_files import NamedFiles
from committer.plan.validation.since import Since


@dataclass(frozen=True, slots=True)
class RewrittenRowsCheck:
    """A rewrite has read the files that it removes at its base: one that was adopted again since
    has rows back that were deleted by then. It adds no rows. Its sequence number is not below that
    of a file which it replaces, as older equality deletes would hit the new ones, and not above the
    base's, as those since the base would not. `added`: the rows of the data files to add, by path;
    None: they are counted here.
    """

    change: Change
    since: Since
    removed: NamedFiles
    added: Mapping[str, int] | None = None

    def rows(self) -> Iterable[ManifestFile]:
        return self.removed.rows()

    def conflict(self, loaded: Loaded) -> Conflict | None:
        live = self.removed.find(loaded).values()
        newer = sorted(one.data_file.file_path for one in live if self.since.is_new(one))
        if newer:
            return Conflict(
                ConflictCode.MISSING,
                f"{len(newer)} data files that it removes were added after its base, first"
                f" {newer[0]}: run the job again on the current table",
                paths=tuple(newer[:PATHS_MAX]),
            )
        before, after = sum(one.data_file.record_count for one in live), self._rows_after()
        if after > before:
            return changed_rows(f"it adds {after} rows in the place of {before}")
        return self._numbered_back(live)

    def _rows_after(self) -> int:
        left_out = self.change.left_out_data_files
        if not left_out:
            return sum(one.walked.added_rows_count for one in self.change.added_data)
        added = added_rows(self.change) if self.added is None else self.added
        return sum(rows for path, rows in added.items() if path not in left_out)

    def _numbered_back(self, live: Iterable[ManifestEntry]) -> Conflict | None:
        number = self.change.data_sequence_number
        if number is None:
            return None
        if number > self.since.sequence_number:
            return changed_rows(
                f"its files would have the sequence number {number}, above the"
                f" {self.since.sequence_number} of its base"
            )
        newer = [one for one in live if (one.sequence_number or 0) > number]
        if not newer:
            return None
        return changed_rows(
            f"its files would have the sequence number {number}, below the"
            f" {newer[0].sequence_number} of {newer[0].data_file.file_path}, which it removes",
            newer[0].data_file.file_path,
        )


def added_rows(change: Change) -> dict[str, int]:
    """Return the rows of each data file that a change adds, by its path. Decodes its manifests."""
    files = (file for one in change.added_data for file in one.files())
    return {file.file_path: file.record_count for file in files}
