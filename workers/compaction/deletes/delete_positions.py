"""The positions of a data file that its new delete file has. Runs on executors: format only."""

from __future__ import annotations

from array import array
from dataclasses import replace

from committer.iceberg.deletes.deletion_vector import DeletionVector
from committer.iceberg.deletes.deletion_vector_file import superseded_deletes
from committer.iceberg.entry.data_file import DataFile, is_equality_delete_file
from committer.iceberg.expressions.expression import ALWAYS_TRUE
from committer.iceberg.scan.scan_task import FileScanTask
from committer.iceberg.schema.metadata_columns import IS_DELETED, ROW_POSITION
from workers.files.deletes.position_delete_writer import DeleteForm
from workers.read.deletes.delete_access import DeleteFiles
from workers.read.deletes.delete_cache import SHARED_DELETES, DeleteCache
from workers.read.deletes.deleted_positions import deleted_positions
from workers.read.open_rows import OpenFile
from workers.read.shared_read import TableRead
from workers.read.task_reader import read_task


def positions_to_write(
    read: TableRead,
    task: FileScanTask,
    form: DeleteForm,
    open_file: OpenFile,
    cache: DeleteCache = SHARED_DELETES,
) -> DeletionVector:
    """Return the positions for a new delete file of a task's data file, none if it needs none.

    Of a task with equality deletes: the rows that these delete alone, with what `replaced_deletes`
    have. Of another one: all that its position deletes have. Errors: as `read_task`.
    """
    by_value = tuple(file for file in task.delete_files if is_equality_delete_file(file))
    files = DeleteFiles(read, open_file, cache)
    before = deleted_positions(task, files)
    if not by_value:
        return before
    compared = replace(task, delete_files=by_value, residual=ALWAYS_TRUE)
    found = _equal_rows(read, compared, open_file, cache) - before
    if not found or form == "partitions":
        return found
    if form == "vectors":
        return found | before
    return found | deleted_positions(
        replace(task, delete_files=replaced_deletes(task, form)), files
    )


def replaced_deletes(task: FileScanTask, form: DeleteForm) -> tuple[DataFile, ...]:
    """Return the delete files whose place the new one of a data file takes: those of it alone. A
    new file for a partition takes the place of none."""
    return () if form == "partitions" else superseded_deletes(task.delete_files)


def _equal_rows(
    read: TableRead, task: FileScanTask, open_file: OpenFile, cache: DeleteCache
) -> DeletionVector:
    """Return the rows that the equality deletes of a task delete. Only what they compare is read,
    a batch of rows at a time."""
    found = DeletionVector()
    places = replace(read, columns=(ROW_POSITION, IS_DELETED))
    for batch in read_task(places, task, open_file, cache):
        positions = batch.column(0).filter(batch.column(1))
        found |= DeletionVector(array("Q", positions.to_numpy().tobytes()))
    return found
