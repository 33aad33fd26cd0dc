"""Table metadata: the value, its lookups, and how a new table's is made.

Reading it is `metadata_reader.py`, printing `metadata_printer.py`, changing `metadata_update.py`.
Source: the specification, "Table Metadata"; format.md section 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast
from uuid import UUID

from committer.errors import InvalidMetadataError
from committer.iceberg.partition_spec import (
    PARTITION_FIELD_ID_START,
    PartitionField,
    PartitionSpec,
)
from committer.iceberg.schema import Schema, assign_fresh_ids
from committer.iceberg.snapshot import (
    MAIN,
    MetadataLogEntry,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
)
from committer.iceberg.sort_order import SortField, SortOrder

FORMAT_VERSION_MAX = 3
RESERVED_PROPERTIES = frozenset(
    {
        "format-version",
        "uuid",
        "snapshot-count",
        "current-snapshot-summary",
        "current-snapshot-id",
        "current-snapshot-timestamp-ms",
        "current-schema",
        "default-partition-spec",
        "default-sort-order",
    }
)
# What the reference implementation persists for every new table.
_PERSISTED = {"write.parquet.compression-codec": "zstd"}


@dataclass(frozen=True, slots=True)
class TableMetadata:
    """All fields of a metadata file, named as its keys.

    `table_uuid` is the nil uuid for an old version 1 table without one. `statistics`,
    `partition_statistics` and `encryption_keys` are kept in their JSON form. `extra` are keys that
    this version does not know. `cache` remembers what was derived from unchanged parts, over all
    values that come from one another by `dataclasses.replace`.
    """

    format_version: int
    table_uuid: UUID
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
    properties: Mapping[str, str] = field(default_factory=dict)
    current_snapshot_id: int | None = None
    next_row_id: int | None = None
    encryption_keys: tuple[Mapping[str, object], ...] = ()
    refs: Mapping[str, SnapshotRef] = field(default_factory=dict)
    snapshots: tuple[Snapshot, ...] = ()
    statistics: tuple[Mapping[str, object], ...] = ()
    partition_statistics: tuple[Mapping[str, object], ...] = ()
    snapshot_log: tuple[SnapshotLogEntry, ...] = ()
    metadata_log: tuple[MetadataLogEntry, ...] = ()
    extra: Mapping[str, object] = field(default_factory=dict)
    cache: dict[str, tuple[object, object]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def current_schema(self) -> Schema:
        return self.schema_by_id(self.current_schema_id)

    @property
    def default_spec(self) -> PartitionSpec:
        return self.spec_by_id(self.default_spec_id)

    @property
    def current_snapshot(self) -> Snapshot | None:
        if self.current_snapshot_id is None:
            return None
        return self.snapshot_by_id(self.current_snapshot_id)

    def schema_by_id(self, schema_id: int) -> Schema:
        """Errors: `InvalidMetadataError` if the table has no such schema."""
        for schema in self.schemas:
            if schema.schema_id == schema_id:
                return schema
        raise InvalidMetadataError(f"table {self.location} has no schema {schema_id}")

    def spec_by_id(self, spec_id: int) -> PartitionSpec:
        """Errors: `InvalidMetadataError` if the table has no such spec."""
        for spec in self.partition_specs:
            if spec.spec_id == spec_id:
                return spec
        raise InvalidMetadataError(f"table {self.location} has no partition spec {spec_id}")

    def snapshot_by_id(self, snapshot_id: int) -> Snapshot | None:
        return self._snapshots_by_id().get(snapshot_id)

    def branch_head(self, name: str) -> Snapshot | None:
        """The snapshot that a branch (or tag) points to; None if there is no such ref."""
        ref = self.refs.get(name)
        return None if ref is None else self.snapshot_by_id(ref.snapshot_id)

    def is_ancestor(self, snapshot_id: int, *, of: int) -> bool:
        """Whether a snapshot is behind another (or the same), as far as history is retained."""
        visited: set[int] = set()
        current: int | None = of
        while current is not None and current not in visited:
            if current == snapshot_id:
                return True
            visited.add(current)
            snapshot = self.snapshot_by_id(current)
            current = snapshot.parent_snapshot_id if snapshot else None
        return False

    def _snapshots_by_id(self) -> dict[int, Snapshot]:
        known = self.cache.get("snapshots_by_id")
        if known is None or known[0] is not self.snapshots:
            index = {snapshot.snapshot_id: snapshot for snapshot in self.snapshots}
            self.cache["snapshots_by_id"] = (self.snapshots, index)
            return index
        return cast(dict[int, Snapshot], known[1])


def new_table_metadata(
    *,
    table_uuid: UUID,
    location: str,
    schema: Schema,
    partition_spec: PartitionSpec,
    sort_order: SortOrder,
    properties: Mapping[str, str],
    format_version: int = 2,
    now_ms: int,
) -> TableMetadata:
    """The metadata of a table that is about to be created; all ids are given anew.

    Errors: `InvalidMetadataError` for a reserved property, an unknown source column, or a transform
    that the column's type does not allow.
    """
    if not 1 <= format_version <= FORMAT_VERSION_MAX:
        raise InvalidMetadataError(
            f"format version {format_version}: expected 1 to {FORMAT_VERSION_MAX}"
        )
    check_properties(properties)
    fresh = assign_fresh_ids(schema)
    spec = _fresh_spec(partition_spec, schema, fresh)
    order = _fresh_order(sort_order, schema, fresh)
    return TableMetadata(
        format_version=format_version,
        table_uuid=table_uuid,
        location=location.rstrip("/"),
        last_sequence_number=0,
        last_updated_ms=now_ms,
        last_column_id=fresh.highest_field_id,
        current_schema_id=fresh.schema_id,
        schemas=(fresh,),
        default_spec_id=spec.spec_id,
        partition_specs=(spec,),
        last_partition_id=spec.highest_field_id,
        default_sort_order_id=order.order_id,
        sort_orders=(order,),
        properties={**_PERSISTED, **properties},
        next_row_id=0 if format_version >= 3 else None,
    )


def check_properties(properties: Mapping[str, str]) -> None:
    """Errors: `InvalidMetadataError` for keys that are never stored as properties."""
    reserved = sorted(RESERVED_PROPERTIES & properties.keys())
    if reserved:
        raise InvalidMetadataError(f"reserved table properties: {', '.join(reserved)}")


def _fresh_id(source_id: int, schema: Schema, fresh: Schema) -> int:
    name = schema.column_name(source_id)
    found = None if name is None else fresh.find(name)
    if found is None:
        raise InvalidMetadataError(f"no column with id {source_id} in the schema")
    return found.field_id


def _fresh_spec(spec: PartitionSpec, schema: Schema, fresh: Schema) -> PartitionSpec:
    fields = []
    for position, old in enumerate(spec.fields):
        source_ids = tuple(_fresh_id(source_id, schema, fresh) for source_id in old.source_ids)
        source = fresh.field(source_ids[0])
        if source is None or not old.transform.can_transform(source.field_type):
            kind = source.field_type if source else "unknown"
            raise InvalidMetadataError(
                f"partition field `{old.name}`: {old.transform} of a column of type {kind}"
            )
        field_id = PARTITION_FIELD_ID_START + position
        fields.append(PartitionField(source_ids, field_id, old.name, old.transform))
    return PartitionSpec(0, tuple(fields))


def _fresh_order(order: SortOrder, schema: Schema, fresh: Schema) -> SortOrder:
    fields = tuple(
        SortField(
            tuple(_fresh_id(source_id, schema, fresh) for source_id in old.source_ids),
            old.transform,
            old.direction,
            old.null_order,
        )
        for old in order.fields
    )
    return SortOrder(1 if fields else 0, fields)


def main_ref(snapshot_id: int) -> dict[str, SnapshotRef]:
    """The refs of a table from before refs: its current snapshot is main's head."""
    return {MAIN: SnapshotRef(snapshot_id)}
