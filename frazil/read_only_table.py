"""A table that is read from Python: what its metadata says, its scans and its metadata tables.

Names are those of PyIceberg's `Table` where the thing is the same. Nothing here writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from committer.iceberg.expressions.expression import ALWAYS_TRUE
from committer.iceberg.scan.time_travel import snapshot_as_of
from committer.request.table_identifier import TableIdentifier
from frazil.handle import TableHandle, find_catalog, load
from frazil.inspect_table import InspectTable
from frazil.table_scan import TableScan, parsed_filter

if TYPE_CHECKING:
    from committer.iceberg.expressions.expression import Expression
    from committer.iceberg.metadata.metadata_model import TableMetadata
    from committer.iceberg.metadata.snapshot import Snapshot, SnapshotLogEntry, SnapshotRef
    from committer.iceberg.schema.partition_spec import PartitionSpec
    from committer.iceberg.schema.schema import Schema
    from committer.iceberg.schema.sort_order import SortOrder


def load_table(
    identifier: str | tuple[str, ...],
    *,
    catalog_uri: str | None = None,
    catalog_name: str | None = None,
    home: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> Table:
    """Load a table by its name, `"db.flights"` or `("db", "flights")`, to read it.

    The catalog is the one that `frazil table show` reads: other values come from the environment
    (`FRAZIL_…`), the settings file, or the defaults below `~/.frazil`. `properties`: further ones
    of the catalog, by PyIceberg's names (`s3.endpoint`, …). Nothing is created or left open.

    Errors: `NoSuchTableError`, naming the tables that there are; `NotFoundError` for a catalog or a
    metadata file that is not there; `SettingsError` for a wrong setting or a missing extra;
    `AccessError`; `TransientError` where the same call may succeed later; `InvalidMetadataError`,
    `UnsupportedError` for metadata that cannot be read; `ValueError` for what is no table's name.
    """
    name = _parsed_name(identifier)
    catalog = find_catalog(
        catalog_uri=catalog_uri, catalog_name=catalog_name, home=home, properties=properties
    )
    return Table(TableHandle(catalog, load(catalog, name)))


def _parsed_name(identifier: str | tuple[str, ...]) -> TableIdentifier:
    if isinstance(identifier, str):
        return TableIdentifier.parse(identifier)
    *namespace, name = identifier or ("",)
    if not namespace or not all(identifier):
        raise ValueError(f'expected a name such as ("db", "flights"), found {identifier}')
    return TableIdentifier(tuple(namespace), name)


class Table:
    """A table as it was when it was loaded or refreshed last: `load_table` makes it.

    Commits of others show after `refresh()`. Threads may share it.
    """

    __slots__ = ("_handle",)

    def __init__(self, handle: TableHandle) -> None:
        self._handle = handle

    def __repr__(self) -> str:
        return f"Table({'.'.join(self.name())!r}, {self.metadata_location!r})"

    def name(self) -> tuple[str, ...]:
        """Return the levels of its namespace, then its name: `("db", "flights")`."""
        identifier = self._handle.loaded.identifier
        return (*identifier.namespace, identifier.name)

    def refresh(self) -> Table:
        """Read the catalog's pointer and the metadata again; answers itself.

        Errors: those of `load_table`; `NoSuchTableError` also where another table has its name now.
        """
        self._handle = self._handle.refreshed()
        return self

    # --- Metadata --------------------------------------------------------------------------------

    @property
    def metadata(self) -> TableMetadata:
        """All metadata, as one immutable value with the specification's names."""
        return self._handle.metadata

    @property
    def metadata_location(self) -> str:
        """The location of the metadata file that was read."""
        return self._handle.loaded.metadata_location

    @property
    def format_version(self) -> int:
        """1, 2 or 3."""
        return self.metadata.format_version

    @property
    def properties(self) -> dict[str, str]:
        """The table's properties."""
        return dict(self.metadata.properties)

    @property
    def last_sequence_number(self) -> int:
        """The highest sequence number of a snapshot; 0 in format version 1."""
        return self.metadata.last_sequence_number

    def location(self) -> str:
        """Return the folder of the table."""
        return self.metadata.location

    def schema(self) -> Schema:
        """Return the current schema."""
        return self.metadata.current_schema

    def schemas(self) -> dict[int, Schema]:
        """Return all schemas by their id."""
        return {schema.schema_id: schema for schema in self.metadata.schemas}

    def spec(self) -> PartitionSpec:
        """Return the partition spec that new files have."""
        return self.metadata.default_spec

    def specs(self) -> dict[int, PartitionSpec]:
        """Return all partition specs by their id."""
        return {spec.spec_id: spec for spec in self.metadata.partition_specs}

    def last_partition_id(self) -> int:
        """Return the highest id that a partition field has had; 999 if there was none."""
        return self.metadata.last_partition_id

    def sort_order(self) -> SortOrder:
        """Return the sort order that new files ought to have."""
        return self.metadata.default_sort_order

    def sort_orders(self) -> dict[int, SortOrder]:
        """Return all sort orders by their id."""
        return {order.order_id: order for order in self.metadata.sort_orders}

    # --- Snapshots -------------------------------------------------------------------------------

    def current_snapshot(self) -> Snapshot | None:
        """Return the snapshot that a reader sees; None for a table that has none yet."""
        return self.metadata.current_snapshot

    def snapshots(self) -> list[Snapshot]:
        """Return the snapshots that the table still has, oldest first,
        as the metadata orders them."""
        return list(self.metadata.snapshots)

    def snapshot_by_id(self, snapshot_id: int) -> Snapshot | None:
        """Return the snapshot of an id; None if the table has it no longer, or never had it."""
        return self.metadata.snapshot_by_id(snapshot_id)

    def snapshot_by_name(self, name: str) -> Snapshot | None:
        """Return the snapshot that a branch or tag names; None if there is no such ref."""
        return self.metadata.branch_head(name)

    def snapshot_as_of_timestamp(
        self, timestamp_ms: int, inclusive: bool = True
    ) -> Snapshot | None:
        """Return the snapshot that was current at a time (ms since 1970 UTC), by the snapshot log.

        Not `inclusive`: just before that time. None before the first, or if it has expired.
        """
        return snapshot_as_of(self.metadata, timestamp_ms if inclusive else timestamp_ms - 1)

    def history(self) -> list[SnapshotLogEntry]:
        """Return which snapshot became current when (ms since 1970 UTC), oldest first."""
        return list(self.metadata.snapshot_log)

    def refs(self) -> dict[str, SnapshotRef]:
        """Return the branches and tags by their name."""
        return dict(self.metadata.refs)

    # --- Files -----------------------------------------------------------------------------------

    def scan(
        self,
        row_filter: str | Expression = ALWAYS_TRUE,
        selected_fields: tuple[str, ...] = ("*",),
        case_sensitive: bool = True,
        snapshot_id: int | None = None,
    ) -> TableScan:
        """Return a scan of the current snapshot, or of another one; nothing is read yet.

        `row_filter`: the rows that are wanted, as text close to SQL (`docs/reference/filters.md`).
        `selected_fields`: names of columns, dotted where they are nested; `"*"` for all.
        Errors: `InvalidFilterError` for text that is no filter.
        """
        return TableScan(
            _handle=self._handle,
            row_filter=parsed_filter(row_filter),
            selected_fields=selected_fields,
            case_sensitive=case_sensitive,
            snapshot_id=snapshot_id,
        )

    @property
    def inspect(self) -> InspectTable:
        """The metadata tables, as Arrow."""
        return InspectTable(self._handle)
