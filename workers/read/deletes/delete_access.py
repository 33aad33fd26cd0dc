"""The way to the delete files of one scan: their rows, and what is kept of them for other tasks."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pyarrow as pa

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.scan.column_projection import file_context
from committer.iceberg.values.types import NestedField
from workers.read.deletes.delete_cache import DeleteCache
from workers.read.file_projections import FileProjections
from workers.read.open_rows import OpenFile, opened_file, opened_rows
from workers.read.shared_read import TableRead


@dataclass(frozen=True, slots=True)
class DeleteFiles:
    """Opens and reads delete files."""

    read: TableRead
    open_file: OpenFile
    cache: DeleteCache

    def opened(self, file: DataFile) -> AbstractContextManager[pa.NativeFile]:
        """Open a file's bytes. Errors: as `opened_file`."""
        return opened_file(file, self.open_file)

    def rows(self, file: DataFile, columns: Sequence[NestedField]) -> Iterator[pa.RecordBatch]:
        """Yield these columns of a file's rows, a batch in memory. Errors: as `read_task`."""
        context = file_context(file, self.read.spec_of(file))
        with opened_rows(file, self.open_file) as stored:
            projected = FileProjections.of(self.read, file, stored, context, columns)
            for rows in projected.rows():
                yield projected.projections[0].apply(rows)

    def key(self, file: DataFile, what: object) -> Hashable:
        """Return the key in the cache of something that is read of a file."""
        return self.read.table_uuid, file.file_path, what
