"""Checks that a rewrite keeps the rows of the files that it removes, and the deletes that it writes
anew. Codes `missing`, `rows`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain

from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.plan.operations.change import Change
from committer.plan.operations.conflict import PATHS_MAX, Conflict, ConflictCode, changed_rows
from committer.plan.validation.loaded_manifests import Loaded
from committer.plan.validation.named_files import NamedFiles
from committer.plan.validation.since import Since


@dataclass(frozen=True, slots=True)
class RewrittenRowsCheck:
    """A rewrite has read the files that it removes at its base: one that was adopted again since
    has rows back that were deleted by then. It adds no rows. `added`: the rows of the data files to
    add, by path; None: they are counted here.
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
        return None

    def _rows_after(self) -> int:
        left_out = self.change.left_out_data_files
        if not left_out:
            return sum(one.walked.added_rows_count for one in self.change.added_data)
        added = added_rows(self.change) if self.added is None else self.added
        return sum(rows for path, rows in added.items() if path not in left_out)


@dataclass(frozen=True, slots=True)
class RewrittenNumberCheck:
    """The sequence number that a rewrite gives its files is not above that of its base, as equality
    deletes since would not hit them. It is not below that of a data file which it removes, as older
    equality deletes would hit the new ones, nor below that of one which its delete files are for:
    they would not apply, and a scan refuses such a vector.
    """

    number: int
    since: Since
    removed: NamedFiles
    referenced: NamedFiles

    def rows(self) -> Iterable[ManifestFile]:
        return chain(self.removed.rows(), self.referenced.rows())

    def conflict(self, loaded: Loaded) -> Conflict | None:
        if self.number > self.since.sequence_number:
            return changed_rows(
                f"its files would have the sequence number {self.number}, above the"
                f" {self.since.sequence_number} of its base"
            )
        removed = self._newer(loaded, self.removed, "it removes")
        return removed or self._newer(loaded, self.referenced, "its delete files are for")

    def _newer(self, loaded: Loaded, files: NamedFiles, what: str) -> Conflict | None:
        live = files.find(loaded).values()
        newer = next((one for one in live if (one.sequence_number or 0) > self.number), None)
        if newer is None:
            return None
        return changed_rows(
            f"its files would have the sequence number {self.number}, below the"
            f" {newer.sequence_number} of {newer.data_file.file_path}, which {what}",
            newer.data_file.file_path,
        )


def added_rows(change: Change) -> dict[str, int]:
    """Return the rows of each data file that a change adds, by its path. Decodes its manifests."""
    files = (file for one in change.added_data for file in one.files())
    return {file.file_path: file.record_count for file in files}
