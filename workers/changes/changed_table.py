"""A table as a change has read it: its state, its plan, and what its properties say of the change.

Runs on the driver only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal, cast

from committer.errors import SettingsError
from committer.iceberg.expressions.expression import ALWAYS_FALSE, ALWAYS_TRUE, Expression
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.scan.entry_reader import without_metrics
from committer.iceberg.scan.plan_files import Scan, plan_snapshot
from committer.iceberg.scan.scan_filter import ScanFilter
from committer.iceberg.scan.scan_task import FileScanTask
from committer.iceberg.schema.schema import Schema
from workers.branches.branch_state import BranchState, open_destination
from workers.changes.change_options import ChangeOptions, Command
from workers.files.deletes.position_delete_writer import DeleteForm
from workers.files.write_properties import target_file_bytes
from workers.settings.wap import Destination, choose_destination

Isolation = Literal["serializable", "snapshot"]
_ROW_LINEAGE = 3
_POSITION_DELETES = 2


@dataclass(frozen=True, slots=True)
class ChangedTable:
    """`wider_schema`: the columns where the table gets some by this change; None: it gets none."""

    options: ChangeOptions
    state: BranchState
    wider_schema: Schema | None = None

    @property
    def name(self) -> str:
        return self.options.table

    @property
    def schema(self) -> Schema:
        """The columns of all branches: a branch is written with the table's current ones, and those
        that the change brings."""
        return self.wider_schema or self.state.metadata.current_schema

    @property
    def filter_schema(self) -> Schema:
        """The columns that filters may name: those that the table has already, with these types."""
        current = self.state.metadata.current_schema
        if self.wider_schema is None:
            return current
        return Schema(tuple(field for field in current.fields if field in self.wider_schema.fields))

    @property
    def has_lineage(self) -> bool:
        return self.state.metadata.format_version >= _ROW_LINEAGE

    def delete_form(self, command: Command) -> DeleteForm | None:
        """Return how a command writes the positions that it deletes; None where it writes the
        files with such rows anew. Source: `write.*.mode`, `write.delete.granularity`; a format
        version 1 has no deletes.
        """
        mode = self._choice(f"write.{command}.mode", "copy-on-write", "merge-on-read")
        if mode == "copy-on-write" or self.state.metadata.format_version < _POSITION_DELETES:
            return None
        return self.position_form

    @property
    def position_form(self) -> DeleteForm:
        """How deleted positions are written. A format version 1 has none."""
        if self.has_lineage:
            return "vectors"
        # Iceberg's Spark has one file for each data file where the table says nothing.
        granularity = self._choice("write.delete.granularity", "file", "partition")
        return "files" if granularity == "file" else "partitions"

    @property
    def target_file_bytes(self) -> int:
        """How large a data file should be: `write.target-file-size-bytes`."""
        return target_file_bytes(self.state.metadata.properties)

    def isolation(self, command: Command) -> Isolation:
        """Return what others must not have done meanwhile. Were an upsert to miss a row that has
        come since, its key would have two."""
        if command == "upsert":
            return "serializable"
        name = f"write.{command}.isolation-level"
        return cast("Isolation", self._choice(name, "serializable", "snapshot"))

    def _choice(self, name: str, *choices: str) -> str:
        """Read a property of the table; the first choice is the default."""
        value = self.state.metadata.properties.get(name, choices[0]).lower()
        if value not in choices:
            raise SettingsError(
                f"table `{self.name}`: property `{name}` is `{value}`, expected"
                f" `{'` or `'.join(choices)}`"
            )
        return value

    def base(self) -> dict[str, object]:
        """Return the needs of a request that has read this state."""
        if self.state.snapshot is None:
            return {"base_sequence_number": 0}
        return {"base_snapshot_id": self.state.snapshot.snapshot_id}

    def plan(
        self, expression: Expression = ALWAYS_TRUE, *, with_metrics: bool = False
    ) -> list[FileScanTask]:
        """Plan the data files that may have rows of a filter; Spark evaluates what is left of it.
        Errors: as `plan_snapshot`."""
        if expression == ALWAYS_FALSE:
            return []
        scan = Scan(
            self.state.metadata,
            ScanFilter(self.state.metadata.partition_specs, self.schema, expression),
            with_metrics=with_metrics,
        )
        return list(plan_snapshot(scan, self.state.snapshot, self.state.reader.read))


def for_tasks(task: FileScanTask) -> FileScanTask:
    """Return what travels: without the metrics of the data file, which were needed to plan, and
    without a filter, which Spark evaluates."""
    return replace(task, file=without_metrics(task.file), residual=ALWAYS_TRUE)


@contextmanager
def open_changed_table(options: ChangeOptions) -> Iterator[ChangedTable]:
    """Load the table as it is now, for as long as the block runs. Errors: as `open_destination`;
    `SettingsError` for options and confs of the session that exclude each other."""

    def choose(metadata: TableMetadata) -> Destination:
        return choose_destination(options.branch, options.wap, options.session, metadata.properties)

    with open_destination(options.table, choose, options.settings) as state:
        yield ChangedTable(options, state)
