"""A table as a rewrite of delete files has read it: its state, its groups, what its tasks need.

Runs on the driver only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.scan.scan_filter import ScanFilter
from workers.branches.branch_state import BranchState, open_branch
from workers.compaction.deletes.delete_groups import (
    DeletesGroup,
    group_equalities,
    group_positions,
)
from workers.compaction.deletes.deletes_options import DeletesOptions
from workers.compaction.deletes.live_deletes import LiveDeletes, read_live_deletes
from workers.files.deletes.position_delete_writer import DeleteForm
from workers.files.write_target import WriteTarget, write_properties
from workers.read.shared_read import TableRead

_VECTORS = 3


@dataclass(frozen=True, slots=True)
class DeletesTable:
    """A branch, and how its delete files are to be rewritten."""

    options: DeletesOptions
    state: BranchState

    @property
    def form(self) -> DeleteForm:
        """How new deletes are stored: as deletion vectors from format version 3 on."""
        if self.state.metadata.format_version >= _VECTORS:
            return "vectors"
        is_file = self.options.granularity(self.state.metadata.properties) == "file"
        return "files" if is_file else "partitions"

    def live_deletes(self) -> LiveDeletes:
        """Read the deletes. Errors: as `plan_files`."""
        return read_live_deletes(self.state.metadata, self.state.snapshot, self.state.reader.read)

    def plan(self, live: LiveDeletes) -> list[DeletesGroup]:
        """Plan the groups that are worth rewriting. Errors: `SettingsError`."""
        options = self.options
        if options.purpose == "convert equality":
            return group_equalities(live, self._chooses(), options.files_min)
        sizes = options.sizes(self.state.metadata.properties)
        return group_positions(live, sizes, self._chooses(), self.form)

    def _chooses(self) -> _Chooser:
        metadata = self.state.metadata
        asked = ScanFilter(metadata.partition_specs, metadata.current_schema, self.options.where)
        return _Chooser(asked)

    @property
    def read(self) -> TableRead:
        return TableRead.of(self.state.metadata, names=())

    @property
    def target(self) -> WriteTarget:
        """How delete files are written."""
        metadata = self.state.metadata
        schema, spec = metadata.current_schema, metadata.default_spec
        return WriteTarget(
            metadata.location,
            schema,
            spec,
            write_properties(metadata),
            self.state.access,
            table_order=metadata.default_sort_order,
        )


@dataclass(frozen=True, slots=True)
class _Chooser:
    """Chooses the delete files of partitions that may have rows of a filter."""

    asked: ScanFilter

    def __call__(self, file: DataFile) -> bool:
        return self.asked.residual(file.spec_id)(file.partition) is not None


@contextmanager
def open_deletes_table(options: DeletesOptions) -> Iterator[DeletesTable]:
    """Load the table as it is now, for as long as the block runs. Errors: as `open_branch`."""
    with open_branch(options.table, options.branch, options.settings) as state:
        yield DeletesTable(options, state)
