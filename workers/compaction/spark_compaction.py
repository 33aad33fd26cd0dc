"""What users call: compaction of a table by Spark, without a JAR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from workers.compaction.rewrite_result import RewriteResult


def rewrite_data_files(
    spark: SparkSession,
    table: str,
    *,
    strategy: str = "binpack",
    where: str | None = None,
    sort_order: str | None = None,
    zorder_columns: Sequence[str] = (),
    options: Mapping[str, object] | None = None,
) -> RewriteResult:
    """Write small files, files with many deletes and too large ones anew, beside all other writers.

    `strategy`: `binpack` leaves rows in their order, `sort` sorts them by `sort_order` (`"region,
    at desc nulls last"`, else by the table's order), `zorder` clusters them by `zorder_columns`.
    `where` chooses files that may have such rows. `options`: those of Iceberg's procedure, the
    `branch`, `wait_timeout_s`, and the settings of `format("frazil")`. A group that loses a race is
    in `failed_groups`. Errors: `PublishError` with `partial-progress.enabled=false`, where all
    groups or none land.
    """
    from workers.compaction.rewrite_data_files import compact
    from workers.compaction.rewrite_options import parse_rewrite_options

    given = parse_rewrite_options(
        table, strategy, where, sort_order, tuple(zorder_columns), options or {}
    )
    return compact(spark, given)
