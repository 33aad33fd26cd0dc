"""The calls that users make to delete, update and merge rows by Spark, without a JAR."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from committer.errors import SettingsError
from workers.changes.merge_builder import MergeBuilder
from workers.changes.what_changed import Changed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


def delete_from(
    table: str,
    where: str | Column,
    *,
    spark: SparkSession | None = None,
    **options: str | int | float,
) -> Changed:
    """Delete the rows of a table for which `where` is true, and return once that is committed.

    `where`: a Spark SQL text or a `Column`. Whole files are removed unread where the condition
    proves that all of their rows match; else the table's `write.delete.mode` says how. `spark`: the
    active session without one. `options`: `branch`, `retries`, `wait_timeout_s`, and the settings
    of `format("frazil")`. Errors: `PublishError` for a conflict with what others have changed.
    """
    from workers.changes.assignments import as_column
    from workers.changes.change_options import parse_change_options
    from workers.changes.changed_rows import change_rows

    given = parse_change_options(table, options)
    return change_rows(_session(spark), as_column(where), None, given)


def update(
    table: str,
    set: Mapping[str, str | Column | object],
    where: str | Column = "true",
    *,
    spark: SparkSession | None = None,
    **options: str | int | float,
) -> Changed:
    """Update the rows of a table for which `where` is true, by `write.update.mode`.

    `set`: the new value of each column, also of a field (`"point.x"`): a Spark SQL text or a
    `Column` over the row's own columns, or another Python value. The rest as `delete_from`.
    """
    from workers.changes.assignments import as_column
    from workers.changes.change_options import parse_change_options
    from workers.changes.changed_rows import change_rows

    given = parse_change_options(table, options)
    return change_rows(_session(spark), as_column(where), dict(set), given)


def merge_into(
    table: str, source: DataFrame, on: str | Column, **options: str | int | float
) -> MergeBuilder:
    """Begin a merge of a DataFrame into a table: add clauses, then `execute()`.

    `on`: when rows of `target` (the table) and `source` match. `options` as of `delete_from`, and
    `mergeSchema`, which is `with_schema_evolution()`. Errors: `SettingsError` for an option.
    """
    from workers.changes.change_options import parse_change_options

    return MergeBuilder(source, on, parse_change_options(table, options, is_merge=True))


def _session(given: SparkSession | None) -> SparkSession:
    from pyspark.sql import SparkSession

    found = given or SparkSession.getActiveSession()
    if found is None:
        raise SettingsError("there is no active Spark session: give one by `spark=`")
    return found
