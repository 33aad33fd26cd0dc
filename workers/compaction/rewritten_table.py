"""A table as a compaction has read it: its state, its groups, and what its tasks need to know.

Runs on the driver only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from committer.errors import SettingsError
from committer.iceberg.expressions.expression import ALWAYS_TRUE
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.scan.plan_files import Scan, plan_snapshot
from committer.iceberg.scan.scan_filter import ScanFilter
from committer.iceberg.scan.scan_task import FileScanTask
from committer.iceberg.schema.metadata_columns import LAST_UPDATED_SEQUENCE_NUMBER, ROW_ID
from committer.iceberg.schema.partition_spec import PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.sort_order import UNSORTED
from committer.iceberg.values.types import NestedField
from workers.arrow.arrow_schema import match_columns
from workers.branches.branch_state import BranchState, open_branch
from workers.compaction.rewrite_groups import FileGroup, RewriteSizes, plan_groups
from workers.compaction.rewrite_options import RewriteOptions, rewrite_sizes
from workers.compaction.row_order import RowOrder, clustered_by, sorted_by
from workers.files.write_target import WriteTarget, write_properties
from workers.read.shared_read import TableRead

_ROW_LINEAGE = 3
_LINEAGE = (ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)
_TARGET_SIZE = "write.target-file-size-bytes"


@dataclass(frozen=True, slots=True)
class RewrittenTable:
    """`spec`: of the new files. `order`: of their rows, None where they stay as they come."""

    options: RewriteOptions
    state: BranchState
    sizes: RewriteSizes
    spec: PartitionSpec
    order: RowOrder | None

    def plan(self) -> list[FileGroup]:
        """Plan the groups that are worth rewriting. Errors: as `plan_snapshot`."""
        return plan_groups(self._tasks(), self.sizes, self.spec.spec_id)

    def _tasks(self) -> Iterator[FileScanTask]:
        metadata, state = self.state.metadata, self.state
        asked = ScanFilter(metadata.partition_specs, metadata.current_schema, self.options.where)
        # The filter chooses files: of these all rows are kept.
        for task in plan_snapshot(Scan(metadata, asked), state.snapshot, state.reader.read):
            yield replace(task, residual=ALWAYS_TRUE)

    @property
    def read(self) -> TableRead:
        """How rows are read: with their lineage, where the table has it."""
        schema = self.state.metadata.current_schema
        names = [*(field.name for field in schema.fields), *(one.name for one in self._lineage)]
        return TableRead.of(self.state.metadata, schema=schema, names=names)

    @property
    def target(self) -> WriteTarget:
        """How rows are written."""
        metadata, schema = self.state.metadata, self.state.metadata.current_schema
        return WriteTarget(
            metadata.location,
            Schema((*schema.fields, *self._lineage), schema_id=schema.schema_id),
            self.spec,
            write_properties(metadata) | {_TARGET_SIZE: str(self.sizes.written_bytes)},
            self.state.access,
            table_order=metadata.default_sort_order,
            sort_order=UNSORTED if self.order is None else self.order.sort_order,
        )

    @property
    def _lineage(self) -> tuple[NestedField, ...]:
        return _LINEAGE if self.state.metadata.format_version >= _ROW_LINEAGE else ()


@contextmanager
def open_rewritten_table(options: RewriteOptions) -> Iterator[RewrittenTable]:
    """Load the table as it is now, for as long as the block runs.

    Errors: those of `open_branch`, `PublishError` for a column that cannot be written.
    """
    with open_branch(options.table, options.branch, options.settings) as state:
        metadata = state.metadata
        table = RewrittenTable(
            options,
            state,
            rewrite_sizes(options, metadata.properties),
            _output_spec(options, metadata),
            _order(options, metadata),
        )
        # A column that cannot be written is refused before a row is read.
        match_columns(table.read.arrow_schema, table.target.schema)
        yield table


def _output_spec(options: RewriteOptions, metadata: TableMetadata) -> PartitionSpec:
    wanted = options.output_spec_id
    if wanted is None:
        return metadata.default_spec
    found = next((one for one in metadata.partition_specs if one.spec_id == wanted), None)
    if found is None:
        raise SettingsError(f"option `output-spec-id`: the table has no partition spec {wanted}")
    return found


def _order(options: RewriteOptions, metadata: TableMetadata) -> RowOrder | None:
    match options.strategy:
        case "binpack":
            return None
        case "sort":
            return sorted_by(options.sort_order, metadata)
        case "zorder":
            return clustered_by(options.zorder_columns, metadata)
