"""Reads one task of a scan: the rows of a data file that are not deleted and match the residual."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from committer.errors import UnsupportedError
from committer.iceberg.deletes.deletion_vector import DeletionVector
from committer.iceberg.expressions.expression import ALWAYS_TRUE
from committer.iceberg.scan.column_projection import FileContext, file_context
from committer.iceberg.scan.scan_task import FileScanTask
from committer.iceberg.scan.task_part import TaskPart, whole_task
from committer.iceberg.schema.metadata_columns import IS_DELETED, PARTITION_ID
from committer.iceberg.values.types import NestedField, StructType
from workers.read.arrow_projection import Rows
from workers.read.deletes.delete_access import DeleteFiles
from workers.read.deletes.delete_cache import SHARED_DELETES, DeleteCache
from workers.read.deletes.deleted_positions import deleted_positions
from workers.read.deletes.deleted_values import EqualityGroup, equality_groups
from workers.read.deletes.task_deletes import deleted_rows
from workers.read.file_projections import FileProjections
from workers.read.formats.stored_rows import StoredRows
from workers.read.open_rows import OpenFile, opened_rows
from workers.read.shared_read import TableRead


def read_task(
    read: TableRead,
    task: FileScanTask | TaskPart,
    open_file: OpenFile,
    cache: DeleteCache = SHARED_DELETES,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task, or of a part of one, in the order of the file, by the schema
    `read.arrow_schema`; one batch in memory beside the encoded columns of one row group.

    Where `_deleted` is wanted, deleted rows come too. Errors: `NotFoundError` for a file that is
    gone; `InvalidMetadataError`; `UnsupportedError`; `OSError` of the storage.
    """
    part = task if isinstance(task, TaskPart) else whole_task(task)
    file = part.task.file
    if part.task.residual != ALWAYS_TRUE:
        raise UnsupportedError(f"{file.file_path}: filters")
    deletes = DeleteFiles(read, open_file, cache)
    positions = deleted_positions(part.task, deletes)
    with opened_rows(file, open_file) as stored:
        yield from _OpenTask(read, part, stored, deletes).batches(positions)


@dataclass(frozen=True, slots=True)
class _OpenTask:
    read: TableRead
    part: TaskPart
    stored: StoredRows
    deletes: DeleteFiles

    def batches(self, positions: DeletionVector) -> Iterator[pa.RecordBatch]:
        """Yield the batches. `positions`: those that are deleted."""
        groups = equality_groups(self.part.task, self.deletes)
        opened = self._projections(self.read.columns, *(group.columns for group in groups))
        wanted, *keys = opened.projections
        pairs = list(zip(groups, keys, strict=True))
        deleted = deleted_rows(positions, pairs, self.deletes, self._keys)
        keeps_deleted = any(one.field_id == IS_DELETED.field_id for one in self.read.columns)
        for rows in opened.rows(self.part):
            mask = deleted.mask(rows)
            if mask is not None:
                rows = replace(rows, deleted=mask) if keeps_deleted else rows.kept(~mask)
            if rows.batch.num_rows:
                yield wanted.apply(rows)

    def _keys(self, group: EqualityGroup) -> Iterator[tuple[Rows, pa.RecordBatch]]:
        opened = self._projections(group.columns)
        for rows in opened.rows(self.part):
            yield rows, opened.projections[0].apply(rows)

    def _projections(self, *wanted: Sequence[NestedField]) -> FileProjections:
        task = self.part.task
        context = _context(self.read, task)
        return FileProjections.of(self.read, task.file, self.stored, context, *wanted)


def _context(read: TableRead, task: FileScanTask) -> FileContext:
    partition = next(
        (column.field_type for column in read.columns if column.field_id == PARTITION_ID), None
    )
    return file_context(
        task.file,
        read.spec_of(task.file),
        sequence_number=task.sequence_number,
        partition=partition if isinstance(partition, StructType) else None,
    )
