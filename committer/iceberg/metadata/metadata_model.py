"""Table metadata as a value: its fields, and how they are looked up.

Reading and printing live in `table_metadata.py`, changes in `metadata_builder.py`.
Source: the specification, "Table Metadata Fields"; docs/reference/iceberg-notes.md 4.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.iceberg.metadata.snapshot import (
    MAIN,
    MetadataLogEntry,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
)
from committer.iceberg.metadata.table_statistics import EncryptedKey, StatisticsFile
from committer.iceberg.schema.partition_spec import PartitionSpec, find_spec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.sort_order import SortOrder
from committer.iceberg.values.fragments import Fragments

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMetadata:
    """One version of a table, checked where it is read or made (`metadata_check.py`).

    `table_uuid` is None for an old table of format version 1 only, `next_row_id` below format
    version 3. `extra` are top-level keys that this version does not know. A changed copy is made by
    `apply_updates`; `dataclasses.replace` drops the index of snapshots only.
    """

    format_version: int
    table_uuid: UUID | None
    location: str
    last_sequence_number: int
    last_updated_ms: int
    last_column_id: int
    current_schema_id: int
    schemas: tuple[Schema, ...]
    default_spec_id: int
    partition_specs: tuple[PartitionSpec, ...]
    last_partition_id: int
    default_sort_order_id: int
    sort_orders: tuple[SortOrder, ...]
    properties: Mapping[str, str]
    current_snapshot_id: int | None = None
    next_row_id: int | None = None
    encryption_keys: tuple[EncryptedKey, ...] = ()
    refs: Mapping[str, SnapshotRef] = field(default_factory=dict)
    snapshots: tuple[Snapshot, ...] = ()
    statistics: tuple[StatisticsFile, ...] = ()
    partition_statistics: tuple[StatisticsFile, ...] = ()
    snapshot_log: tuple[SnapshotLogEntry, ...] = ()
    metadata_log: tuple[MetadataLogEntry, ...] = ()
    extra: Mapping[str, object] = field(default_factory=dict)
    fragments: Fragments = field(default_factory=Fragments, compare=False, repr=False)
    _by_id: Mapping[int, Snapshot] | None = field(
        default=None, init=False, compare=False, repr=False
    )

    def require_uuid(self) -> UUID:
        """Return the table's identity.
        Errors: `UnsupportedError` for an old table that has none."""
        if self.table_uuid is None:
            raise UnsupportedError(
                "table metadata: `table-uuid`: expected a uuid, found nothing (an old table of"
                " format version 1); a commit by a current engine adds one"
            )
        return self.table_uuid

    @property
    def current_schema(self) -> Schema:
        return self.schema_by_id(self.current_schema_id)

    def schema_by_id(self, schema_id: int) -> Schema:
        """Return a schema. Errors: `InvalidMetadataError` if there is none."""
        found = (each for each in self.schemas if each.schema_id == schema_id)
        return _present(next(found, None), f"schema with id {schema_id}")

    @property
    def default_spec(self) -> PartitionSpec:
        return self.spec_by_id(self.default_spec_id)

    def spec_by_id(self, spec_id: int) -> PartitionSpec:
        """Return a partition spec. Errors: `InvalidMetadataError` if there is none."""
        return find_spec(self.partition_specs, spec_id)

    @property
    def default_sort_order(self) -> SortOrder:
        return self.sort_order_by_id(self.default_sort_order_id)

    def sort_order_by_id(self, order_id: int) -> SortOrder:
        """Return a sort order. Errors: `InvalidMetadataError` if there is none."""
        found = (each for each in self.sort_orders if each.order_id == order_id)
        return _present(next(found, None), f"sort order with id {order_id}")

    @property
    def snapshots_by_id(self) -> Mapping[int, Snapshot]:
        """The snapshots by their id; indexed at the first call."""
        index = self._by_id
        if index is None:
            index = {snapshot.snapshot_id: snapshot for snapshot in self.snapshots}
            object.__setattr__(self, "_by_id", index)
        return index

    def snapshot_by_id(self, snapshot_id: int) -> Snapshot | None:
        return self.snapshots_by_id.get(snapshot_id)

    @property
    def current_snapshot(self) -> Snapshot | None:
        current = self.current_snapshot_id
        return None if current is None else self.snapshot_by_id(current)

    @property
    def branches(self) -> tuple[str, ...]:
        """The names of the refs that are branches, in their order."""
        return tuple(name for name, ref in self.refs.items() if ref.type == "branch")

    def branch_head(self, name: str = MAIN) -> Snapshot | None:
        """Return the snapshot that a branch or tag names; None if there is no such ref."""
        ref = self.refs.get(name)
        return None if ref is None else self.snapshot_by_id(ref.snapshot_id)

    def ancestors(self, snapshot_id: int | None) -> Iterator[Snapshot]:
        """Yield a snapshot and its ancestors, newest first, up to the last that is retained.

        The edge is no beginning: engines expire snapshots in the middle of a chain as well, and
        some clear the parent id of the snapshot that followed an expired one.
        """
        index = self.snapshots_by_id
        # A parent chain that runs in a circle ends after as many steps as there are snapshots.
        for _ in range(len(index)):
            snapshot = None if snapshot_id is None else index.get(snapshot_id)
            if snapshot is None:
                return
            yield snapshot
            snapshot_id = snapshot.parent_snapshot_id

    def branch_history(self, name: str = MAIN) -> Iterator[Snapshot]:
        """Yield the head of a branch and its retained ancestors, newest first."""
        ref = self.refs.get(name)
        return self.ancestors(None if ref is None else ref.snapshot_id)

    def is_ancestor(self, snapshot_id: int, *, of: int) -> bool:
        """Return whether a snapshot is `of` or one of its ancestors that have not expired."""
        return any(one.snapshot_id == snapshot_id for one in self.ancestors(of))

    def with_index(self, index: Mapping[int, Snapshot]) -> TableMetadata:
        """Take over an index that was made for these very snapshots; return itself."""
        object.__setattr__(self, "_by_id", index)
        return self


def _present(found: _Value | None, what: str) -> _Value:
    if found is None:
        raise InvalidMetadataError(f"table metadata: expected a {what}, found none")
    return found
