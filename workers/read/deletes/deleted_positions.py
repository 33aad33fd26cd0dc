"""Positions that position delete files and deletion vectors delete of one data file."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from committer.errors import InvalidMetadataError, InvariantError
from committer.iceberg.deletes.deletion_vector import DeletionVector
from committer.iceberg.deletes.deletion_vector_file import decode_vector_of, vector_range
from committer.iceberg.deletes.position_deletes import POSITION_DELETE_SCHEMA
from committer.iceberg.entry.data_file import DataFile, DataFileContent
from committer.iceberg.scan.scan_task import FileScanTask
from workers.read.deletes.delete_access import DeleteFiles

# One position takes no more memory while a file is decoded.
_POSITION_BYTES = 8
_NOTHING = DeletionVector()


def deleted_positions(task: FileScanTask, files: DeleteFiles) -> DeletionVector:
    """Return the positions of a task's data file that its delete files name.

    Some may lie behind the file's end. Errors: as `read_task`.
    """
    found = _NOTHING
    for delete in task.delete_files:
        if delete.is_deletion_vector:
            found |= _vector(delete, files)
        elif delete.content == DataFileContent.POSITION_DELETES:
            found |= _named(delete, task.file.file_path, files)
    return found


def _vector(delete: DataFile, files: DeleteFiles) -> DeletionVector:
    offset, length = vector_range(delete)
    key = files.key(delete, offset)
    kept = files.cache.find(key)
    if isinstance(kept, DeletionVector):
        return kept
    with files.opened(delete) as source:
        vector = decode_vector_of(delete, source.read_at(length, offset))
    files.cache.keep(key, vector, length)
    return vector


def _named(delete: DataFile, path: str, files: DeleteFiles) -> DeletionVector:
    """Return the positions that a file has for one data file. All of its positions are kept for
    other tasks, unless that takes too much."""
    size_bytes = delete.record_count * _POSITION_BYTES
    if size_bytes > files.cache.entry_bytes_max:
        return _collected(delete, _of_path(delete, path, files)).get(path, _NOTHING)
    key = files.key(delete, "positions")
    kept = cast("Mapping[str, DeletionVector] | None", files.cache.find(key))
    if kept is None:
        kept = _collected(delete, _by_path(delete, files))
        files.cache.keep(key, kept, size_bytes + sum(map(len, kept)))
    return kept.get(path, _NOTHING)


_Positions = tuple[str, pa.Array]


def _of_path(delete: DataFile, path: str, files: DeleteFiles) -> Iterator[_Positions]:
    for batch in files.rows(delete, POSITION_DELETE_SCHEMA.fields):
        yield path, batch.column(1).filter(pc.equal(batch.column(0), path))


def _by_path(delete: DataFile, files: DeleteFiles) -> Iterator[_Positions]:
    for batch in files.rows(delete, POSITION_DELETE_SCHEMA.fields):
        paths = batch.column(0).dictionary_encode()
        codes = paths.indices.to_numpy()
        # Rows are sorted by path: each has a few runs of rows at most.
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        for start, end in zip(starts, [*starts[1:], len(codes)], strict=True):
            path: str = paths.dictionary[int(codes[start])].as_py()
            yield path, batch.column(1).slice(int(start), int(end - start))


def _collected(delete: DataFile, runs: Iterator[_Positions]) -> dict[str, DeletionVector]:
    found: dict[str, DeletionVector] = {}
    for path, positions in runs:
        try:
            # A negative one is beyond all positions without its sign.
            run = DeletionVector(array("Q", positions.to_numpy().tobytes()))
        except InvariantError as error:
            raise InvalidMetadataError(f"{delete.file_path}: {error}") from error
        found[path] = found[path] | run if path in found else run
    return found
