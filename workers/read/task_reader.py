"""Reads one task of a scan: the rows of a data file that are not deleted and match the residual."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from committer.errors import UnsupportedError
from committer.iceberg.deletes.equality_deletes import compared_fields
from committer.iceberg.expressions.expression import ALWAYS_TRUE
from committer.iceberg.scan.column_projection import FileContext, file_context, project_columns
from committer.iceberg.scan.scan_task import FileScanTask
from committer.iceberg.scan.task_part import TaskPart, whole_task
from committer.iceberg.schema.metadata_columns import PARTITION_ID
from committer.iceberg.values.types import StructType
from workers.read.arrow_projection import ArrowProjection, Rows
from workers.read.formats.stored_columns import needed_leaves, stored_type
from workers.read.formats.stored_rows import RowRange, StoredRows
from workers.read.open_rows import OpenFile, opened_rows
from workers.read.shared_read import TableRead


def read_task(
    read: TableRead, task: FileScanTask | TaskPart, open_file: OpenFile
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task, or of a part of one, in the order of the file, by the schema
    `read.arrow_schema`; one batch in memory beside the encoded columns of one row group.

    Where `_deleted` is wanted, deleted rows come too. Errors: `NotFoundError` for a file that is
    gone; `InvalidMetadataError`; `UnsupportedError`; `OSError` of the storage.
    """
    part = task if isinstance(task, TaskPart) else whole_task(task)
    file = part.task.file
    if part.task.delete_files or part.task.residual != ALWAYS_TRUE:
        raise UnsupportedError(f"{file.file_path}: deletes and filters")
    with opened_rows(file, open_file) as stored:
        yield from _read(read, part, stored)


def _read(read: TableRead, part: TaskPart, stored: StoredRows) -> Iterator[pa.RecordBatch]:
    known = {number: field.field_type for number, field in compared_fields(read.schemas).items()}
    kind = stored_type(stored.columns, known, read.name_mapping)
    fields = project_columns(read.columns, kind, _context(read, part.task), read.name_mapping)
    leaves = stored.readable(needed_leaves(fields, stored.columns))
    projection = ArrowProjection.of(fields, stored.columns, leaves, part.task.file.file_path)
    for found in stored.ranges(leaves, part):
        yield projection.apply(_rows(found))


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


def _rows(found: RowRange) -> Rows:
    positions = np.arange(found.first, found.first + found.batch.num_rows, dtype=np.int64)
    return Rows(found.batch, positions)
