"""Position delete files: their rows, what their bounds say, and which data file is theirs.

Deletion vectors are in `deletion_vector.py`. Source: the specification, "Position Delete Files" and
"Reserved Field IDs"; docs/reference/iceberg-notes.md 1.4, 6.7.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from committer.errors import InvalidMetadataError, InvariantError
from committer.iceberg.entry.data_file import DataFile, DataFileContent
from committer.iceberg.schema.metadata_columns import DELETE_FILE_PATH, DELETE_FILE_POSITION
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.single_value import encode_value

# The columns of a position delete file; its rows are sorted by both. Deleted rows' values (a third
# column, 2147483544) are written by no known engine.
POSITION_DELETE_SCHEMA = Schema((DELETE_FILE_PATH, DELETE_FILE_POSITION))


def referenced_data_file(file: DataFile) -> str | None:
    """Return the only data file that a delete file is for, None if there may be several.

    Either the entry names it, or both bounds of `file_path` are equal (a bound is cut only where
    the two differ then: a cut upper bound is greater than the lower one). Equality deletes have
    none. Errors: `InvalidMetadataError` for bounds that are not text.
    """
    if file.content != DataFileContent.POSITION_DELETES:
        return None
    if file.referenced_data_file is not None:
        return file.referenced_data_file
    lower = (file.lower_bounds or {}).get(DELETE_FILE_PATH.field_id)
    upper = (file.upper_bounds or {}).get(DELETE_FILE_PATH.field_id)
    if lower is None or lower != upper:
        return None
    try:
        return lower.decode()
    except UnicodeDecodeError:
        raise InvalidMetadataError(
            f"{file.file_path}: the bounds of `file_path` are not text"
        ) from None


# --- Writing -------------------------------------------------------------------------------------


def describe_position_deletes(file: DataFile, positions: Mapping[str, Collection[int]]) -> DataFile:
    """Complete the delete file's entry: `file` has its place, size and partition.

    A file of one data file names it, and has both bounds whole, so that older readers know it too.
    Of several data files bounds would say little: there are none. Counts say nothing ever.
    Errors: `InvariantError` for a file without rows.
    """
    deleted = {path: found for path, found in positions.items() if found}
    if not deleted:
        raise InvariantError(f"{file.file_path}: a position delete file without rows")
    only = next(iter(deleted)) if len(deleted) == 1 else None
    return replace(
        file,
        content=DataFileContent.POSITION_DELETES,
        record_count=sum(map(len, deleted.values())),
        value_counts=None,
        null_value_counts=None,
        nan_value_counts=None,
        lower_bounds=None if only is None else _bounds(only, min(deleted[only])),
        upper_bounds=None if only is None else _bounds(only, max(deleted[only])),
        # Their order is in the specification, and no sort order of the table.
        sort_order_id=None,
        referenced_data_file=only,
    )


def _bounds(file_path: str, position: int) -> dict[int, bytes]:
    return {
        DELETE_FILE_POSITION.field_id: encode_value(DELETE_FILE_POSITION.field_type, position),
        DELETE_FILE_PATH.field_id: encode_value(DELETE_FILE_PATH.field_type, file_path),
    }
