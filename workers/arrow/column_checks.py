"""Checks that a write may ask for beyond fitting its table: the order of columns, and no nulls.

Off unless asked for: columns are matched by name, and nulls are looked for in the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from committer.errors import PublishError
from workers.arrow.arrow_columns import Column
from workers.arrow.arrow_types import children


def check_order(columns: Sequence[Column]) -> None:
    """Require that fields come in the table's order, at every level.
    Errors: `PublishError` naming the first one that does not."""
    before, highest = "", -1
    for column in columns:
        if column.position is None:
            continue
        if column.position < highest:
            raise PublishError(
                f"column {column.path} comes before column {before}, and the table has it behind"
                " that one (check-ordering)"
            )
        before, highest = column.path, column.position
        check_order(column.inner)


def check_nullability(source: Sequence[pa.Field], columns: Sequence[Column]) -> None:
    """Require that what the table requires cannot be null in the DataFrame, at every level.
    Errors: `PublishError` naming the columns."""
    found = ", ".join(_nullable(source, columns))
    if found:
        raise PublishError(
            f"the table requires {found}, and the DataFrame says that it may be null"
            " (check-nullability)"
        )


def _nullable(source: Sequence[pa.Field], columns: Sequence[Column]) -> Iterator[str]:
    for column in columns:
        if column.position is None:
            continue
        field = source[column.position]
        if field.nullable and not column.target.nullable:
            yield column.path
        yield from _nullable(children(field.type), column.inner)
