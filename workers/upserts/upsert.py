"""How rows are upserted: the columns that tell. Values only; a writer of any kind may make them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeleteMark:
    """Which rows delete their key: those with one of `values` in `column`; without values, those
    where the (boolean) column is true. Null is neither."""

    column: str
    values: tuple[object, ...] | None = None


@dataclass(frozen=True, slots=True)
class Upsert:
    """`keys`: columns whose values name a row. `sequence`: of the rows of one key the one with the
    highest value counts."""

    keys: tuple[str, ...]
    delete: DeleteMark | None = None
    sequence: str | None = None
