"""DELETE and UPDATE: rows of one table that a condition chooses. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import functions as F  # noqa: N812  # its usual name

from committer.iceberg.expressions.expression import ALWAYS_TRUE
from committer.iceberg.pruning.metrics_evaluator import strict_metrics_evaluator
from committer.iceberg.scan.scan_task import FileScanTask
from workers.branches.application_name import application_name
from workers.branches.attempt_identity import AttemptIdentity
from workers.changes.assignments import TARGET, Assigner, Value, old
from workers.changes.change_options import ChangeOptions, Command
from workers.changes.change_run import ChangeRun, kind_of, run, with_places
from workers.changes.changed_table import ChangedTable
from workers.changes.publish_change import PreparedChange, run_change
from workers.changes.spark_conditions import RowFilter, filter_of, printed_filter
from workers.changes.target_rows import no_rows, target_rows
from workers.changes.tasks.row_kinds import FILE, KIND, LAST_UPDATED, POSITION, ROW_ID, RowKind
from workers.changes.what_changed import Changed
from workers.spark.spark_schema import spark_schema


def change_rows(
    spark: Any,
    condition: Any,
    assigned: Mapping[str, Value] | None,
    options: ChangeOptions,
) -> Changed:
    """Delete the rows that a condition chooses, or update them where columns are assigned.
    Errors: as `run_change`."""
    command: Command = "delete" if assigned is None else "update"

    def prepare(found: ChangedTable, identity: AttemptIdentity) -> PreparedChange | None:
        return prepare_rows(ChangeRun(spark, found, identity, command), condition, assigned)

    application = application_name(spark)
    return run_change(options.in_session(spark), application, prepare)


def prepare_rows(
    change: ChangeRun, condition: Any, assigned: Mapping[str, Value] | None
) -> PreparedChange | None:
    """Write what one try of a delete or an update needs; None where nothing matches."""
    return _RowChange(change, condition, assigned).prepared()


class _RowChange:
    """One try of a delete or an update."""

    def __init__(
        self, change: ChangeRun, condition: Any, assigned: Mapping[str, Value] | None
    ) -> None:
        self._run, self._table = change, change.table
        self._condition, self._assigned = condition, assigned

    def prepared(self) -> PreparedChange | None:
        table, spark = self._table, self._run.spark
        probe = no_rows(spark, table).alias(TARGET)
        scope = filter_of(probe.filter(self._condition), table.schema, FILE)
        values = None
        if self._assigned is not None:
            assigner = Assigner(probe, spark_schema(table.schema), table.schema)
            values = assigner.updated(self._assigned)
        tasks = table.plan(scope.expression, with_metrics=values is None)
        if not tasks:
            return None
        if values is None and removes_whole_files(table, tasks, scope):
            row_filter = scope.expression == ALWAYS_TRUE or printed_filter(scope.expression)
            if row_filter is not None:
                return PreparedChange("delete", {"row_filter": row_filter}, deleted_rows=None)
        form = table.delete_form(self._run.command)
        if form is None:
            return self._copy_on_write(tasks, scope, values)
        rows = target_rows(spark, table, tasks).alias(TARGET).filter(self._condition)
        chosen = rows.select(
            *([] if values is None else [v.alias(k) for k, v in values.items()]),
            kind_of(RowKind.DELETE if values is None else RowKind.UPDATE).alias(KIND),
            FILE,
            POSITION,
            *([ROW_ID] if table.has_lineage else []),
        )
        return self._run.merge_on_read(chosen, tasks, scope, form)

    def _copy_on_write(
        self, tasks: list[FileScanTask], scope: RowFilter, values: Mapping[str, Any] | None
    ) -> PreparedChange | None:
        """Find the files that have such rows, then write them anew."""
        spark, table = self._run.spark, self._table
        found = target_rows(spark, table, tasks).alias(TARGET).filter(self._condition)
        counts = run(lambda: found.groupBy(FILE).count().collect())
        touched = {row[FILE]: row["count"] for row in counts}
        removed = [task for task in tasks if task.file.file_path in touched]
        if not removed:
            return None
        rows = target_rows(spark, table, removed).alias(TARGET)
        is_chosen = F.coalesce(self._condition, F.lit(False))
        if values is None:
            kept = rows.filter(~is_chosen).withColumn(KIND, kind_of(RowKind.MOVE))
        else:
            kept = rows.select(
                *(
                    F.when(is_chosen, value).otherwise(old(name)).alias(name)
                    for name, value in values.items()
                ),
                kind_of(RowKind.MOVE).alias(KIND),
                *self._lineage(is_chosen),
            )
        prepared = self._run.copy_on_write(with_places(kept), removed, scope)
        return with_counts(prepared, self._run.command, sum(touched.values()))

    def _lineage(self, is_changed: Any) -> list[Any]:
        """Return the lineage of rows: a changed one keeps its id, and is the youngest."""
        if not self._table.has_lineage:
            return []
        newest = F.when(~is_changed, F.col(LAST_UPDATED)).alias(LAST_UPDATED)
        return [F.col(ROW_ID), newest]


def with_counts(prepared: PreparedChange, command: Command, rows: int) -> PreparedChange:
    if command == "delete":
        return replace(prepared, deleted_rows=rows)
    return replace(prepared, updated_rows=rows)


def removes_whole_files(table: ChangedTable, tasks: list[FileScanTask], scope: RowFilter) -> bool:
    """Return whether all rows of these files match, as their partitions or metrics prove: then
    nothing has to be read. Source: Iceberg Java, `SparkTable.canDeleteWhere`."""
    if not scope.is_exact:
        return False
    if scope.expression == ALWAYS_TRUE:
        return True
    all_match = strict_metrics_evaluator(table.schema, scope.expression, True)
    return all(task.residual == ALWAYS_TRUE or all_match(task.file) for task in tasks)
