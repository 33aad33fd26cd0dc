"""The calls that users make to compact tables by Spark, without a JAR."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from workers.compaction.keep_in_shape import Choose
    from workers.compaction.rewrite_options import RewriteOptions
    from workers.compaction.rewrite_result import DeletesResult, RewriteResult


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


def rewrite_position_deletes(
    spark: SparkSession,
    table: str,
    *,
    where: str | None = None,
    options: Mapping[str, object] | None = None,
) -> DeletesResult:
    """Write small position delete files anew, few for each partition, without rows of data files
    that have gone. In a table of format version 3 all of them become deletion vectors.

    `where`: of the partitions whose delete files are rewritten. `options`: those of Iceberg's
    `rewrite_position_delete_files`, `delete-granularity`, the `branch`, `wait_timeout_s`, and the
    settings of `format("frazil")`. A group that loses a race is in `failed_groups`. Errors: as
    `rewrite_data_files`.
    """
    from workers.compaction.deletes.deletes_options import parse_deletes_options
    from workers.compaction.deletes.rewrite_deletes import rewrite_deletes

    given = parse_deletes_options("join positions", table, where, options or {})
    return rewrite_deletes(spark, given)


def convert_equality_deletes(
    spark: SparkSession,
    table: str,
    *,
    where: str | None = None,
    options: Mapping[str, object] | None = None,
) -> DeletesResult:
    """Look up the rows that equality deletes delete, and delete them by position instead: by
    deletion vectors in a table of format version 3, else by position delete files.

    Readers get fast: they compare no row with deleted values any more. An equality delete applies
    to data with lower sequence numbers, of its partition or of all if its spec has none; it goes
    once all of these data files were looked at, so rows that came after it stay. Beside any other
    writer: a group of which a compaction or a change has moved rows meanwhile is in
    `failed_groups`, and the next call converts it. The new delete files get the sequence number of
    the newest delete file that they replace. `where`: of the partitions whose equality deletes are
    converted. `options`: as of `rewrite_position_deletes`, without sizes. Errors: as
    `rewrite_data_files`.
    """
    from workers.compaction.deletes.deletes_options import parse_deletes_options
    from workers.compaction.deletes.rewrite_deletes import rewrite_deletes

    given = parse_deletes_options("convert equality", table, where, options or {})
    return rewrite_deletes(spark, given)


def keep_in_shape(
    spark: SparkSession,
    tables: Sequence[str],
    *,
    small_file_threshold: int = 20,
    every_s: float = 60.0,
    budget_bytes: int = 10 << 30,
    equality_delete_threshold: int | None = None,
    rounds: int | None = None,
    stop: threading.Event | None = None,
    options: Mapping[str, object] | None = None,
) -> None:
    """Look at tables every `every_s` seconds, and compact the partitions that have so many small
    files, each table's by at most `budget_bytes` a round.

    `equality_delete_threshold`: the equality deletes of partitions with so many files of them are
    converted too. Returns after `rounds`, or once `stop` is set; without one, on SIGTERM or SIGINT.
    An error of one table is logged, and the others go on. `options`: as of `rewrite_data_files`.
    Errors: `SettingsError`.
    """
    from workers.compaction.keep_in_shape import Keeper, stopped_by_signals
    from workers.compaction.rewrite_options import parse_rewrite_options

    given = {
        "min-input-files": small_file_threshold,
        "max-file-group-size-bytes": budget_bytes,
        **(options or {}),
    }
    asked = [parse_rewrite_options(name, "binpack", None, None, (), given) for name in tables]
    look = partial(_look, spark, equality_delete_threshold)
    keeper = Keeper(asked, budget_bytes, look)
    with stopped_by_signals() if stop is None else nullcontext(stop) as ending:
        keeper.run(ending, every_s, rounds)


def _look(
    spark: SparkSession,
    equality_delete_threshold: int | None,
    options: RewriteOptions,
    choose: Choose,
) -> RewriteResult:
    """Compact a table as it is now, then convert equality deletes where there are many."""
    from workers.compaction.deletes.deletes_options import conversion_of
    from workers.compaction.deletes.rewrite_deletes import rewrite_deletes
    from workers.compaction.rewrite_data_files import compact

    result = compact(spark, options, choose)
    if equality_delete_threshold is not None:
        rewrite_deletes(spark, conversion_of(options, equality_delete_threshold))
    return result
