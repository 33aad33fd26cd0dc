"""Equality deletes of one task: delete files that compare the same columns are one set.

A set that would take more than its budget is made in several turns; then the data file's compared
columns are read once more for each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import pyarrow as pa

from committer.errors import InvalidMetadataError
from committer.iceberg.deletes.equality_deletes import compared_branch
from committer.iceberg.entry.data_file import DataFile, DataFileContent
from committer.iceberg.scan.scan_task import FileScanTask
from committer.iceberg.values.types import NestedField
from workers.read.deletes.delete_access import DeleteFiles
from workers.read.deletes.equality_sets import EqualitySet

Keys = list[pa.Array]
SET_BYTES_MAX = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class EqualityGroup:
    """Delete files that compare the same columns."""

    columns: tuple[NestedField, ...]
    files: tuple[DataFile, ...]


def equality_groups(task: FileScanTask, files: DeleteFiles) -> list[EqualityGroup]:
    """Group the equality deletes of a task.
    Errors: `InvalidMetadataError` for one that compares nothing that is known."""
    by_ids: defaultdict[tuple[int, ...], list[DataFile]] = defaultdict(list)
    for delete in task.delete_files:
        if delete.content == DataFileContent.EQUALITY_DELETES:
            by_ids[tuple(sorted(delete.equality_ids or ()))].append(delete)
    return [
        EqualityGroup(_columns(ids, found[0], files), tuple(found)) for ids, found in by_ids.items()
    ]


def _columns(ids: Sequence[int], file: DataFile, files: DeleteFiles) -> tuple[NestedField, ...]:
    branches = [compared_branch(files.read.schemas, field_id) for field_id in ids]
    columns = tuple(branch for branch in branches if branch is not None)
    if not columns or len(columns) < len(ids):
        raise InvalidMetadataError(
            f"{file.file_path}: equality deletes of fields {list(ids)}, expected columns of the"
            " table"
        )
    return columns


def equality_sets(group: EqualityGroup, files: DeleteFiles) -> Iterator[EqualitySet]:
    """Yield sets that have all rows of a group's delete files together, each of about
    `SET_BYTES_MAX` at most. Errors: as `read_task`."""
    waiting: list[Keys] = []
    size_bytes = 0
    for file in group.files:
        for keys in _rows(file, group.columns, files):
            waiting.append(keys)
            size_bytes += _size_bytes(keys) + 8 * len(keys) * len(keys[0])
            if size_bytes >= SET_BYTES_MAX:
                yield _set_of(waiting)
                waiting, size_bytes = [], 0
    if waiting:
        yield _set_of(waiting)


def _set_of(batches: list[Keys]) -> EqualitySet:
    return EqualitySet.of([pa.concat_arrays(parts) for parts in zip(*batches, strict=True)])


def _rows(file: DataFile, columns: tuple[NestedField, ...], files: DeleteFiles) -> Iterator[Keys]:
    """Yield the keys of a file's rows in batches, and keep them for other tasks if they fit."""
    key = files.key(file, repr(columns))
    kept = cast("list[Keys] | None", files.cache.find(key))
    if kept is not None:
        yield from kept
        return
    found: list[Keys] = []
    size_bytes = 0
    for batch in files.rows(file, columns):
        keys = key_columns(batch)
        yield keys
        size_bytes += _size_bytes(keys)
        if size_bytes <= files.cache.entry_bytes_max:
            found.append(keys)
    files.cache.keep(key, found, size_bytes)


def _size_bytes(keys: Keys) -> int:
    return sum(key.nbytes for key in keys)


def key_columns(batch: pa.RecordBatch) -> Keys:
    """Return the compared values of projected branches, null where a struct around them is."""
    return [_leaf(column) for column in batch.columns]


def _leaf(column: pa.Array) -> pa.Array:
    while pa.types.is_struct(column.type):
        (column,) = column.flatten()
    return column
