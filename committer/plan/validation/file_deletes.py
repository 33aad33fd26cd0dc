"""Checks that no one else deleted rows of the files whose rows an operation writes again. Codes
`filedel`, `filepos`, `newdel`.

The operation has copied these rows as it has read them: one that was deleted meanwhile would come
back, whatever a conflict filter says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from committer.iceberg.deletes.delete_index import DeleteIndex
from committer.iceberg.entry.data_file import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    is_equality_delete_file,
)
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.plan.operations.conflict import Conflict, ConflictCode
from committer.plan.operations.head import Head
from committer.plan.validation.loaded_manifests import Loaded, conflict_with
from committer.plan.validation.named_files import NamedFiles
from committer.plan.validation.rewrites import without_rewritten
from committer.plan.validation.since import Since


@dataclass(frozen=True, slots=True)
class CopiedRows:
    """The rows of live files that an operation copies. `counts`: which delete files of others
    conflict with that.
    """

    code: ConflictCode
    text: str
    counts: Callable[[DataFile], bool]


_OF_REMOVED = "delete files that hit files to be removed"
# In the place of files that are removed.
REPLACED = CopiedRows(ConflictCode.FILE_DELETES, _OF_REMOVED, lambda _: True)
# The same under the old sequence number: equality deletes go on to apply to the new files.
NUMBERED_BACK = CopiedRows(
    ConflictCode.FILE_POSITIONS, _OF_REMOVED, lambda file: not is_equality_delete_file(file)
)
# By an update, of files that stay: deletion vectors on them are united by their positions.
UPDATED = CopiedRows(
    ConflictCode.NEW_DELETES,
    "delete files that may hit rows which it writes again",
    lambda file: not file.is_deletion_vector,
)


@dataclass(frozen=True, slots=True)
class FileDeletesCheck:
    """`files`: those whose rows are copied."""

    head: Head
    since: Since
    files: NamedFiles
    copied: CopiedRows = REPLACED

    def rows(self) -> Iterable[ManifestFile]:
        yield from self.since.rows(self.head, ManifestContent.DELETES)
        yield from self.files.rows()

    def conflict(self, loaded: Loaded) -> Conflict | None:
        newer = [
            one
            for one in loaded.live(self.since.rows(self.head, ManifestContent.DELETES))
            if self.since.is_new(one) and self.copied.counts(one.data_file)
        ]
        others = without_rewritten(newer, self.head, self.since)
        found = deletes_on(self.files.find(loaded).values(), others, self.head.metadata)
        if not found:
            return None
        return conflict_with(self.copied.code, found, "added", self.copied.text)


def deletes_on(
    targets: Iterable[ManifestEntry], deletes: Sequence[ManifestEntry], metadata: TableMetadata
) -> list[ManifestEntry]:
    """Return those of these delete files that may hit one of the data files."""
    if not deletes:
        return []
    vectors = [one for one in deletes if one.data_file.is_deletion_vector]
    others = [one for one in deletes if not one.data_file.is_deletion_vector]
    specs = {spec.spec_id: spec for spec in metadata.partition_specs}
    index = DeleteIndex(others, specs=specs, schemas=metadata.schemas)
    paths: set[str] = set()
    hit: set[str] = set()
    for target in targets:
        paths.add(target.data_file.file_path)
        hit.update(one.file_path for one in index.for_data_file(target))
    return [one for one in vectors if one.data_file.referenced_data_file in paths] + [
        one for one in others if one.data_file.file_path in hit
    ]
