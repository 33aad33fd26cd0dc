"""A table after a change set, in the plainest way: the model of the property tests.

Dictionaries that are changed in place, no speed, no times. `Refused` where the specification or the
reference forbids a change.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from committer.iceberg.metadata.metadata_check import RESERVED_PROPERTIES
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.metadata.snapshot import MAIN, Snapshot, SnapshotRef
from committer.iceberg.metadata.table_statistics import EncryptedKey
from committer.iceberg.schema.partition_field_ids import NEW_FIELD_ID
from committer.iceberg.schema.partition_spec import PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.sort_order import SortOrder
from committer.iceberg.updates.metadata_update import (
    LAST_ADDED,
    AddEncryptionKey,
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    AssignUUID,
    RemoveEncryptionKey,
    RemovePartitionSpecs,
    RemovePartitionStatistics,
    RemoveProperties,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    RemoveStatistics,
    SetCurrentSchema,
    SetDefaultPartitionSpec,
    SetDefaultSortOrder,
    SetLocation,
    SetPartitionStatistics,
    SetProperties,
    SetSnapshotRef,
    SetStatistics,
    Update,
    UpgradeFormatVersion,
)
from committer.iceberg.values.transforms import VoidTransform
from committer.iceberg.values.types import TimestampNanoType


class Refused(Exception):
    """The change set does not fit the table."""


def require(holds: bool) -> None:
    if not holds:
        raise Refused


@dataclass
class TableModel:
    version: int
    uuid: UUID | None
    location: str
    properties: dict[str, str]
    schemas: dict[int, Schema]
    current_schema: int
    specs: dict[int, PartitionSpec]
    default_spec: int
    orders: dict[int, SortOrder]
    default_order: int
    last_column: int
    last_partition: int
    snapshots: dict[int, Snapshot] = field(default_factory=dict)
    refs: dict[str, SnapshotRef] = field(default_factory=dict)
    log: list[int] = field(default_factory=list)
    last_sequence: int = 0
    next_row: int | None = None
    keys: dict[str, EncryptedKey] = field(default_factory=dict)
    statistics: dict[int, str] = field(default_factory=dict)
    partition_statistics: dict[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, table: TableMetadata) -> TableModel:
        """Read the model off a table."""
        return cls(
            version=table.format_version,
            uuid=table.table_uuid,
            location=table.location,
            properties=dict(table.properties),
            schemas={each.schema_id: each for each in table.schemas},
            current_schema=table.current_schema_id,
            specs={each.spec_id: each for each in table.partition_specs},
            default_spec=table.default_spec_id,
            orders={each.order_id: each for each in table.sort_orders},
            default_order=table.default_sort_order_id,
            last_column=table.last_column_id,
            last_partition=table.last_partition_id,
            snapshots={each.snapshot_id: each for each in table.snapshots},
            refs=dict(table.refs),
            log=[entry.snapshot_id for entry in table.snapshot_log],
            last_sequence=table.last_sequence_number,
            next_row=table.next_row_id,
            keys={key.key_id: key for key in table.encryption_keys},
            statistics={each.snapshot_id: each.statistics_path for each in table.statistics},
            partition_statistics={
                each.snapshot_id: each.statistics_path for each in table.partition_statistics
            },
        )

    @property
    def current(self) -> int | None:
        return self.refs[MAIN].snapshot_id if MAIN in self.refs else None

    def after(self, updates: list[Update]) -> TableModel:
        """Return another model; this one stays. Errors: `Refused`."""
        found = deepcopy(self)
        _ChangeSet(found).apply(updates)
        return found


class _ChangeSet:
    def __init__(self, table: TableModel) -> None:
        self.table = table
        self.added: dict[str, int] = {}
        self.added_snapshots: set[int] = set()
        self.was_main: set[int] = set()
        self.removed = False

    def apply(self, updates: list[Update]) -> None:
        for update in updates:
            getattr(self, type(update).__name__)(update)
        table = self.table
        require(table.version == 1 or table.uuid is not None)
        schema = table.schemas[table.current_schema]
        require(_fits(table.specs[table.default_spec], schema))
        require(_fits(table.orders[table.default_order], schema))
        self._clean_log()

    def _clean_log(self) -> None:
        table = self.table
        passed = self.was_main - {table.current}
        if not passed and not self.removed:
            return
        gaps = [at for at, one in enumerate(table.log) if one not in table.snapshots]
        kept = table.log[gaps[-1] + 1 :] if gaps else table.log
        table.log = [one for one in kept if one not in passed]
        if table.current is not None and table.log[-1:] != [table.current]:
            table.log.append(table.current)

    def AssignUUID(self, update: AssignUUID) -> None:
        self.table.uuid = update.uuid

    def UpgradeFormatVersion(self, update: UpgradeFormatVersion) -> None:
        require(self.table.version <= update.format_version <= 3)
        self.table.version = update.format_version
        if update.format_version == 3 and self.table.next_row is None:
            self.table.next_row = 0

    def AddSchema(self, update: AddSchema) -> None:
        table, schema = self.table, update.schema
        require(table.version == 3 or not any(map(_is_new, schema.fields)))
        last = max(schema.highest_field_id, update.last_column_id or 0)
        table.last_column = max(table.last_column, last)
        same = [one for one, known in table.schemas.items() if known.fields == schema.fields]
        new_id = same[0] if same else max(table.schemas) + 1
        if not same:
            table.schemas[new_id] = replace(schema, schema_id=new_id)
        self.added["schema"] = new_id

    def SetCurrentSchema(self, update: SetCurrentSchema) -> None:
        self.table.current_schema = self._chosen("schema", update.schema_id, self.table.schemas)

    def RemoveSchemas(self, update: RemoveSchemas) -> None:
        require(self.table.current_schema not in update.schema_ids)
        _remove(self.table.schemas, update.schema_ids)

    def AddPartitionSpec(self, update: AddPartitionSpec) -> None:
        table, spec = self.table, update.spec
        same = [one for one, known in table.specs.items() if _bare(known) == _bare(spec)]
        new_id = same[0] if same else max(table.specs) + 1
        if not same:
            require(_fits(spec, table.schemas[table.current_schema]))
            spec = replace(self._numbered(spec), spec_id=new_id)
            table.specs[new_id] = spec
            table.last_partition = max([table.last_partition, *_ids(spec)])
        self.added["spec"] = new_id

    def _numbered(self, spec: PartitionSpec) -> PartitionSpec:
        table = self.table
        known: dict[Any, int] = {}
        meanings: dict[int, list[Any]] = {}
        for each in table.specs.values():
            for one in each.fields:
                known[one.source_ids, str(one.transform)] = one.field_id
                meanings.setdefault(one.field_id, []).append((one.source_ids, str(one.transform)))
        fields, free = [], table.last_partition + 1
        for position, one in enumerate(spec.fields):
            meaning = (one.source_ids, str(one.transform))
            number = one.field_id
            if number == NEW_FIELD_ID and table.version == 1:
                number = 1000 + position
            elif number == NEW_FIELD_ID:
                number = known.get(meaning, free)
            free = max(free, number + 1)
            if table.version == 1:
                require(number == 1000 + position)
            elif number in meanings and not isinstance(one.transform, VoidTransform):
                require(meaning in meanings[number])
            fields.append(replace(one, field_id=number))
        require(len({one.field_id for one in fields}) == len(fields))
        return replace(spec, fields=tuple(fields))

    def SetDefaultPartitionSpec(self, update: SetDefaultPartitionSpec) -> None:
        self.table.default_spec = self._chosen("spec", update.spec_id, self.table.specs)

    def RemovePartitionSpecs(self, update: RemovePartitionSpecs) -> None:
        require(self.table.default_spec not in update.spec_ids)
        _remove(self.table.specs, update.spec_ids)

    def AddSortOrder(self, update: AddSortOrder) -> None:
        table, order = self.table, update.sort_order
        same = [one for one, known in table.orders.items() if known.fields == order.fields]
        new_id = same[0] if same else max(0, *table.orders) + 1
        if not same:
            require(_fits(order, table.schemas[table.current_schema]))
            table.orders[new_id] = replace(order, order_id=new_id)
        self.added["order"] = new_id

    def SetDefaultSortOrder(self, update: SetDefaultSortOrder) -> None:
        self.table.default_order = self._chosen("order", update.sort_order_id, self.table.orders)

    def _chosen(self, what: str, chosen: int, known: dict[int, Any]) -> int:
        if chosen == LAST_ADDED:
            require(what in self.added)
            chosen = self.added[what]
        require(chosen in known)
        return chosen

    def AddSnapshot(self, update: AddSnapshot) -> None:
        table, snapshot = self.table, update.snapshot
        require(snapshot.snapshot_id not in table.snapshots)
        if table.version == 1:
            require(snapshot.sequence_number == 0)
        elif snapshot.parent_snapshot_id is not None:
            require(snapshot.sequence_number > table.last_sequence)
        if table.version == 3:
            first, added = snapshot.first_row_id, snapshot.added_rows
            require(first is not None and added is not None and table.next_row is not None)
            assert first is not None and added is not None and table.next_row is not None
            require(first >= table.next_row and added >= 0)
            table.next_row = first + added
        table.last_sequence = max(table.last_sequence, snapshot.sequence_number)
        table.snapshots[snapshot.snapshot_id] = snapshot
        self.added_snapshots.add(snapshot.snapshot_id)

    def SetSnapshotRef(self, update: SetSnapshotRef) -> None:
        table, name, ref = self.table, update.ref_name, update.ref
        if table.refs.get(name) == ref:
            return
        require(ref.snapshot_id in table.snapshots)
        require(all(one is None or one > 0 for one in _retention(ref)))
        require(ref.type == "branch" or _retention(ref)[:2] == (None, None))
        if name == MAIN:
            require(ref.type == "branch")
            table.log.append(ref.snapshot_id)
            if ref.snapshot_id in self.added_snapshots:
                self.was_main.add(ref.snapshot_id)
        table.refs[name] = ref

    def RemoveSnapshotRef(self, update: RemoveSnapshotRef) -> None:
        self.table.refs.pop(update.ref_name, None)

    def RemoveSnapshots(self, update: RemoveSnapshots) -> None:
        table = self.table
        self.removed |= any(one in table.snapshots for one in update.snapshot_ids)
        for removed in update.snapshot_ids:
            if removed in table.snapshots:
                _remove(table.statistics, (removed,))
                _remove(table.partition_statistics, (removed,))
        _remove(table.snapshots, update.snapshot_ids)
        dangling = [
            name for name, ref in table.refs.items() if ref.snapshot_id not in table.snapshots
        ]
        _remove(table.refs, tuple(dangling))

    def SetProperties(self, update: SetProperties) -> None:
        require(not RESERVED_PROPERTIES.intersection(update.updates))
        self.table.properties.update(update.updates)

    def RemoveProperties(self, update: RemoveProperties) -> None:
        _remove(self.table.properties, update.removals)

    def SetLocation(self, update: SetLocation) -> None:
        self.table.location = update.location.rstrip("/")

    def SetStatistics(self, update: SetStatistics) -> None:
        statistics = update.statistics
        self.table.statistics[statistics.snapshot_id] = statistics.statistics_path

    def RemoveStatistics(self, update: RemoveStatistics) -> None:
        _remove(self.table.statistics, (update.snapshot_id,))

    def SetPartitionStatistics(self, update: SetPartitionStatistics) -> None:
        statistics = update.partition_statistics
        self.table.partition_statistics[statistics.snapshot_id] = statistics.statistics_path

    def RemovePartitionStatistics(self, update: RemovePartitionStatistics) -> None:
        _remove(self.table.partition_statistics, (update.snapshot_id,))

    def AddEncryptionKey(self, update: AddEncryptionKey) -> None:
        key = update.encryption_key
        known = self.table.keys.get(key.key_id)
        require(known == key or (known is None and self.table.version == 3))
        self.table.keys[key.key_id] = key

    def RemoveEncryptionKey(self, update: RemoveEncryptionKey) -> None:
        _remove(self.table.keys, (update.key_id,))


def _remove(known: dict[Any, Any], keys: tuple[Any, ...]) -> None:
    for key in keys:
        known.pop(key, None)


def _is_new(column: Any) -> bool:
    return isinstance(column.field_type, TimestampNanoType)


def _bare(spec: PartitionSpec) -> list[Any]:
    return [(one.source_ids, str(one.transform), one.name) for one in spec.fields]


def _ids(spec: PartitionSpec) -> list[int]:
    return [one.field_id for one in spec.fields]


def _fits(layout: PartitionSpec | SortOrder, schema: Schema) -> bool:
    for one in layout.fields:
        if isinstance(layout, PartitionSpec) and isinstance(one.transform, VoidTransform):
            continue
        source = schema.field(one.source_ids[0])
        if source is None or not one.transform.can_transform(source.field_type):
            return False
    return True


def _retention(ref: SnapshotRef) -> tuple[int | None, ...]:
    return ref.min_snapshots_to_keep, ref.max_snapshot_age_ms, ref.max_ref_age_ms
