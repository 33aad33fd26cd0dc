"""What users call: compaction of tables by Spark, without a JAR."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
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


def keep_in_shape(
    spark: SparkSession,
    tables: Sequence[str],
    *,
    small_file_threshold: int = 20,
    every_s: float = 60.0,
    budget_bytes: int = 10 << 30,
    rounds: int | None = None,
    stop: threading.Event | None = None,
    options: Mapping[str, object] | None = None,
) -> None:
    """Look at tables every `every_s` seconds, and compact the partitions that have so many small
    files, each table's by at most `budget_bytes` a round.

    Returns after `rounds`, or once `stop` is set; without one, on SIGTERM or SIGINT. An error of
    one table is logged, and the others go on. `options`: as of `rewrite_data_files`. Errors:
    `SettingsError`.
    """
    from workers.compaction.keep_in_shape import Keeper, stopped_by_signals
    from workers.compaction.rewrite_data_files import compact
    from workers.compaction.rewrite_options import parse_rewrite_options

    given = {
        "min-input-files": small_file_threshold,
        "max-file-group-size-bytes": budget_bytes,
        **(options or {}),
    }
    asked = [parse_rewrite_options(name, "binpack", None, None, (), given) for name in tables]
    keeper = Keeper(asked, budget_bytes, partial(compact, spark))
    with stopped_by_signals() if stop is None else nullcontext(stop) as ending:
        keeper.run(ending, every_s, rounds)
