"""Position delete files: their columns, what their bounds say, and which data file is theirs.

Deletion vectors are in `deletion_vector.py`. Source: the specification, "Position Delete Files" and
"Reserved Field IDs"; format.md 2.4 and 8.7.
"""

from __future__ import annotations

from committer.errors import InvalidMetadataError
from committer.iceberg.data_file import DataFile, DataFileContent
from committer.iceberg.schema import Schema
from committer.iceberg.types import LongType, NestedField, StringType

# spec: Reserved Field IDs
FILE_PATH = NestedField(2147483546, "file_path", StringType(), True, "Path of a deleted row's file")
POS = NestedField(2147483545, "pos", LongType(), True, "Position of a deleted row, from 0")
# The columns of a position delete file; its rows are sorted by both. Deleted rows' values (a third
# column, 2147483544) were never written by anybody.
POSITION_DELETE_SCHEMA = Schema((FILE_PATH, POS))


def referenced_data_file(file: DataFile) -> str | None:
    """The only data file that a delete file is for, None if there may be several.

    Either the entry names it, or both bounds of `file_path` are equal (a bound is cut only where
    the two differ then: a cut upper bound is greater than the lower one). Equality deletes have
    none. Errors: `InvalidMetadataError` for bounds that are not text.
    """
    if file.content != DataFileContent.POSITION_DELETES:
        return None
    if file.referenced_data_file is not None:
        return file.referenced_data_file
    lower = (file.lower_bounds or {}).get(FILE_PATH.field_id)
    upper = (file.upper_bounds or {}).get(FILE_PATH.field_id)
    if lower is None or lower != upper:
        return None
    try:
        return lower.decode()
    except UnicodeDecodeError:
        raise InvalidMetadataError(
            f"{file.file_path}: the bounds of `file_path` are not text"
        ) from None
