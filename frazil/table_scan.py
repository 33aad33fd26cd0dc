"""A scan of one snapshot: which files a reader reads for a filter, with deletes and residuals."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from committer.extras import named_extra
from committer.iceberg.expressions.expression import And, Expression
from committer.iceberg.expressions.where_text import parse_where
from committer.iceberg.scan.plan_files import plan_files
from committer.iceberg.scan.time_travel import scan_schema
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.schema_selection import wanted_columns
from committer.iceberg.schema.table_partition import table_partition_type
from frazil.handle import TableHandle

if TYPE_CHECKING:
    import pyarrow as pa

    from committer.iceberg.metadata.snapshot import Snapshot
    from committer.iceberg.scan.scan_task import FileScanTask
    from frazil.scan_rows import ScanRows

_ALL = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableScan:
    """A query of a table; `Table.scan` makes it, and each refinement returns a new one.

    It reads the table as of its creation, even after later commits and refreshes.
    """

    _handle: TableHandle = field(repr=False)
    row_filter: Expression
    selected_fields: tuple[str, ...]
    case_sensitive: bool
    snapshot_id: int | None
    ref: str | None = None

    def filter(self, row_filter: str | Expression) -> TableScan:
        """Keep only rows that match this too. Errors: `InvalidFilterError`."""
        return replace(self, row_filter=And.of(self.row_filter, parsed_filter(row_filter)))

    def select(self, *field_names: str) -> TableScan:
        """Keep only these columns, of those that were wanted."""
        wanted = self.selected_fields
        kept = field_names if _ALL in wanted else tuple(n for n in wanted if n in field_names)
        return replace(self, selected_fields=kept)

    def use_ref(self, name: str) -> TableScan:
        """Scan a branch (with the table's current schema) or a tag (with its snapshot's).

        Errors: `NotFoundError` for a ref that is not there; `ValueError` if the scan has a
        snapshot's id already.
        """
        if self.snapshot_id is not None:
            raise ValueError(
                f"the scan is of snapshot {self.snapshot_id}: expected no ref, `{name}`"
            )
        self._handle.find_snapshot(None, name)
        return replace(self, ref=name)

    def with_case_sensitive(self, case_sensitive: bool = True) -> TableScan:
        """Set whether names of columns must have the case that the schema gives them."""
        return replace(self, case_sensitive=case_sensitive)

    def snapshot(self) -> Snapshot | None:
        """Return the snapshot that is scanned; None for a table that has none.
        Errors: `NotFoundError`."""
        return self._handle.find_snapshot(self.snapshot_id, self.ref)

    def projection(self) -> Schema:
        """Return the schema of the wanted columns, as the snapshot is read; metadata columns
        (`_file`, …) come behind those of the table.

        Errors: `NotFoundError` for the snapshot; `InvalidFilterError` for a column that is not
        there.
        """
        schema, names = self._schema(), self._names()
        if names is None:
            return schema
        metadata = self._handle.metadata
        partition = table_partition_type(metadata.partition_specs, metadata.current_schema)
        columns = wanted_columns(schema, names, partition, case_sensitive=self.case_sensitive)
        kept = {column.field_id for column in columns}
        ids = tuple(one for one in schema.identifier_field_ids if one in kept)
        return Schema(columns, schema.schema_id, ids)

    def plan_files(self, *, with_metrics: bool = False) -> list[FileScanTask]:
        """Return the data files that may hold wanted rows:
        each with `file`, `delete_files`, `residual`.

        In the order of the manifest list. Files have column metrics (counts, bounds by field id)
        only `with_metrics`, which reads more. Memory grows with the files that are found. Errors:
        `NotFoundError` for a missing snapshot or file; `InvalidFilterError` for a filter that does
        not fit the schema; those of `load_table` about reading.
        """
        handle = self._handle
        self.snapshot()
        return handle.reading(
            lambda reader: list(
                plan_files(
                    handle.metadata,
                    read=reader.read,
                    filter=self.row_filter,
                    snapshot_id=self.snapshot_id,
                    ref=self.ref,
                    case_sensitive=self.case_sensitive,
                    with_metrics=with_metrics,
                )
            )
        )

    def to_arrow(self) -> pa.Table:
        """Return the rows as a table in memory: deletes applied, the filter kept exactly.

        Columns are those of `projection`. Errors: those of `plan_files`; `InvalidMetadataError`,
        `UnsupportedError` for a file that cannot be read; `SettingsError` without pyarrow.
        """
        rows = self._rows("to_arrow()")
        return rows.reader(self.plan_files()).read_all()

    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """Return the rows as they are read, a few batches in memory. Files are planned at once, and
        read when their batches are asked for. Errors: as `to_arrow`."""
        rows = self._rows("to_arrow_batch_reader()")
        return rows.reader(self.plan_files())

    def count(self) -> int:
        """Count the rows, by the files' own counts where no filter and no delete by value asks for
        their contents. Errors: as `to_arrow`."""
        rows = self._rows("count()")
        return rows.count(self.plan_files())

    def _rows(self, method: str) -> ScanRows:
        with named_extra(method, "read"):
            from frazil.scan_rows import ScanRows
            from workers.read.shared_read import TableRead

        read = TableRead.of(
            self._handle.metadata,
            schema=self._schema(),
            names=self._names(),
            case_sensitive=self.case_sensitive,
        )
        return ScanRows(self._handle, read)

    def _schema(self) -> Schema:
        return scan_schema(self._handle.metadata, self.snapshot(), ref=self.ref)

    def _names(self) -> list[str] | None:
        """Return the names of the wanted columns; None for all of the table's alone."""
        if self.selected_fields == (_ALL,):
            return None
        own = [field.name for field in self._schema().fields]
        return [each for name in self.selected_fields for each in (own if name == _ALL else [name])]


def parsed_filter(row_filter: str | Expression) -> Expression:
    """Parse a filter if it is text. Errors: `InvalidFilterError`."""
    return parse_where(row_filter) if isinstance(row_filter, str) else row_filter
