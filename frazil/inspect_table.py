"""A table's metadata tables as Arrow: what `frazil table inspect` shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from committer.extras import named_extra
from committer.iceberg.inspection.metadata_tables import (
    TableSource,
    inspect_snapshot,
    inspect_table,
)
from frazil.handle import TableHandle

if TYPE_CHECKING:
    import pyarrow as pa

    from committer.iceberg.inspection.values import Row
    from committer.table_reader import TableReader


class InspectTable:
    """One method for each metadata table; `Table.inspect` makes it. Needs the package `pyarrow`.

    Columns are those of `docs/how-to/inspect-a-table.md`: times are UTC timestamps in ms, what has
    another type from row to row is JSON text (`partition`, the `value` of a bound), metrics are
    maps by field id. Where `snapshot_id` is not given, it is the current snapshot; a table without
    one has no rows.

    Errors of each: `NotFoundError` for a snapshot or a file that is not there; `SettingsError`
    without pyarrow; those of `load_table` about reading.
    """

    __slots__ = ("_handle",)

    def __init__(self, handle: TableHandle) -> None:
        self._handle = handle

    def snapshots(self) -> pa.Table:
        """Return the snapshots that the table still has, oldest first."""
        return self._of_table("snapshots")

    def history(self) -> pa.Table:
        """Return which snapshot became current when,
        and whether it is an ancestor of the current one."""
        return self._of_table("history")

    def refs(self) -> pa.Table:
        """Return the branches and tags, by name."""
        return self._of_table("refs")

    def metadata_log_entries(self) -> pa.Table:
        """Return the metadata files, the current one last, each with the snapshot of then."""
        return self._of_table("metadata_log_entries")

    def manifests(self, snapshot_id: int | None = None) -> pa.Table:
        """Return the manifests of a snapshot, in the order of its manifest list."""
        return self._of_snapshot("manifests", snapshot_id)

    def entries(self, snapshot_id: int | None = None) -> pa.Table:
        """Return the entries of a snapshot's manifests, deleted ones too, without metrics."""
        return self._of_snapshot("entries", snapshot_id)

    def files(self, snapshot_id: int | None = None) -> pa.Table:
        """Return the live files of a snapshot, of data and of deletes, with metrics."""
        return self._of_snapshot("files", snapshot_id)

    def data_files(self, snapshot_id: int | None = None) -> pa.Table:
        """Return the live data files of a snapshot, with metrics."""
        return self._of_snapshot("data_files", snapshot_id)

    def delete_files(self, snapshot_id: int | None = None) -> pa.Table:
        """Return the live delete files of a snapshot, with metrics."""
        return self._of_snapshot("delete_files", snapshot_id)

    def partitions(self, snapshot_id: int | None = None) -> pa.Table:
        """Return totals of a snapshot's live files in each partition: files, rows, bytes."""
        return self._of_snapshot("partitions", snapshot_id)

    def all_manifests(self) -> pa.Table:
        """Return the manifests of every snapshot,
        once for each that has it (`reference_snapshot_id`)."""
        return self._of_table("all_manifests")

    def all_entries(self) -> pa.Table:
        """Return the entries of every manifest that any snapshot has."""
        return self._of_table("all_entries")

    def all_files(self) -> pa.Table:
        """Return the live files of every manifest that any snapshot has."""
        return self._of_table("all_files")

    def all_data_files(self) -> pa.Table:
        """Return the live data files of every manifest that any snapshot has."""
        return self._of_table("all_data_files")

    def all_delete_files(self) -> pa.Table:
        """Return the live delete files of every manifest that any snapshot has."""
        return self._of_table("all_delete_files")

    def _of_table(self, kind: str) -> pa.Table:
        return self._as_arrow(kind, lambda source: inspect_table(kind, source))

    def _of_snapshot(self, kind: str, snapshot_id: int | None) -> pa.Table:
        snapshot = self._handle.find_snapshot(snapshot_id)
        return self._as_arrow(kind, lambda source: inspect_snapshot(kind, source, snapshot))

    def _as_arrow(self, kind: str, rows: Callable[[TableSource], Iterator[Row]]) -> pa.Table:
        with named_extra(f"inspect.{kind}()", "read"):
            from committer.arrow_rows import arrow_table

        loaded = self._handle.loaded

        def read(reader: TableReader) -> pa.Table:
            source = TableSource(loaded.metadata, loaded.metadata_location, reader.read)
            return arrow_table(kind, rows(source))

        return self._handle.reading(read)
