"""Applies a change set to a table: snapshots, refs, logs, times, sequence numbers, row ids.

The order of the changes matters as it does in Iceberg Java. Source:
docs/reference/iceberg-notes.md 4.3, 6.8.

Times. Readers refuse a table whose logs, or whose `last-updated-ms` behind them, run backwards by
more than a minute. So a time that is about to be written is raised to the latest one that is
written already: a clock that jumps back costs true times, never the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from uuid import UUID

from committer.errors import InvalidMetadataError
from committer.iceberg.metadata.metadata_check import RESERVED_PROPERTIES, check_format_version
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.metadata.snapshot import (
    MAIN,
    MetadataLogEntry,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
    check_snapshot_ref,
)
from committer.iceberg.metadata.table_statistics import (
    EncryptedKey,
    StatisticsFile,
    check_encrypted_key,
    check_table_statistics,
)
from committer.iceberg.updates.layout_builder import LayoutBuilder
from committer.iceberg.values.locations import table_location

_PREVIOUS_VERSIONS_MAX = "write.metadata.previous-versions-max"
_PREVIOUS_VERSIONS_MAX_DEFAULT = 100
_LONG_MAX = (1 << 63) - 1


class MetadataBuilder:
    """Mutable; lives as long as one change set."""

    def __init__(self, base: TableMetadata, now_ms: int) -> None:
        self.layout = LayoutBuilder(base)
        self._base = base
        self._changed = False
        self._uuid, self._location = base.table_uuid, base.location
        self._properties = base.properties
        self._current_snapshot_id = base.current_snapshot_id
        self._last_sequence_number = base.last_sequence_number
        self._next_row_id = base.next_row_id
        self._refs = dict(base.refs)
        self._snapshots: dict[int, Snapshot] | None = None
        self._statistics = base.statistics
        self._partition_statistics = base.partition_statistics
        self._encryption_keys = base.encryption_keys
        self._snapshot_log = base.snapshot_log
        self._now_ms = max(now_ms, _latest_ms(base))
        self._added: set[int] = set()
        self._added_to_main: set[int] = set()
        self._removed_snapshots = False

    # --- Snapshots and refs ----------------------------------------------------------------------

    def add_snapshot(self, snapshot: Snapshot) -> None:
        if snapshot.snapshot_id in self.snapshots:
            raise InvalidMetadataError(f"snapshot {snapshot.snapshot_id} exists already")
        if snapshot.manifest_list is None and (
            self.layout.format_version > 1 or snapshot.manifests is None
        ):
            raise _wrong(snapshot, "manifest-list", "a file", None)
        self._check_sequence_number(snapshot)
        if self.layout.format_version >= 3:
            self._next_row_id = self._row_ids_end(snapshot)
        self.snapshots[snapshot.snapshot_id] = snapshot
        self._added.add(snapshot.snapshot_id)
        # Its writer's clock may be ahead of the one that changes the metadata.
        self._now_ms = max(self._now_ms, snapshot.timestamp_ms)
        # A snapshot without a parent may have any number: the table's own never falls.
        self._last_sequence_number = max(self._last_sequence_number, snapshot.sequence_number)
        self._changed = True

    def _check_sequence_number(self, snapshot: Snapshot) -> None:
        last, found = self._last_sequence_number, snapshot.sequence_number
        if self.layout.format_version == 1:
            if found != 0:
                raise _wrong(snapshot, "sequence-number", "0 in format version 1", found)
        elif found <= last and snapshot.parent_snapshot_id is not None:
            raise _wrong(snapshot, "sequence-number", f"more than {last}", found)

    def _row_ids_end(self, snapshot: Snapshot) -> int:
        """Return the first row id behind those of the snapshot."""
        first, added, free = snapshot.first_row_id, snapshot.added_rows, self._next_row_id or 0
        if first is None or first < free:
            raise _wrong(snapshot, "first-row-id", f"at least `next-row-id` {free}", first)
        if added is None or added < 0:
            raise _wrong(snapshot, "added-rows", "0 or more", added)
        if added > _LONG_MAX - first:
            raise _wrong(snapshot, "added-rows", f"at most {_LONG_MAX - first}", added)
        return first + added

    def set_ref(self, name: str, ref: SnapshotRef) -> None:
        if self._refs.get(name) == ref:
            return
        check_snapshot_ref(ref, where=f"ref `{name}`")
        snapshot = self.snapshots.get(ref.snapshot_id)
        if snapshot is None:
            raise InvalidMetadataError(
                f"ref `{name}`: expected a snapshot {ref.snapshot_id}, found none"
            )
        if name == MAIN:
            self._set_main(ref, snapshot)
        self._refs[name] = ref
        self._changed = True

    def _set_main(self, ref: SnapshotRef, snapshot: Snapshot) -> None:
        if ref.type != "branch":
            raise InvalidMetadataError(f"ref `{MAIN}`: expected a branch, found a {ref.type}")
        is_new = ref.snapshot_id in self._added
        self._current_snapshot_id = ref.snapshot_id
        self._log_snapshot(snapshot.timestamp_ms if is_new else self._now_ms, ref.snapshot_id)
        if is_new:
            self._added_to_main.add(ref.snapshot_id)

    def _log_snapshot(self, timestamp_ms: int, snapshot_id: int) -> None:
        if self._snapshot_log:
            timestamp_ms = max(timestamp_ms, self._snapshot_log[-1].timestamp_ms)
        self._snapshot_log = (*self._snapshot_log, SnapshotLogEntry(timestamp_ms, snapshot_id))

    def remove_ref(self, name: str) -> None:
        if self._refs.pop(name, None) is None:
            return
        if name == MAIN:
            self._current_snapshot_id = None
        self._changed = True

    def remove_snapshots(self, snapshot_ids: Iterable[int]) -> None:
        removed = {each for each in snapshot_ids if each in self.snapshots}
        if not removed:
            return
        for name in [name for name, ref in self._refs.items() if ref.snapshot_id in removed]:
            self.remove_ref(name)
        for snapshot_id in removed:
            del self.snapshots[snapshot_id]
        self._statistics = _without(self._statistics, removed)
        self._partition_statistics = _without(self._partition_statistics, removed)
        self._removed_snapshots = self._changed = True

    @property
    def snapshots(self) -> dict[int, Snapshot]:
        """The snapshots by id, in their order: a copy of the base's, as that stays true for it."""
        if self._snapshots is None:
            self._snapshots = dict(self._base.snapshots_by_id)
        return self._snapshots

    # --- Everything else that is named by a key --------------------------------------------------

    def set_properties(self, updates: Mapping[str, str]) -> None:
        reserved = RESERVED_PROPERTIES.intersection(updates)
        if reserved:
            raise InvalidMetadataError(
                f"properties: {', '.join(sorted(reserved))}: reserved, expected none of them"
            )
        if updates:
            self._properties = {**self._properties, **updates}
            self._changed = True

    def remove_properties(self, removals: Iterable[str]) -> None:
        removed = frozenset(removals)
        if removed:
            kept = {key: text for key, text in self._properties.items() if key not in removed}
            self._properties = kept
            self._changed = True

    def set_location(self, location: str) -> None:
        stripped = table_location(location)
        self._changed |= stripped != self._location
        self._location = stripped

    def assign_uuid(self, uuid: UUID) -> None:
        self._changed |= uuid != self._uuid
        self._uuid = uuid

    def upgrade_format_version(self, format_version: int) -> None:
        check_format_version(format_version)
        current = self.layout.format_version
        if format_version < current:
            raise InvalidMetadataError(
                f"format version: expected {current} or above, found {format_version}"
            )
        if format_version >= 3 and self._next_row_id is None:
            self._next_row_id = 0
        self._changed |= format_version != current
        self.layout.format_version = format_version

    def set_statistics(self, statistics: StatisticsFile) -> None:
        check_table_statistics(statistics)
        self._statistics = _with(self._statistics, statistics)
        self._changed = True

    def remove_statistics(self, snapshot_id: int) -> None:
        kept = _without(self._statistics, {snapshot_id})
        self._changed |= len(kept) != len(self._statistics)
        self._statistics = kept

    def set_partition_statistics(self, statistics: StatisticsFile) -> None:
        self._partition_statistics = _with(self._partition_statistics, statistics)
        self._changed = True

    def remove_partition_statistics(self, snapshot_id: int) -> None:
        kept = _without(self._partition_statistics, {snapshot_id})
        self._changed |= len(kept) != len(self._partition_statistics)
        self._partition_statistics = kept

    def add_encryption_key(self, key: EncryptedKey) -> None:
        if key in self._encryption_keys:
            return
        if any(each.key_id == key.key_id for each in self._encryption_keys):
            raise InvalidMetadataError(f"encryption key `{key.key_id}` exists with other content")
        if self.layout.format_version < 3:
            raise InvalidMetadataError("encryption keys need format version 3")
        check_encrypted_key(key)
        self._encryption_keys = (*self._encryption_keys, key)
        self._changed = True

    def remove_encryption_key(self, key_id: str) -> None:
        kept = tuple(key for key in self._encryption_keys if key.key_id != key_id)
        self._changed |= len(kept) != len(self._encryption_keys)
        self._encryption_keys = kept

    # --- The result ------------------------------------------------------------------------------

    def build(self, base_location: str | None) -> TableMetadata:
        """Build the changed table; the base itself if nothing was changed."""
        if not self._changed and not self.layout.is_changed:
            return self._base
        if self._uuid is None and self.layout.format_version > 1:
            raise InvalidMetadataError(
                f"format version {self.layout.format_version}: expected a table with a uuid"
            )
        built = replace(
            self._base,
            format_version=self.layout.format_version,
            table_uuid=self._uuid,
            location=self._location,
            last_sequence_number=self._last_sequence_number,
            properties=self._properties,
            current_snapshot_id=self._current_snapshot_id,
            next_row_id=self._next_row_id,
            encryption_keys=self._encryption_keys,
            refs=self._refs,
            snapshots=self._built_snapshots(),
            statistics=self._statistics,
            partition_statistics=self._partition_statistics,
            snapshot_log=self._built_snapshot_log(),
            metadata_log=self._built_metadata_log(base_location),
        )
        built = replace(built, last_updated_ms=max(self._now_ms, _latest_ms(built)))
        if self.layout.is_changed:
            built = self.layout.applied(built)
        return built if self._snapshots is None else built.with_index(self._snapshots)

    def _built_snapshots(self) -> tuple[Snapshot, ...]:
        is_changed = self._removed_snapshots or self._added
        return tuple(self.snapshots.values()) if is_changed else self._base.snapshots

    def _built_snapshot_log(self) -> tuple[SnapshotLogEntry, ...]:
        """Return the log without gaps, and without snapshots that only this change made current."""
        passed = self._added_to_main - {self._current_snapshot_id}
        if not passed and not self._removed_snapshots:
            return self._snapshot_log
        kept: list[SnapshotLogEntry] = []
        for entry in self._snapshot_log:
            if entry.snapshot_id not in self.snapshots:
                # The snapshot between two kept entries is unknown now: time travel over the gap
                # would find the wrong snapshot, so everything before it is removed.
                kept.clear()
            elif entry.snapshot_id not in passed:
                kept.append(entry)
        current = self._current_snapshot_id
        if current is not None and (not kept or kept[-1].snapshot_id != current):
            kept.append(SnapshotLogEntry(self._now_ms, current))
        return tuple(kept)

    def _built_metadata_log(self, base_location: str | None) -> tuple[MetadataLogEntry, ...]:
        log = self._base.metadata_log
        if base_location is None:
            return log
        replaced_ms = self._base.last_updated_ms
        if log:
            replaced_ms = max(replaced_ms, log[-1].timestamp_ms)
        entry = MetadataLogEntry(replaced_ms, base_location)
        return (*log, entry)[-_previous_versions_max(self._properties) :]


