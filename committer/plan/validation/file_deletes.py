"""Did others delete rows of the files that an operation removes? Codes `filedel`, `filepos`.

The operation has copied the rows of these files as it has read them: a row that was deleted
meanwhile would come back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from committer.iceberg.deletes.delete_index import DeleteIndex
from committer.iceberg.entry.data_file import DataFileContent, ManifestContent, ManifestEntry
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.plan.operations.conflict import Conflict, ConflictCode
from committer.plan.operations.head import Head
from committer.plan.validation.loaded_manifests import Loaded, conflict_with
from committer.plan.validation.named_files import NamedFiles
from committer.plan.validation.rewrites import without_rewritten
from committer.plan.validation.since import Since


@dataclass(frozen=True, slots=True)
class FileDeletesCheck:
    """`by_position`: equality deletes go on to apply to the new files, by their sequence number."""

    head: Head
    since: Since
    removed: NamedFiles
    by_position: bool = False

    def rows(self) -> Iterable[ManifestFile]:
        yield from self._rows()
        yield from self.removed.rows()

    def _rows(self) -> Iterable[ManifestFile]:
        rows = self.head.live_rows(ManifestContent.DELETES)
        return (row for row in rows if self.since.may_hold_new(row))

    def conflict(self, loaded: Loaded) -> Conflict | None:
        removed = self.removed.find(loaded).values()
        newer = [
            one
            for one in loaded.live(self._rows())
            if self.since.is_new(one) and not (self.by_position and _compares(one))
        ]
        others = without_rewritten(newer, self.head, self.since)
        found = deletes_on(removed, others, self.head.metadata)
        if not found:
            return None
        code = ConflictCode.FILE_POSITIONS if self.by_position else ConflictCode.FILE_DELETES
        return conflict_with(code, found, "added", "delete files that hit files to be removed")


def _compares(entry: ManifestEntry) -> bool:
    return entry.data_file.content is DataFileContent.EQUALITY_DELETES


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
