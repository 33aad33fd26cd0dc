"""One try of a merge: the table joined with the source, and what becomes of each pair of rows.

Runs on the driver. Source: Spark, `RewriteMergeIntoTable` and `MergeRows`: of the clauses for a
pair the first whose condition holds counts.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import functions as F  # noqa: N812  # its usual name
from pyspark.sql.types import StructType

from committer.errors import PublishError
from committer.iceberg.expressions.expression import And, Expression
from committer.iceberg.scan.scan_task import FileScanTask
from workers.branches.application_name import application_name
from workers.branches.attempt_identity import AttemptIdentity
from workers.changes.assignments import SOURCE, TARGET, Assigner, as_column, name_parts
from workers.changes.change_options import ChangeOptions
from workers.changes.change_run import (
    ChangeRun,
    kind_of,
    matched_twice,
    run,
    with_places,
)
from workers.changes.changed_table import ChangedTable
from workers.changes.keys.equal_keys import equal_keys
from workers.changes.keys.key_filter import KeyColumn, read_keys
from workers.changes.layout.row_layout import by_partition, rewrite_size
from workers.changes.merge_clauses import Clause, Clauses, Side
from workers.changes.publish_change import PreparedChange, run_change
from workers.changes.spark_conditions import ALL_ROWS, RowFilter, filter_of
from workers.changes.target_rows import no_rows, target_rows
from workers.changes.tasks.row_kinds import FILE, KIND, POSITION, ROW_ID, RowKind
from workers.changes.what_changed import Changed
from workers.creation.wider_schema import wider_schema
from workers.spark.spark_schema import spark_schema

_log = logging.getLogger("frazil.workers")

_IN_SOURCE = "_frazil_in_source"
_CHOICE = "_frazil_choice"
_NOTHING = -1
_OTHER_ROWS = (
    "merge: the source has other rows each time that Spark computes it (another key than before):"
    " write it to a table, or cache it, and merge that"
)
_KINDS = {"update": RowKind.UPDATE, "delete": RowKind.DELETE, "insert": RowKind.INSERT}


@dataclass(frozen=True, slots=True)
class Merge:
    """The clauses of a merge, as its caller gave them. `evolves_schema`: the table gets the columns
    of the source that it lacks."""

    source: Any
    on: Any
    clauses: Clauses
    evolves_schema: bool = False


def merge_rows(merge: Merge, options: ChangeOptions) -> Changed:
    """Run a merge. Errors: as `run_change`, and `PublishError` for a row that several rows of the
    source match."""
    spark = merge.source.sparkSession

    def prepare(table: ChangedTable, identity: AttemptIdentity) -> PreparedChange | None:
        return prepare_merge(ChangeRun(spark, table, identity, "merge"), merge)

    return run_change(options.in_session(spark), application_name(spark), prepare)


def prepare_merge(change: ChangeRun, merge: Merge) -> PreparedChange | None:
    """Write what one try of a merge needs; None where nothing changes."""
    table = _with_source_columns(change.table, merge)
    _warn_of_left_out(table, merge)
    merging = _MergeTry(replace(change, table=table), merge)
    try:
        prepared = merging.prepared()
    finally:
        merging.release()
    return None if prepared is None else replace(prepared, union=table.wider_schema)


def _with_source_columns(table: ChangedTable, merge: Merge) -> ChangedTable:
    """Return the table with the columns that the merge brings: all of the source's that it lacks,
    with wider types, where a clause takes all; else those that a clause assigns.

    Errors: as `wider_schema`.
    """
    if not merge.evolves_schema:
        return table
    fields = merge.source.schema.fields
    if not merge.clauses.take_all:
        assigned = (name for clause in merge.clauses.all for name in clause.assigned or ())
        new = {name_parts(name)[0].lower() for name in assigned} - _names(table)
        fields = [field for field in fields if field.name.lower() in new]
    return replace(table, wider_schema=wider_schema(table.state.metadata, StructType(fields)))


def _warn_of_left_out(table: ChangedTable, merge: Merge) -> None:
    """Name the columns of the source that no clause which takes all has a place for."""
    names = _names(table)
    left_out = [name for name in merge.source.columns if name.lower() not in names]
    if left_out and merge.clauses.take_all:
        _log.warning(
            "merge into table `%s`: the source has columns that the table lacks, and their values"
            " are left out: `%s`; `with_schema_evolution()` or option `mergeSchema` adds columns",
            table.name,
            "`, `".join(left_out),
        )


def _names(table: ChangedTable) -> set[str]:
    return {field.name.lower() for field in table.schema.fields}


class _MergeTry:
    """One try of a merge on one state of the table."""

    def __init__(self, change: ChangeRun, merge: Merge) -> None:
        self._run, self._table, self._merge = change, change.table, merge
        self._clauses = merge.clauses
        self._marked = merge.source.withColumn(_IN_SOURCE, F.lit(True))
        self._source = self._marked.alias(SOURCE)
        self._is_held = False
        self._on = as_column(merge.on)

    def release(self) -> None:
        """Drop what was kept of the source."""
        if self._is_held:
            self._marked.unpersist()

    def prepared(self) -> PreparedChange | None:
        table, spark, clauses = self._table, self._run.spark, self._clauses
        probe = no_rows(spark, table).alias(TARGET)
        values = self._values(probe)
        scope = self._scope(probe)
        tasks = table.plan(scope.expression)
        form = table.delete_form(self._run.command)
        rows = target_rows(spark, table, tasks).alias(TARGET)
        changes = self._changes(rows, values)
        if clauses.only_inserts:
            return self._append(changes)
        if form is None:
            return self._copy_on_write(changes, tasks, scope)
        return self._run.merge_on_read(
            changes, tasks, scope, form, matches_once=clauses.matches_once
        )

    def _scope(self, probe: Any) -> RowFilter:
        """Return the rows of the table that the merge may match; all of them where a clause is for
        those that nothing matches."""
        if self._clauses.of("not_matched_by_source"):
            return ALL_ROWS
        joined = probe.join(self._source, self._on, "inner")
        scope = filter_of(joined, self._table.filter_schema, FILE)
        keys = equal_keys(joined, self._source, self._table.filter_schema)
        if not keys or self._table.state.snapshot is None:
            return scope
        return RowFilter(And.of(scope.expression, self._read_keys(keys)))

    def _read_keys(self, keys: Sequence[KeyColumn]) -> Expression:
        """Return what the keys of the source say of the table's rows. The source is kept, so that
        the merge has these very rows; should it be computed again with others, the merge fails."""
        self._marked.persist()
        self._is_held = True
        found = read_keys(self._source, keys)
        if found.is_within is not None:
            problem = F.raise_error(F.lit(_OTHER_ROWS)).cast("boolean")
            # Of a deterministic column Spark might infer the same of the table's rows.
            is_true = F.monotonically_increasing_id() >= 0
            is_there = F.when(found.is_within, is_true).otherwise(problem)
            self._source = self._source.withColumn(_IN_SOURCE, is_there).alias(SOURCE)
        return found.expression

    # --- What becomes of a pair of rows ----------------------------------------------------------

    def _values(self, probe: Any) -> list[Mapping[str, Any] | None]:
        """Return the new columns of each clause; None for a delete."""
        columns = spark_schema(self._table.schema)
        pairs = probe.join(self._source, F.lit(True), "inner")
        assigner = Assigner(pairs, columns, self._table.schema)
        return [self._values_of(clause, assigner) for clause in self._clauses.all]

    def _values_of(self, clause: Clause, assigner: Assigner) -> Mapping[str, Any] | None:
        if clause.action == "delete":
            return None
        assigned = clause.assigned
        if assigned is None:
            may_lack = self._merge.evolves_schema
            assigned = assigner.of_source(self._merge.source, may_lack=may_lack)
        if clause.action == "insert":
            return assigner.inserted(assigned)
        return assigner.updated(assigned)

    def _changes(self, rows: Any, values: list[Mapping[str, Any] | None]) -> Any:
        """Return the rows of `row_kinds` that the merge asks for, none for rows that stay."""
        clauses = self._clauses
        joined = rows.join(self._source, self._on, clauses.join)
        chosen = joined.withColumn(_CHOICE, self._choice())
        kind = F.lit(int(RowKind.MATCHED))
        for number, clause in enumerate(clauses.all):
            is_this = F.col(_CHOICE) == number
            kind = F.when(is_this, kind_of(_KINDS[clause.action])).otherwise(kind)
        needed = F.col(_CHOICE) != _NOTHING
        if clauses.matches_once:
            needed |= F.col(FILE).isNotNull() & F.col(_IN_SOURCE).isNotNull()
        names = [field.name for field in self._table.schema.fields]
        return chosen.filter(needed).select(
            *(self._new_value(name, values).alias(name) for name in names if any(values)),
            kind.alias(KIND),
            FILE,
            POSITION,
            *([ROW_ID] if self._table.has_lineage else []),
        )

    def _choice(self) -> Any:
        """Return the number of the clause that counts for a pair."""
        number = {id(clause): at for at, clause in enumerate(self._clauses.all)}
        in_target, in_source = F.col(FILE).isNotNull(), F.col(_IN_SOURCE).isNotNull()
        sides: dict[Side, Any] = {
            "matched": in_target & in_source,
            "not_matched": ~in_target,
            "not_matched_by_source": ~in_source,
        }
        choice = F.lit(_NOTHING)
        for clause in reversed(self._clauses.all):
            applies = sides[clause.side]
            if clause.condition is not None:
                applies &= F.coalesce(as_column(clause.condition), F.lit(False))
            choice = F.when(applies, F.lit(number[id(clause)])).otherwise(choice)
        return choice

    def _new_value(self, name: str, values: list[Mapping[str, Any] | None]) -> Any:
        """Return a column of the row that a clause writes; null where it writes none."""
        found = F.lit(None)
        for number, columns in enumerate(values):
            if columns is not None:
                found = F.when(F.col(_CHOICE) == number, columns[name]).otherwise(found)
        return found

    # --- What is written -------------------------------------------------------------------------

    def _append(self, changes: Any) -> PreparedChange | None:
        """Append rows: nothing that was read matters to them. As Iceberg's Spark, which has nothing
        compared then."""
        written = self._run.write(with_places(changes))
        if not any(each.files for each in written):
            return None
        inserted = sum(each.inserted for each in written)
        return PreparedChange("append", {}, written, inserted_rows=inserted)

    def _copy_on_write(
        self, changes: Any, tasks: list[FileScanTask], scope: RowFilter
    ) -> PreparedChange | None:
        """Find the files whose rows change, then write them without these, and the new rows."""
        kept = changes.persist()
        try:
            return self._rewritten(kept, tasks, scope)
        finally:
            kept.unpersist()

    def _rewritten(
        self, changes: Any, tasks: list[FileScanTask], scope: RowFilter
    ) -> PreparedChange | None:
        table, spark = self._table, self._run.spark
        counts = self._counts(changes)
        removed = [task for task in tasks if task.file.file_path in counts.files]
        if not removed and not counts.inserted:
            return None
        is_gone = F.col(KIND).isin(int(RowKind.DELETE), int(RowKind.UPDATE))
        gone = changes.filter(is_gone).select(FILE, POSITION).distinct()
        stay = target_rows(spark, table, removed).join(gone, [FILE, POSITION], "left_anti")
        moved = with_places(stay.withColumn(KIND, kind_of(RowKind.MOVE)))
        is_new = F.col(KIND).isin(int(RowKind.UPDATE), int(RowKind.INSERT))
        rows = moved.unionByName(with_places(changes.filter(is_new)), allowMissingColumns=True)
        size = rewrite_size(tasks, removed, counts.updated + counts.inserted)
        prepared = self._run.copy_on_write(by_partition(rows, table, size), removed, scope)
        return replace(
            prepared,
            deleted_rows=counts.deleted,
            updated_rows=counts.updated,
            inserted_rows=counts.inserted,
        )

    def _counts(self, changes: Any) -> _Counts:
        """Count what changes, of each data file. Errors: `PublishError` for a row that several rows
        of the source match."""
        by_row = changes.groupBy(FILE, POSITION).agg(
            F.count(F.lit(1)).alias("matches"),
            *(
                F.sum(F.when(F.col(KIND) == int(kind), 1).otherwise(0)).alias(kind.name)
                for kind in (RowKind.DELETE, RowKind.UPDATE, RowKind.INSERT)
            ),
        )
        by_file = by_row.groupBy(FILE).agg(
            F.max("matches").alias("matches"),
            F.count(F.when(F.col("DELETE") > 0, 1)).alias("DELETE"),
            F.sum("UPDATE").alias("UPDATE"),
            F.sum("INSERT").alias("INSERT"),
        )
        found = _Counts()
        for row in run(by_file.collect):
            if row[FILE] is None:
                found.inserted = row["INSERT"]
                continue
            if row["matches"] > 1 and self._clauses.matches_once:
                raise PublishError(matched_twice(self._table, row[FILE]))
            if row["DELETE"] or row["UPDATE"]:
                found.files.add(row[FILE])
            found.deleted += row["DELETE"]
            found.updated += row["UPDATE"]
        return found


class _Counts:
    """`files`: those with rows that change."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.deleted = self.updated = self.inserted = 0