def _latest_ms(metadata: TableMetadata) -> int:
    """Return the latest time that a reader would compare with."""
    logs = (metadata.snapshot_log, metadata.metadata_log)
    return max((metadata.last_updated_ms, *(log[-1].timestamp_ms for log in logs if log)))


def _previous_versions_max(properties: Mapping[str, str]) -> int:
    """Return how many previous versions to keep, at least 1;
    a value that is no number is the default."""
    try:
        found = int(properties.get(_PREVIOUS_VERSIONS_MAX, _PREVIOUS_VERSIONS_MAX_DEFAULT))
    except ValueError:
        found = _PREVIOUS_VERSIONS_MAX_DEFAULT
    return max(1, found)


def _with(
    known: tuple[StatisticsFile, ...], statistics: StatisticsFile
) -> tuple[StatisticsFile, ...]:
    return (*_without(known, {statistics.snapshot_id}), statistics)


def _without(
    known: tuple[StatisticsFile, ...], snapshot_ids: set[int]
) -> tuple[StatisticsFile, ...]:
    return tuple(each for each in known if each.snapshot_id not in snapshot_ids)


def _wrong(snapshot: Snapshot, key: str, expected: str, found: object) -> InvalidMetadataError:
    return InvalidMetadataError(
        f"snapshot {snapshot.snapshot_id}: `{key}`: expected {expected}, found {found}"
    )
