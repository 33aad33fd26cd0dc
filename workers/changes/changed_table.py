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
from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.scan.entry_reader import without_metrics
from committer.iceberg.scan.plan_files import Scan, plan_snapshot
from committer.iceberg.scan.scan_filter import ScanFilter
from committer.iceberg.scan.scan_task import FileScanTask
from committer.iceberg.scan.time_travel import find_snapshot
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.locations import data_folder
from committer.ledger_entry import MAIN
from committer.request.table_identifier import TableIdentifier
from committer.table_reader import TableReader, open_reader
from workers.changes.change_options import ChangeOptions, Command
from workers.files.deletes.position_delete_writer import DeleteForm
from workers.files.store_access import StoreAccess
from workers.files.vended_keys import access_of_tasks
from workers.files.write_properties import target_file_bytes
from workers.settings.session_settings import with_session_settings
from workers.settings.worker_settings import WorkerSettings, load_settings

Isolation = Literal["serializable", "snapshot"]
_ROW_LINEAGE = 3
_POSITION_DELETES = 2


@dataclass(frozen=True, slots=True)
class ChangedTable:
    """One state of a table, open for reading. `snapshot`: the head of the branch; None of an empty
    table."""

    options: ChangeOptions
    settings: WorkerSettings
    metadata: TableMetadata
    snapshot: Snapshot | None
    access: StoreAccess
    reader: TableReader

    @property
    def name(self) -> str:
        return self.options.table

    @property
    def schema(self) -> Schema:
        """The columns of all branches: a branch is written with the table's current ones."""
        return self.metadata.current_schema

    @property
    def has_lineage(self) -> bool:
        return self.metadata.format_version >= _ROW_LINEAGE

    def delete_form(self, command: Command) -> DeleteForm | None:
        """Return how a command writes the positions that it deletes; None where it writes the
        files with such rows anew. Source: `write.*.mode`, `write.delete.granularity`; a format
        version 1 has no deletes.
        """
        mode = self._choice(f"write.{command}.mode", "copy-on-write", "merge-on-read")
        if mode == "copy-on-write" or self.metadata.format_version < _POSITION_DELETES:
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
        return target_file_bytes(self.metadata.properties)

    def isolation(self, command: Command) -> Isolation:
        """Return what others must not have done meanwhile. Were an upsert to miss a row that has
        come since, its key would have two."""
        if command == "upsert":
            return "serializable"
        name = f"write.{command}.isolation-level"
        return cast("Isolation", self._choice(name, "serializable", "snapshot"))

    def _choice(self, name: str, *choices: str) -> str:
        """Read a property of the table; the first choice is the default."""
        value = self.metadata.properties.get(name, choices[0]).lower()
        if value not in choices:
            raise SettingsError(
                f"table `{self.name}`: property `{name}` is `{value}`, expected"
                f" `{'` or `'.join(choices)}`"
            )
        return value

    def base(self) -> dict[str, object]:
        """Return the needs of a request that has read this state."""
        if self.snapshot is None:
            return {"base_sequence_number": 0}
        return {"base_snapshot_id": self.snapshot.snapshot_id}

    def plan(
        self, expression: Expression = ALWAYS_TRUE, *, with_metrics: bool = False
    ) -> list[FileScanTask]:
        """Plan the data files that may have rows of a filter; Spark evaluates what is left of it.
        Errors: as `plan_snapshot`."""
        if expression == ALWAYS_FALSE:
            return []
        scan = Scan(
            self.metadata,
            ScanFilter(self.metadata, self.schema, expression),
            with_metrics=with_metrics,
        )
        return list(plan_snapshot(scan, self.snapshot, self.reader.read))


def for_tasks(task: FileScanTask) -> FileScanTask:
    """Return what travels: without the metrics of the data file, which were needed to plan, and
    without a filter, which Spark evaluates."""
    return replace(task, file=without_metrics(task.file), residual=ALWAYS_TRUE)


@contextmanager
def open_changed_table(options: ChangeOptions) -> Iterator[ChangedTable]:
    """Load the table as it is now, for as long as the block runs.

    Errors: `SettingsError`, those of `TableReader.load`, `NotFoundError` for a branch that is not
    there.
    """
    settings = load_settings(with_session_settings(options.settings))
    with open_reader(settings.catalog) as reader:
        metadata = reader.load(TableIdentifier.parse(options.table)).metadata
        ref = None if options.branch == MAIN else options.branch
        folder = data_folder(metadata.location, metadata.properties)
        yield ChangedTable(
            options,
            settings,
            metadata,
            find_snapshot(metadata, ref=ref),
            access_of_tasks(settings.access, reader.credential(folder)),
            reader,
        )
