"""The columns that rows of a change have beside the table's, and what is done with a row.

Values only: the driver builds DataFrames with these columns, tasks read and write them.
"""

from __future__ import annotations

from enum import IntEnum

KIND = "_frazil_kind"
FILE = "_frazil_file"
POSITION = "_frazil_pos"
ROW_ID = "_frazil_row_id"
LAST_UPDATED = "_frazil_last_updated"
FACT = "_frazil_fact"
# Of the rows of an upsert, before they are looked up.
IS_DELETED = "_frazil_is_deleted"
# As Spark calls their types.
TYPES = {
    KIND: "int",
    FILE: "string",
    POSITION: "bigint",
    ROW_ID: "bigint",
    LAST_UPDATED: "bigint",
    FACT: "binary",
}
# Of each row that was read, in this order, by the names that readers know them by.
READ_AS = {
    FILE: "_file",
    POSITION: "_pos",
    ROW_ID: "_row_id",
    LAST_UPDATED: "_last_updated_sequence_number",
}


class RowKind(IntEnum):
    """The action of a task on a row.

    `FACT`: no row, but what is known of a data file. `DELETE`: its position is deleted. `UPDATE`:
    that, and its values are written. `INSERT`: its values are written. `MATCHED`: nothing, it only
    counts as matched. `MOVE`: its values are written, unchanged.
    """

    FACT = 0
    DELETE = 1
    UPDATE = 2
    INSERT = 3
    MATCHED = 4
    MOVE = 5
