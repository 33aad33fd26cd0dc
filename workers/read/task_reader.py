"""Reads one task of a scan: the rows of a data file that are not deleted and match the residual."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from committer.iceberg.deletes.deletion_vector import DeletionVector
from committer.iceberg.entry.data_file import DataFileContent
from committer.iceberg.expressions.expression import ALWAYS_TRUE
from committer.iceberg.scan.column_projection import FileContext, file_context
from committer.iceberg.scan.scan_task import FileScanTask
from committer.iceberg.scan.task_part import TaskPart, whole_task
from committer.iceberg.schema.metadata_columns import IS_DELETED, PARTITION_ID
from committer.iceberg.values.types import NestedField, StructType
from workers.read.arrow_projection import Mask, Rows
from workers.read.deletes.delete_access import DeleteFiles
from workers.read.deletes.delete_cache import SHARED_DELETES, DeleteCache
from workers.read.deletes.deleted_positions import deleted_positions
from workers.read.deletes.deleted_values import EqualityGroup, equality_groups
from workers.read.deletes.task_deletes import deleted_rows
from workers.read.file_projections import FileProjections
from workers.read.formats.stored_rows import StoredRows
from workers.read.open_rows import OpenFile, opened_rows
from workers.read.row_filter import RowFilter
from workers.read.row_groups import row_group_test
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
    deletes = DeleteFiles(read, open_file, cache)
    positions = deleted_positions(part.task, deletes)
    with opened_rows(file, open_file) as stored:
        yield from _OpenTask(read, part, stored, deletes).batches(positions)


def count_rows(
    read: TableRead,
    task: FileScanTask,
    open_file: OpenFile,
    cache: DeleteCache = SHARED_DELETES,
) -> int:
    """Count the rows of a task. The data file is opened only for a filter, or deletes by value; its
    entry says how many rows it has. Errors: as `read_task`."""
    by_value = any(one.content == DataFileContent.EQUALITY_DELETES for one in task.delete_files)
    if by_value or task.residual != ALWAYS_TRUE:
        alone = replace(read, columns=())
        return sum(batch.num_rows for batch in read_task(alone, task, open_file, cache))
    positions = deleted_positions(task, DeleteFiles(read, open_file, cache))
    within = DeletionVector.of_range(0, task.file.record_count)
    return task.file.record_count - (positions & within).cardinality


@dataclass(frozen=True, slots=True)
class _OpenTask:
    read: TableRead
    part: TaskPart
    stored: StoredRows
    deletes: DeleteFiles

    def batches(self, positions: DeletionVector) -> Iterator[pa.RecordBatch]:
        """Yield the batches. `positions`: those that are deleted."""
        groups = equality_groups(self.part.task, self.deletes)
        asked = RowFilter.of(
            self.read.schema, self.part.task.residual, case_sensitive=self.read.case_sensitive
        )
        opened = self._projections(
            self.read.columns,
            () if asked is None else asked.columns,
            *(group.columns for group in groups),
        )
        wanted, filtered, *keys = opened.projections
        pairs = list(zip(groups, keys, strict=True))
        deleted = deleted_rows(positions, pairs, self.deletes, self._keys)
        may_match = None if asked is None else row_group_test(self.stored, asked, filtered)
        for rows in opened.rows(self.part, may_match):
            matching = None if asked is None else asked.mask(filtered.apply(rows))
            rows = self._left(rows, deleted.mask(rows), matching)
            if rows.batch.num_rows:
                yield wanted.apply(rows)

    def _left(self, rows: Rows, deleted: Mask | None, matching: Mask | None) -> Rows:
        """Return the rows that match and are not deleted; these too, where that is wanted."""
        if deleted is not None and self._keeps_deleted:
            rows, deleted = replace(rows, deleted=deleted), None
        if deleted is None:
            return rows if matching is None or matching.all() else rows.kept(matching)
        return rows.kept(~deleted if matching is None else matching & ~deleted)

    @property
    def _keeps_deleted(self) -> bool:
        return any(one.field_id == IS_DELETED.field_id for one in self.read.columns)

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
