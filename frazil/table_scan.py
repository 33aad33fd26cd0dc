"""A scan of one snapshot: which files a reader reads for a filter, with deletes and residuals."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from committer.iceberg.expressions.expression import And, Expression
from committer.iceberg.expressions.where_text import parse_where
from committer.iceberg.scan.plan_files import plan_files
from committer.iceberg.scan.time_travel import scan_schema
from committer.iceberg.schema.schema_selection import select_columns
from frazil.handle import TableHandle

if TYPE_CHECKING:
    from committer.iceberg.metadata.snapshot import Snapshot
    from committer.iceberg.scan.scan_task import FileScanTask
    from committer.iceberg.schema.schema import Schema

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
        """Return the schema of the wanted columns, as the snapshot is read.

        Errors: `NotFoundError` for the snapshot; `InvalidFilterError` for a column that is not
        there.
        """
        schema = scan_schema(self._handle.metadata, self.snapshot(), ref=self.ref)
        if _ALL in self.selected_fields:
            return schema
        return select_columns(schema, self.selected_fields, case_sensitive=self.case_sensitive)

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


def parsed_filter(row_filter: str | Expression) -> Expression:
    """Parse a filter if it is text. Errors: `InvalidFilterError`."""
    return parse_where(row_filter) if isinstance(row_filter, str) else row_filter
