"""The options of an upsert: its key columns and its marks. Values only; a writer of any kind may
make them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# By what old rows are deleted: by their keys, or by their positions in data files.
UpsertDeletes = Literal["equality", "positions"]


@dataclass(frozen=True, slots=True)
class DeleteMark:
    """The mark of rows that delete their key: those with one of `values` in `column`; without
    values, those where the (boolean) column is true. Null is neither.
    """

    column: str
    values: tuple[object, ...] | None = None


@dataclass(frozen=True, slots=True)
class Upsert:
    """`keys`: columns whose values name a row. `sequence`: of the rows of one key the one with the
    highest value counts. `deletes`: how old rows are deleted, None as the table says; `partitions`:
    of deletes by position, the tasks that write."""

    keys: tuple[str, ...]
    delete: DeleteMark | None = None
    sequence: str | None = None
    deletes: UpsertDeletes | None = None
    partitions: int = 1
