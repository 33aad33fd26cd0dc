"""Changes to table metadata: the REST model's updates as values, folded into a new value.

Source: the REST catalog specification, "TableUpdate"; format.md sections 6.3 and 12.8 for what the
reference implementation's builder does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from committer.errors import InvalidMetadataError
from committer.iceberg.metadata_reader import check_current
from committer.iceberg.partition_spec import (
    PartitionSpec,
    parse_partition_spec,
    print_partition_spec,
)
from committer.iceberg.schema import Schema, parse_schema, print_schema
from committer.iceberg.snapshot import (
    MAIN,
    MetadataLogEntry,
    Reader,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
    parse_snapshot,
    parse_snapshot_ref,
    print_snapshot,
    print_snapshot_ref,
)
from committer.iceberg.sort_order import SortOrder, parse_sort_order, print_sort_order
from committer.iceberg.table_metadata import (
    FORMAT_VERSION_MAX,
    TableMetadata,
    check_properties,
)

PREVIOUS_VERSIONS_PROPERTY = "write.metadata.previous-versions-max"
PREVIOUS_VERSIONS_MAX = 100
# Names, in one change set, the schema, spec or sort order that was added in it.
LAST_ADDED = -1


@dataclass(frozen=True, slots=True)
class AssignUUID:
    uuid: UUID


@dataclass(frozen=True, slots=True)
class UpgradeFormatVersion:
    format_version: int


@dataclass(frozen=True, slots=True)
class AddSchema:
    """Its ids are assigned already; its schema id is given anew."""

    schema: Schema


@dataclass(frozen=True, slots=True)
class SetCurrentSchema:
    schema_id: int


@dataclass(frozen=True, slots=True)
class AddPartitionSpec:
    spec: PartitionSpec


@dataclass(frozen=True, slots=True)
class SetDefaultSpec:
    spec_id: int


@dataclass(frozen=True, slots=True)
class AddSortOrder:
    sort_order: SortOrder


@dataclass(frozen=True, slots=True)
class SetDefaultSortOrder:
    sort_order_id: int


@dataclass(frozen=True, slots=True)
class AddSnapshot:
    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class SetSnapshotRef:
    name: str
    ref: SnapshotRef


@dataclass(frozen=True, slots=True)
class RemoveSnapshots:
    snapshot_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RemoveSnapshotRef:
    name: str


@dataclass(frozen=True, slots=True)
class SetLocation:
    location: str


@dataclass(frozen=True, slots=True)
class SetProperties:
    updates: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RemoveProperties:
    removals: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SetStatistics:
    """A statistics file in its JSON form, which names its snapshot."""

    statistics: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class RemoveStatistics:
    snapshot_id: int


@dataclass(frozen=True, slots=True)
class SetPartitionStatistics:
    """A partition statistics file in its JSON form, which names its snapshot."""

    partition_statistics: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class RemovePartitionStatistics:
    snapshot_id: int


@dataclass(frozen=True, slots=True)
class RemovePartitionSpecs:
    spec_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RemoveSchemas:
    schema_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AddEncryptionKey:
    """A key in its JSON form, which has its `key-id`."""

    encryption_key: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class RemoveEncryptionKey:
    key_id: str


Update = (
    AssignUUID
    | UpgradeFormatVersion
    | AddSchema
    | SetCurrentSchema
    | AddPartitionSpec
    | SetDefaultSpec
    | AddSortOrder
    | SetDefaultSortOrder
    | AddSnapshot
    | SetSnapshotRef
    | RemoveSnapshots
    | RemoveSnapshotRef
    | SetLocation
    | SetProperties
    | RemoveProperties
    | SetStatistics
    | RemoveStatistics
    | SetPartitionStatistics
    | RemovePartitionStatistics
    | RemovePartitionSpecs
    | RemoveSchemas
    | AddEncryptionKey
    | RemoveEncryptionKey
)


def apply_updates(
    base: TableMetadata,
    updates: Sequence[Update],
    *,
    base_location: str | None,
    now_ms: int,
) -> TableMetadata:
    """Fold a change set into the metadata; without any change, the base itself.

    `base_location`: the file that the base was read from, for the metadata log (None: no file).
    `now_ms` is only a lower bound of the new `last-updated-ms`, which never runs backwards.
    Errors: `InvalidMetadataError` for a change that the table does not allow.
    """
    fold = _Fold(base, max(now_ms, base.last_updated_ms))
    for update in updates:
        fold.apply(update)
    if fold.metadata == base:
        return base
    changed = fold.finished(base_location)
    check_current(changed)
    return changed


@dataclass(slots=True)
class _Fold:
    """The metadata so far, and what this change set added."""

    metadata: TableMetadata
    now_ms: int
    base: TableMetadata = field(init=False)
    added_snapshots: dict[int, Snapshot] = field(default_factory=dict)
    main_was_set: bool = False
    last_schema_id: int | None = None
    last_spec_id: int | None = None
    last_order_id: int | None = None

    def __post_init__(self) -> None:
        self.base = self.metadata

    def _change(self, **changes: object) -> None:
        self.metadata = replace(self.metadata, **changes)  # type: ignore[arg-type]  # own fields

    def apply(self, update: Update) -> None:
        match update:
            case AssignUUID(uuid):
                self._change(table_uuid=uuid)
            case UpgradeFormatVersion(version):
                self._upgrade(version)
            case AddSchema(schema):
                self._add_schema(schema)
            case SetCurrentSchema(schema_id):
                chosen = _chosen(schema_id, self.last_schema_id, "schema")
                self.metadata.schema_by_id(chosen)
                self._change(current_schema_id=chosen)
            case AddPartitionSpec(spec):
                self._add_spec(spec)
            case SetDefaultSpec(spec_id):
                chosen = _chosen(spec_id, self.last_spec_id, "partition spec")
                self.metadata.spec_by_id(chosen)
                self._change(default_spec_id=chosen)
            case AddSortOrder(order):
                self._add_order(order)
            case SetDefaultSortOrder(order_id):
                self._change(
                    default_sort_order_id=_chosen(order_id, self.last_order_id, "sort order")
                )
            case AddSnapshot(snapshot):
                self._add_snapshot(snapshot)
            case SetSnapshotRef(name, ref):
                self._set_ref(name, ref)
            case RemoveSnapshotRef(name):
                self._remove_refs({name})
            case RemoveSnapshots(snapshot_ids):
                self._remove_snapshots(frozenset(snapshot_ids))
            case SetLocation(location):
                self._change(location=location.rstrip("/"))
            case SetProperties(changed):
                check_properties(changed)
                self._change(properties={**self.metadata.properties, **changed})
            case RemoveProperties(removals):
                kept = {k: v for k, v in self.metadata.properties.items() if k not in removals}
                self._change(properties=kept)
            case _:
                self._apply_side_files(update)

    def _apply_side_files(self, update: Update) -> None:
        metadata = self.metadata
        match update:
            case SetStatistics(one):
                self._change(statistics=_with(metadata.statistics, one, "snapshot-id"))
            case RemoveStatistics(snapshot_id):
                self._change(statistics=_without(metadata.statistics, "snapshot-id", snapshot_id))
            case SetPartitionStatistics(one):
                found = _with(metadata.partition_statistics, one, "snapshot-id")
                self._change(partition_statistics=found)
            case RemovePartitionStatistics(snapshot_id):
                found = _without(metadata.partition_statistics, "snapshot-id", snapshot_id)
                self._change(partition_statistics=found)
            case RemovePartitionSpecs(spec_ids):
                if metadata.default_spec_id in spec_ids:
                    raise InvalidMetadataError("cannot remove the default partition spec")
                kept = tuple(s for s in metadata.partition_specs if s.spec_id not in spec_ids)
                self._change(partition_specs=kept)
            case RemoveSchemas(schema_ids):
                if metadata.current_schema_id in schema_ids:
                    raise InvalidMetadataError("cannot remove the current schema")
                schemas = tuple(s for s in metadata.schemas if s.schema_id not in schema_ids)
                self._change(schemas=schemas)
            case AddEncryptionKey(key):
                self._change(encryption_keys=_with(metadata.encryption_keys, key, "key-id"))
            case RemoveEncryptionKey(key_id):
                self._change(encryption_keys=_without(metadata.encryption_keys, "key-id", key_id))
            case _:
                raise InvalidMetadataError(f"cannot apply {type(update).__name__}")

    def _upgrade(self, version: int) -> None:
        current = self.metadata.format_version
        if not current <= version <= FORMAT_VERSION_MAX:
            raise InvalidMetadataError(
                f"cannot change format version {current} to {version}: expected"
                f" {current} to {FORMAT_VERSION_MAX}"
            )
        next_row_id = self.metadata.next_row_id
        if version >= 3 and next_row_id is None:
            next_row_id = 0
        self._change(format_version=version, next_row_id=next_row_id)

    def _add_schema(self, schema: Schema) -> None:
        for known in self.metadata.schemas:
            if replace(known, schema_id=schema.schema_id) == schema:
                self.last_schema_id = known.schema_id
                return
        schema_id = max(known.schema_id for known in self.metadata.schemas) + 1
        self.last_schema_id = schema_id
        self._change(
            schemas=(*self.metadata.schemas, replace(schema, schema_id=schema_id)),
            last_column_id=max(self.metadata.last_column_id, schema.highest_field_id),
        )

    def _add_spec(self, spec: PartitionSpec) -> None:
        for known in self.metadata.partition_specs:
            if known.fields == spec.fields:
                self.last_spec_id = known.spec_id
                return
        spec_id = max(known.spec_id for known in self.metadata.partition_specs) + 1
        self.last_spec_id = spec_id
        self._change(
            partition_specs=(*self.metadata.partition_specs, replace(spec, spec_id=spec_id)),
            last_partition_id=max(self.metadata.last_partition_id, spec.highest_field_id),
        )

    def _add_order(self, order: SortOrder) -> None:
        for known in self.metadata.sort_orders:
            if known.fields == order.fields:
                self.last_order_id = known.order_id
                return
        highest = max((known.order_id for known in self.metadata.sort_orders), default=0)
        self.last_order_id = highest + 1 if order.fields else 0
        added = replace(order, order_id=self.last_order_id)
        self._change(sort_orders=(*self.metadata.sort_orders, added))

    def _add_snapshot(self, snapshot: Snapshot) -> None:
        metadata = self.metadata
        if metadata.snapshot_by_id(snapshot.snapshot_id) is not None:
            raise InvalidMetadataError(f"snapshot {snapshot.snapshot_id} is in the table already")
        last = metadata.last_sequence_number
        if (
            metadata.format_version > 1
            and snapshot.parent_snapshot_id is not None
            and snapshot.sequence_number <= last
        ):
            raise InvalidMetadataError(
                f"snapshot {snapshot.snapshot_id} has sequence number {snapshot.sequence_number},"
                f" expected one above {last}"
            )
        self.added_snapshots[snapshot.snapshot_id] = snapshot
        self._change(
            snapshots=(*metadata.snapshots, snapshot),
            last_sequence_number=max(last, snapshot.sequence_number),
            next_row_id=self._next_row_id(snapshot),
        )
        self.now_ms = max(self.now_ms, snapshot.timestamp_ms)

    def _next_row_id(self, snapshot: Snapshot) -> int | None:
        next_row_id = self.metadata.next_row_id
        if self.metadata.format_version < 3 or next_row_id is None:
            return next_row_id
        if snapshot.first_row_id is None or snapshot.first_row_id < next_row_id:
            raise InvalidMetadataError(
                f"snapshot {snapshot.snapshot_id} has first-row-id {snapshot.first_row_id},"
                f" expected at least {next_row_id}"
            )
        return next_row_id + (snapshot.added_rows or 0)

    def _set_ref(self, name: str, ref: SnapshotRef) -> None:
        if self.metadata.refs.get(name) == ref:
            return
        snapshot = self.metadata.snapshot_by_id(ref.snapshot_id)
        if snapshot is None:
            raise InvalidMetadataError(f"ref `{name}`: no snapshot {ref.snapshot_id}")
        if name == MAIN:
            self._set_main(ref, snapshot)
        self._change(refs={**self.metadata.refs, name: ref})

    def _set_main(self, ref: SnapshotRef, snapshot: Snapshot) -> None:
        if ref.type != "branch":
            raise InvalidMetadataError("ref `main` must be a branch")
        # Of several snapshots set on main in one change set only the last was ever visible.
        log = self.metadata.snapshot_log[: -1 if self.main_was_set else None]
        is_new = snapshot.snapshot_id in self.added_snapshots
        timestamp_ms = snapshot.timestamp_ms if is_new else self.now_ms
        self.main_was_set = True
        self._change(
            current_snapshot_id=snapshot.snapshot_id,
            snapshot_log=(*log, SnapshotLogEntry(timestamp_ms, snapshot.snapshot_id)),
        )

    def _remove_refs(self, names: set[str]) -> None:
        kept = {name: ref for name, ref in self.metadata.refs.items() if name not in names}
        if MAIN in names:
            self._change(current_snapshot_id=None)
        self._change(refs=kept)

    def _remove_snapshots(self, snapshot_ids: frozenset[int]) -> None:
        metadata = self.metadata
        self._change(
            snapshots=tuple(s for s in metadata.snapshots if s.snapshot_id not in snapshot_ids),
            statistics=_without_all(metadata.statistics, snapshot_ids),
            partition_statistics=_without_all(metadata.partition_statistics, snapshot_ids),
            snapshot_log=_log_after_last(metadata.snapshot_log, snapshot_ids),
        )
        gone = {name for name, ref in metadata.refs.items() if ref.snapshot_id in snapshot_ids}
        if gone:
            self._remove_refs(gone)

    def finished(self, base_location: str | None) -> TableMetadata:
        """The result with its time, and the base in its metadata log."""
        metadata = replace(self.metadata, last_updated_ms=self.now_ms)
        if base_location is None:
            return metadata
        entry = MetadataLogEntry(self.base.last_updated_ms, base_location)
        text = metadata.properties.get(PREVIOUS_VERSIONS_PROPERTY, "")
        kept = max(1, int(text)) if text.isdecimal() else PREVIOUS_VERSIONS_MAX
        return replace(metadata, metadata_log=(*metadata.metadata_log, entry)[-kept:])


def _chosen(wanted: int, last_added: int | None, what: str) -> int:
    if wanted != LAST_ADDED:
        return wanted
    if last_added is None:
        raise InvalidMetadataError(f"no {what} was added by this change set: -1 names none")
    return last_added


def _with(
    known: Sequence[Mapping[str, object]], added: Mapping[str, object], key: str
) -> tuple[Mapping[str, object], ...]:
    return (*_without(known, key, added.get(key)), added)


def _without(
    known: Sequence[Mapping[str, object]], key: str, value: object
) -> tuple[Mapping[str, object], ...]:
    return tuple(one for one in known if one.get(key) != value)


def _without_all(
    known: Sequence[Mapping[str, object]], snapshot_ids: frozenset[int]
) -> tuple[Mapping[str, object], ...]:
    return tuple(one for one in known if one.get("snapshot-id") not in snapshot_ids)


def _log_after_last(
    log: tuple[SnapshotLogEntry, ...], removed: frozenset[int]
) -> tuple[SnapshotLogEntry, ...]:
    """Only what comes after the last removed snapshot: a log with gaps would answer wrongly."""
    for position in range(len(log) - 1, -1, -1):
        if log[position].snapshot_id in removed:
            return log[position + 1 :]
    return log


# --- JSON form -----------------------------------------------------------------------------------


def print_update(update: Update) -> dict[str, object]:
    """The JSON form of the REST specification."""
    match update:
        case AssignUUID(uuid):
            return {"action": "assign-uuid", "uuid": str(uuid)}
        case AddSchema(schema):
            return {"action": "add-schema", "schema": print_schema(schema)}
        case AddPartitionSpec(spec):
            return {"action": "add-spec", "spec": print_partition_spec(spec)}
        case AddSortOrder(order):
            return {"action": "add-sort-order", "sort-order": print_sort_order(order)}
        case AddSnapshot(snapshot):
            return {"action": "add-snapshot", "snapshot": print_snapshot(snapshot)}
        case SetSnapshotRef(name, ref):
            printed = print_snapshot_ref(ref)
            return {"action": "set-snapshot-ref", "ref-name": name, **printed}
        case RemoveSnapshotRef(name):
            return {"action": "remove-snapshot-ref", "ref-name": name}
        case SetStatistics(statistics):
            snapshot_id = statistics.get("snapshot-id")
            return {
                "action": "set-statistics",
                "snapshot-id": snapshot_id,
                "statistics": dict(statistics),
            }
        case _:
            action, key, attribute = _PLAIN[type(update)]
            value = getattr(update, attribute)
            printed_value = list(value) if isinstance(value, tuple) else value
            return {"action": action, key: printed_value}


# action, key, attribute of the updates that carry one plain value
_PLAIN: Mapping[type, tuple[str, str, str]] = {
    UpgradeFormatVersion: ("upgrade-format-version", "format-version", "format_version"),
    SetCurrentSchema: ("set-current-schema", "schema-id", "schema_id"),
    SetDefaultSpec: ("set-default-spec", "spec-id", "spec_id"),
    SetDefaultSortOrder: ("set-default-sort-order", "sort-order-id", "sort_order_id"),
    RemoveSnapshots: ("remove-snapshots", "snapshot-ids", "snapshot_ids"),
    SetLocation: ("set-location", "location", "location"),
    SetProperties: ("set-properties", "updates", "updates"),
    RemoveProperties: ("remove-properties", "removals", "removals"),
    RemoveStatistics: ("remove-statistics", "snapshot-id", "snapshot_id"),
    SetPartitionStatistics: (
        "set-partition-statistics",
        "partition-statistics",
        "partition_statistics",
    ),
    RemovePartitionStatistics: ("remove-partition-statistics", "snapshot-id", "snapshot_id"),
    RemovePartitionSpecs: ("remove-partition-specs", "spec-ids", "spec_ids"),
    RemoveSchemas: ("remove-schemas", "schema-ids", "schema_ids"),
    AddEncryptionKey: ("add-encryption-key", "encryption-key", "encryption_key"),
    RemoveEncryptionKey: ("remove-encryption-key", "key-id", "key_id"),
}


def parse_update(json_value: object) -> Update:
    """Errors: `InvalidMetadataError`, also for an unknown action: it must never be ignored."""
    reader = Reader(json_value, "update")
    action = reader.text("action")
    if action not in _PARSERS:
        raise InvalidMetadataError(f"update: unknown action `{action}`")
    return _PARSERS[action](reader)


def _object(reader: Reader, key: str) -> dict[str, object]:
    found = reader.rest.pop(key, None)
    if not isinstance(found, dict):
        raise InvalidMetadataError(f"update: `{key}`: expected an object")
    return found


def _integers(reader: Reader, key: str) -> tuple[int, ...]:
    found = reader.optional_list(key) or []
    if not all(isinstance(one, int) for one in found):
        raise InvalidMetadataError(f"update: `{key}`: expected a list of integers")
    return tuple(found)  # type: ignore[arg-type]  # checked above


def _parse_uuid(reader: Reader) -> Update:
    text = reader.text("uuid")
    try:
        return AssignUUID(UUID(text))
    except ValueError:
        raise InvalidMetadataError(f"update: not a uuid: `{text}`") from None


def _parse_set_ref(reader: Reader) -> Update:
    name = reader.text("ref-name")
    return SetSnapshotRef(name, parse_snapshot_ref(reader.rest, where=f"update: ref `{name}`"))


_PARSERS: Mapping[str, Callable[[Reader], Update]] = {
    "assign-uuid": _parse_uuid,
    "upgrade-format-version": lambda r: UpgradeFormatVersion(r.integer("format-version")),
    "add-schema": lambda r: AddSchema(parse_schema(_object(r, "schema"))),
    "set-current-schema": lambda r: SetCurrentSchema(r.integer("schema-id")),
    "add-spec": lambda r: AddPartitionSpec(parse_partition_spec(_object(r, "spec"))),
    "set-default-spec": lambda r: SetDefaultSpec(r.integer("spec-id")),
    "add-sort-order": lambda r: AddSortOrder(parse_sort_order(_object(r, "sort-order"))),
    "set-default-sort-order": lambda r: SetDefaultSortOrder(r.integer("sort-order-id")),
    "add-snapshot": lambda r: AddSnapshot(parse_snapshot(_object(r, "snapshot"))),
    "set-snapshot-ref": _parse_set_ref,
    "remove-snapshots": lambda r: RemoveSnapshots(_integers(r, "snapshot-ids")),
    "remove-snapshot-ref": lambda r: RemoveSnapshotRef(r.text("ref-name")),
    "set-location": lambda r: SetLocation(r.text("location")),
    "set-properties": lambda r: SetProperties(r.text_map("updates") or {}),
    "remove-properties": lambda r: RemoveProperties(
        tuple(map(str, r.optional_list("removals") or []))
    ),
    "set-statistics": lambda r: SetStatistics(_object(r, "statistics")),
    "remove-statistics": lambda r: RemoveStatistics(r.integer("snapshot-id")),
    "set-partition-statistics": lambda r: SetPartitionStatistics(
        _object(r, "partition-statistics")
    ),
    "remove-partition-statistics": lambda r: RemovePartitionStatistics(r.integer("snapshot-id")),
    "remove-partition-specs": lambda r: RemovePartitionSpecs(_integers(r, "spec-ids")),
    "remove-schemas": lambda r: RemoveSchemas(_integers(r, "schema-ids")),
    "add-encryption-key": lambda r: AddEncryptionKey(_object(r, "encryption-key")),
    "remove-encryption-key": lambda r: RemoveEncryptionKey(r.text("key-id")),
}
