"""Columns that are in no schema: what a reader can say of each row, and what delete files hold.

Their field ids are reserved. `_partition` has no type of its own: it holds the fields of all specs.
Source: the specification, "Reserved Field IDs"; docs/reference/iceberg-notes.md 1.4.
"""

from __future__ import annotations

from collections.abc import Mapping

from committer.iceberg.values.types import (
    BooleanType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
)

_INT_MAX = 2**31 - 1


FILE_PATH = NestedField(_INT_MAX - 1, "_file", StringType(), True)
ROW_POSITION = NestedField(_INT_MAX - 2, "_pos", LongType(), True)
IS_DELETED = NestedField(_INT_MAX - 3, "_deleted", BooleanType(), True)
SPEC_ID = NestedField(_INT_MAX - 4, "_spec_id", IntegerType(), True)
PARTITION_ID = _INT_MAX - 5
PARTITION_NAME = "_partition"
ROW_ID = NestedField(_INT_MAX - 107, "_row_id", LongType(), False)
LAST_UPDATED_SEQUENCE_NUMBER = NestedField(
    _INT_MAX - 108, "_last_updated_sequence_number", LongType(), False
)

# Columns of position delete files.
DELETE_FILE_PATH = NestedField(_INT_MAX - 101, "file_path", StringType(), True)
DELETE_FILE_POSITION = NestedField(_INT_MAX - 102, "pos", LongType(), True)

# Columns of a changelog.
CHANGE_TYPE = NestedField(_INT_MAX - 104, "_change_type", StringType(), True)
CHANGE_ORDINAL = NestedField(_INT_MAX - 105, "_change_ordinal", IntegerType(), False)
COMMIT_SNAPSHOT_ID = NestedField(_INT_MAX - 106, "_commit_snapshot_id", LongType(), False)

# Names that no column of a table has: a reader answers them of each row itself. The columns of a
# changelog are not among them, as a reader of the table has none.
RESERVED_NAMES = (
    FILE_PATH.name,
    ROW_POSITION.name,
    IS_DELETED.name,
    SPEC_ID.name,
    PARTITION_NAME,
    ROW_ID.name,
    LAST_UPDATED_SEQUENCE_NUMBER.name,
)

METADATA_COLUMNS: Mapping[str, NestedField] = {
    column.name: column
    for column in (
        FILE_PATH,
        ROW_POSITION,
        IS_DELETED,
        SPEC_ID,
        ROW_ID,
        LAST_UPDATED_SEQUENCE_NUMBER,
        CHANGE_TYPE,
        CHANGE_ORDINAL,
        COMMIT_SNAPSHOT_ID,
    )
}


def partition_column(partition: StructType) -> NestedField:
    """Return `_partition` of a table. Shape: `partition` has the fields of all its specs."""
    return NestedField(PARTITION_ID, PARTITION_NAME, partition, False)


def is_metadata_column(field_id: int) -> bool:
    """Return whether an id is one of the reserved range."""
    return field_id > _INT_MAX - 200
