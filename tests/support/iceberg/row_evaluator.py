"""Asks a filter of rows: the meaning that every other answer is measured against."""

from __future__ import annotations

from collections.abc import Callable

from committer.iceberg.expressions.binding import bind
from committer.iceberg.expressions.compiling import compiled
from committer.iceberg.expressions.expression import Expression, rewrite_not
from committer.iceberg.expressions.row_evaluator import Row, predicate_evaluator
from committer.iceberg.schema.schema import Schema


def row_evaluator(
    schema: Schema, filter: Expression, case_sensitive: bool = True
) -> Callable[[Row], bool]:
    """Return a test whether a row matches an unbound filter.

    Rows have a value for each top-level field, in the schema's order; structs are rows themselves.
    Errors: as `bind`.
    """
    bound = bind(rewrite_not(filter), schema, case_sensitive=case_sensitive)
    return compiled(bound, predicate_evaluator)
