"""One try of a change on Spark: its DataFrames run, and what its tasks wrote as a request.

Runs on the driver. Of the rows themselves nothing comes to the driver, only the tasks' messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812  # its usual name

from committer import errors
from committer.errors import FrazilError, PublishError
from committer.iceberg.scan.scan_task import FileScanTask
from committer.iceberg.schema.metadata_columns import LAST_UPDATED_SEQUENCE_NUMBER as NEWEST
from committer.iceberg.schema.metadata_columns import ROW_ID as LINEAGE
from committer.iceberg.schema.schema import Schema
from committer.request.needs import RemovedDeleteFile
from workers.branches.attempt_identity import AttemptIdentity
from workers.changes.change_options import Command
from workers.changes.changed_table import ChangedTable
from workers.changes.layout.row_layout import Spread, all_columns, by_file
from workers.changes.publish_change import WHAT, PreparedChange, delete_written
from workers.changes.spark_conditions import RowFilter, printed_filter
from workers.changes.target_rows import facts, table_read
from workers.changes.tasks.row_kinds import TYPES, RowKind
from workers.changes.tasks.row_writer import RowsWritten, RowWriter
from workers.files.deletes.position_delete_writer import DeleteForm
from workers.files.write_target import WriteTarget, write_properties
from workers.spark.reported_files import ReportedFiles
from workers.spark.task_messages import MESSAGE_SCHEMA, read_messages

_OURS = re.compile(r"committer\.errors\.(\w+): (.*)")


@dataclass(frozen=True, slots=True)
class ChangeRun:
    """The context that every change of a table runs in."""

    spark: Any
    table: ChangedTable
    identity: AttemptIdentity
    command: Command

    # --- Tasks -----------------------------------------------------------------------------------

    def write(
        self, rows: Any, form: DeleteForm | None = None, *, matches_once: bool = False
    ) -> list[RowsWritten]:
        """Let tasks write rows that have the columns of `row_kinds`; return their messages.

        Errors: as a task's, and `PublishError` for a row that several rows of the source match.
        """
        table, reported = self.table, ReportedFiles(self.spark)
        attempt = self.identity.attempt(table.state)
        writer = RowWriter(_target(table), table_read(table), attempt, reported, form, matches_once)
        with reported.deleted_on_failure(table.state.access, WHAT):
            messages = run(rows.mapInArrow(writer.write, MESSAGE_SCHEMA).collect)
        written: list[RowsWritten] = read_messages(messages)
        repeated = next((each.repeated for each in written if each.repeated), None)
        if repeated is not None:
            delete_written(written, table)
            raise PublishError(matched_twice(table, repeated[0]))
        return written

    # --- Requests --------------------------------------------------------------------------------

    def copy_on_write(
        self, rows: Any, removed: Sequence[FileScanTask], scope: RowFilter
    ) -> PreparedChange:
        """Write the rows that take the place of these files. `scope`: of what was read."""
        written = self.write(rows)
        needs = isolation_needs(self.table, self.command, scope) | removal_needs(removed)
        return PreparedChange("overwrite", needs, written)

    def merge_on_read(
        self,
        rows: Any,
        tasks: Sequence[FileScanTask],
        scope: RowFilter,
        form: DeleteForm,
        *,
        matches_once: bool = False,
        spread: Spread | None = None,
    ) -> PreparedChange | None:
        """Write deleted positions and new rows. `tasks`: of all files that rows may be deleted of.
        None where there are none of both."""
        known = rows.unionByName(facts(self.spark, tasks), allowMissingColumns=True)
        placed = by_file(with_places(known), self.table, spread or all_columns(rows))
        written = self.write(placed, form, matches_once=matches_once)
        if not any(each.files for each in written):
            return None
        referenced = [path for each in written for path in each.referenced]
        removed = [file for each in written for file in each.removed]
        needs = isolation_needs(self.table, self.command, scope) | {
            "removed_delete_files": tuple(map(RemovedDeleteFile.of, removed)),
            # Those of one data file say so themselves.
            "referenced_data_files": tuple(referenced if form == "partitions" else ()),
            # A row that others have deleted meanwhile is replaced all the same by an upsert.
            "updates_rows": self.command in ("update", "merge"),
        }
        return PreparedChange(
            "row-delta",
            needs,
            written,
            sum(each.deleted for each in written),
            sum(each.updated for each in written),
            sum(each.inserted for each in written),
        )


def isolation_needs(table: ChangedTable, command: Command, scope: RowFilter) -> dict[str, object]:
    """Return what others must not have done since the table was read. `scope`: of that read; the
    whole table where nothing is known of it, or where a request cannot hold what is."""
    needs: dict[str, object] = {"isolation_level": table.isolation(command)}
    if (printed := printed_filter(scope.expression)) is not None:
        needs["conflict_filter"] = printed
    return needs


def _target(table: ChangedTable) -> WriteTarget:
    metadata, schema = table.state.metadata, table.schema
    if table.has_lineage:
        schema = Schema((*schema.fields, LINEAGE, NEWEST), schema_id=schema.schema_id)
    return WriteTarget(
        metadata.location,
        schema,
        metadata.default_spec,
        write_properties(metadata),
        table.state.access,
        table_order=metadata.default_sort_order,
        sort_order=metadata.default_sort_order,
    )


def removal_needs(tasks: Iterable[FileScanTask]) -> dict[str, object]:
    """Return the needs that remove these data files with their deletion vectors. A file that the
    table holds twice has one name, by which both go."""
    of_path = {task.file.file_path: task for task in tasks}
    vectors = (
        file for task in of_path.values() for file in task.delete_files if file.is_deletion_vector
    )
    return {
        "removed_data_files": tuple(of_path),
        "removed_delete_files": tuple(map(RemovedDeleteFile.of, vectors)),
    }


# --- Rows ----------------------------------------------------------------------------------------


def with_places(rows: Any) -> Any:
    """Return rows with all columns of `row_kinds`, null where they had none."""
    missing = {name: F.lit(None).cast(kind) for name, kind in TYPES.items()}
    present = set(rows.columns)
    return rows.withColumns({k: v for k, v in missing.items() if k not in present})


def kind_of(kind: RowKind) -> Any:
    return F.lit(int(kind))


def matched_twice(table: ChangedTable, file_path: str) -> str:
    return (
        f"merge into table `{table.name}`: several rows of the source match one row of the table"
        f" (of data file {file_path}), so its new values are not decided: nothing was changed. Make"
        " the source's keys distinct"
    )


# --- Errors --------------------------------------------------------------------------------------


def run(action: Any) -> Any:
    """Run an action of Spark. Errors: that of Frazil's which made a task fail, in its own words;
    else Spark's."""
    try:
        return action()
    except PySparkException as error:
        found = _OURS.search(str(error))
        kind = getattr(errors, found[1], None) if found else None
        if found is None or not isinstance(kind, type) or not issubclass(kind, FrazilError):
            raise
        raise kind(found[2]) from None
