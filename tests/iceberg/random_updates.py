"""Random changes of a table, most of them possible, from pools so small that they collide."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import Random
from uuid import UUID

from committer.iceberg.metadata.snapshot import MAIN, Snapshot, SnapshotRef
from committer.iceberg.metadata.table_statistics import EncryptedKey
from committer.iceberg.schema.partition_field_ids import NEW_FIELD_ID
from committer.iceberg.schema.partition_spec import PartitionField, PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.sort_order import SortField, SortOrder
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
from committer.iceberg.values.transforms import parse_transform
from committer.iceberg.values.types import (
    DateType,
    IcebergType,
    LongType,
    NestedField,
    StringType,
    TimestampNanoType,
)
from tests.iceberg.table_model import Refused, TableModel
from tests.support.iceberg.metadata_builders import START_MS, TABLE_UUID, build_statistics

_COLUMNS: tuple[tuple[int, str, IcebergType], ...] = (
    (1, "id", LongType()),
    (2, "name", StringType()),
    (3, "day", DateType()),
    (4, "at", TimestampNanoType()),
)
_TRANSFORMS = ("identity", "bucket[4]", "month", "void")
_KEYS = ("a", "b", "write.metadata.previous-versions-max")
_TEXTS = ("1", "2", "3")
_NAMES = (MAIN, MAIN, MAIN, "audit", "release")


class RandomChanges:
    """Draws changes of a table from a seed: equal seeds, equal changes."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)

    def change_set(self, table: TableModel) -> list[Update]:
        """Draw one to three changes; of those that the model refuses, one in five stays."""
        found: list[Update] = []
        for _ in range(self.rng.randint(1, 3)):
            candidate = [*found, *self._change(table)]
            if self._one_in(5) or is_possible(table, candidate):
                found = candidate
        return found

    def _change(self, table: TableModel) -> list[Update]:
        """Choose updates that belong together; commits are half of all."""
        match self.rng.randrange(13):
            case 0 | 1 | 2 | 3 | 4:
                return self._commit(table)
            case 5:
                return [SetSnapshotRef(self.rng.choice(_NAMES), self._ref(table))]
            case 6:
                return [RemoveSnapshots(self._ids(table.snapshots))]
            case 7:
                return self._added_and_set(
                    AddSchema(self._schema(), self.rng.choice((None, None, 9))),
                    SetCurrentSchema(LAST_ADDED),
                )
            case 8 | 9:
                return self._added_and_set(
                    AddPartitionSpec(self._spec()), SetDefaultPartitionSpec(LAST_ADDED)
                )
            case 10:
                return self._added_and_set(
                    AddSortOrder(self._order()), SetDefaultSortOrder(LAST_ADDED)
                )
            case _:
                return [self._other(table)]

    def _other(self, table: TableModel) -> Update:
        choice = self.rng.choice
        snapshot_id = choice((*table.snapshots, 1))
        chosen = choice((LAST_ADDED, 0, 1, 2))
        statistics = build_statistics(snapshot_id, choice(_TEXTS))
        others: tuple[Update, ...] = (
            AssignUUID(choice((TABLE_UUID, UUID(int=7)))),
            UpgradeFormatVersion(choice((table.version, 2, 3))),
            SetCurrentSchema(chosen),
            RemoveSchemas(self._ids(table.schemas)),
            SetDefaultPartitionSpec(chosen),
            RemovePartitionSpecs(self._ids(table.specs)),
            SetDefaultSortOrder(chosen),
            SetLocation(choice(("s3://lake/a", "s3://lake/a/"))),
            SetProperties({choice(_KEYS): choice(_TEXTS)}),
            RemoveProperties((choice(_KEYS),)),
            RemoveSnapshotRef(choice(_NAMES)),
            SetStatistics(statistics),
            RemoveStatistics(snapshot_id),
            SetPartitionStatistics(statistics),
            RemovePartitionStatistics(snapshot_id),
            AddEncryptionKey(EncryptedKey(choice(_TEXTS), choice(("AQ==", "AQ==", "Ag==")))),
            RemoveEncryptionKey(choice(_TEXTS)),
        )
        return choice(others)

    def _commit(self, table: TableModel) -> list[Update]:
        snapshot = self._snapshot(table)
        if self._one_in(5):
            return [AddSnapshot(snapshot)]
        name = self.rng.choice(_NAMES)
        ref = replace(table.refs.get(name, SnapshotRef(1)), snapshot_id=snapshot.snapshot_id)
        return [AddSnapshot(snapshot), SetSnapshotRef(name, ref)]

    def _snapshot(self, table: TableModel) -> Snapshot:
        """Draw mostly the next snapshot, sometimes one with a number that was used already."""
        late = 1 if not self._one_in(4) else self.rng.choice((0, 3))
        lineage = table.version == 3
        return Snapshot(
            snapshot_id=self.rng.randint(1, 20),
            parent_snapshot_id=self.rng.choice((table.current, None, 1)),
            sequence_number=0 if table.version == 1 else max(0, table.last_sequence - 1 + late),
            timestamp_ms=START_MS + self.rng.randint(-5, 5) * 50_000,
            manifest_list="s3://lake/list.avro",
            summary={"operation": "append"},
            schema_id=table.current_schema,
            first_row_id=(table.next_row or 0) + late - 1 if lineage else None,
            added_rows=self.rng.randint(0, 9) if lineage else None,
        )

    def _ref(self, table: TableModel) -> SnapshotRef:
        keep, age, ref_age = (self.rng.choice((None, None, 1, 1, 0)) for _ in range(3))
        snapshot_id = self.rng.choice((*table.snapshots, *table.snapshots, 1))
        if self._one_in(2):
            return SnapshotRef(snapshot_id, "branch", keep, age, ref_age)
        few = self._one_in(3)
        return SnapshotRef(snapshot_id, "tag", keep if few else None, None, ref_age)

    def _schema(self) -> Schema:
        wanted = [each for each in _COLUMNS if each[0] == 1 or self._one_in(2)]
        fields = tuple(NestedField(one, name, kind, False) for one, name, kind in wanted)
        return Schema(fields[self.rng.random() < 0.1 :], self.rng.randint(0, 3))

    def _spec(self) -> PartitionSpec:
        fields = tuple(
            PartitionField(
                (self.rng.choice((1, 1, 2, 3)),),
                self.rng.choice((NEW_FIELD_ID, NEW_FIELD_ID, 1000 + position, 1001)),
                name,
                parse_transform(self.rng.choice(_TRANSFORMS)),
            )
            for position, name in enumerate("pq"[: self.rng.randint(0, 2)])
        )
        return PartitionSpec(self.rng.randint(0, 3), fields)

    def _order(self) -> SortOrder:
        transform = parse_transform(self.rng.choice(_TRANSFORMS[:2]))
        fields = tuple(
            SortField((self.rng.randint(1, 3),), transform, "asc", "nulls-first")
            for _ in range(self.rng.randint(0, 2))
        )
        return SortOrder(self.rng.randint(1, 4) if fields else 0, fields)

    def _added_and_set(self, added: Update, chosen: Update) -> list[Update]:
        return [added] if self._one_in(3) else [added, chosen]

    def _ids(self, known: Iterable[int]) -> tuple[int, ...]:
        return tuple(self.rng.choices((*known, 5), k=self.rng.randint(1, 2)))

    def _one_in(self, count: int) -> bool:
        return self.rng.randrange(count) == 0


def is_possible(table: TableModel, updates: list[Update]) -> bool:
    try:
        table.after(updates)
    except Refused:
        return False
    return True
