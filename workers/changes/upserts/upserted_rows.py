"""One try of an upsert: the keys looked up in the table as it is, old rows deleted by position.

Runs on the driver. Only the columns of the key are read of the table, and only of files that may
have such keys. A row that takes the place of another one keeps its `_row_id`.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812  # its usual name

from committer.iceberg.scan.scan_task import FileScanTask
from workers.changes.change_run import ChangeRun, kind_of
from workers.changes.layout.row_layout import Spread
from workers.changes.publish_change import PreparedChange
from workers.changes.spark_conditions import RowFilter
from workers.changes.target_rows import target_rows
from workers.changes.tasks.row_kinds import FILE, IS_DELETED, KIND, POSITION, ROW_ID, RowKind
from workers.changes.upserts.winners import Winners
from workers.spark.spark_schema import quoted

_NUMBER = "_frazil_number"
_KEY_TWICE = (
    "upsert: two rows of a micro-batch have one key of the table, in two spellings: nothing was"
    " published. Convert the key columns to the table's types, uuids to lower case"
)


def prepare_upsert(change: ChangeRun, winners: Winners) -> PreparedChange | None:
    """Write what one try of an upsert needs; None where nothing changes."""
    table, scope = change.table, RowFilter(winners.keys.expression)
    tasks = table.plan(scope.expression)
    looked_up = _looked_up(change, winners, tasks)
    spread = Spread(winners.names, winners.upsert.partitions)
    rows = _changes(looked_up, change, winners)
    return change.merge_on_read(rows, tasks, scope, table.position_form, spread=spread)


def _looked_up(change: ChangeRun, winners: Winners, tasks: list[FileScanTask]) -> Any:
    """Return the rows that count, each once for each old row of its key, or once without any. A key
    has several where an append wrote it twice; they are numbered."""
    names = [quoted(name) for name in winners.names]
    places = target_rows(change.spark, change.table, tasks, winners.names)
    found = places.join(winners.rows.select(names), list(winners.names), "left_semi")
    joined = winners.rows.join(found, list(winners.names), "left")
    in_order = Window.partitionBy(*names).orderBy(FILE, POSITION)
    is_same = F.lag(FILE).over(in_order).eqNullSafe(F.col(FILE)) & F.lag(POSITION).over(
        in_order
    ).eqNullSafe(F.col(POSITION))
    number = F.row_number().over(in_order)
    problem = F.raise_error(F.lit(_KEY_TWICE)).cast("int")
    return joined.withColumn(_NUMBER, F.when((number > 1) & is_same, problem).otherwise(number))


def _changes(looked_up: Any, change: ChangeRun, winners: Winners) -> Any:
    """Return the rows of `row_kinds`: a delete for each old row, and an insert for each key that
    has a row now."""
    is_written = (F.col(_NUMBER) == 1) & ~F.col(IS_DELETED)
    kinds = F.array(
        F.when(F.col(FILE).isNotNull(), kind_of(RowKind.DELETE)),
        F.when(is_written, kind_of(RowKind.INSERT)),
    )
    by_kind = looked_up.withColumn(KIND, F.explode(F.array_compact(kinds)))
    is_insert = F.col(KIND) == int(RowKind.INSERT)
    fields = [field.name for field in change.table.schema.fields]
    present = [name for name in fields if name in winners.rows.columns]
    return by_kind.select(
        *(F.when(is_insert, F.col(quoted(name))).alias(name) for name in present),
        KIND,
        F.when(~is_insert, F.col(FILE)).alias(FILE),
        F.when(~is_insert, F.col(POSITION)).alias(POSITION),
        *([F.when(is_insert, F.col(ROW_ID)).alias(ROW_ID)] if change.table.has_lineage else []),
    )
