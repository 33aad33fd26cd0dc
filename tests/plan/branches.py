"""A branch of a table in memory, to which changes are applied as the commit's plan would.

Files exist by name only: but for the vectors of deletions, no plan opens one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from uuid import UUID

from committer.iceberg.deletes.deletion_vector import DeletionVector
from committer.iceberg.deletes.deletion_vector_file import (
    decode_vector_of,
    encode_deletion_vectors,
    vector_range,
)
from committer.iceberg.entry.data_file import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
)
from committer.iceberg.manifest.manifest import iter_entries
from committer.iceberg.manifest.manifest_list import encode_manifest_file, encode_manifest_list
from committer.iceberg.manifest.manifest_writer import ManifestContext, encode_additions
from committer.iceberg.metadata.snapshot import Snapshot, SnapshotRef
from committer.iceberg.metadata.summary import commit_summary
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.schema.partition_spec import PartitionField, PartitionSpec, partition_type
from committer.iceberg.splice.manifest_splice import ManifestPart
from committer.iceberg.splice.manifest_walk import walk_additions
from committer.iceberg.updates.metadata_update import (
    AddPartitionSpec,
    AddSnapshot,
    SetDefaultPartitionSpec,
    SetSnapshotRef,
    Update,
    UpgradeFormatVersion,
)
from committer.iceberg.values.single_value import encode_value
from committer.iceberg.values.types import LongType, StringType
from committer.plan.batch.batch import schema_of_spec
from committer.plan.batch.submitted_manifest import CheckedManifest
from committer.plan.file_changes.step_manifests import produce
from committer.plan.ledger.state import ListedManifest
from committer.plan.operations.change import Base, Change, RemovedDelete, removed_delete
from committer.plan.operations.conflict import Conflict
from committer.plan.operations.head import Head, MissingObjectsError, ObjectRange
from committer.plan.operations.step_output import Produced, StepNames
from committer.ports.pointer_swap import LoadedTable
from tests.support.builders.flights import BY_CARRIER, BY_DAY, build_flights, changed

FOLDER = "memory://warehouse/db/flights"


def data_file(
    name: str,
    carrier: str | None = "AA",
    *,
    rows: int = 10,
    ids: tuple[int, int] | None = None,
    spec_id: int = 0,
    partition: tuple[object, ...] | None = None,
) -> DataFile:
    """Build a data file of one carrier. `ids`: the bounds of its column `id`."""
    lower, upper = ({}, {}) if ids is None else ({1: _long(ids[0])}, {1: _long(ids[1])})
    text = None if carrier is None else encode_value(StringType(), carrier)
    named = {} if text is None else {2: text}
    nulls = rows if carrier is None else 0
    return DataFile(
        file_path=f"{FOLDER}/data/{name}.parquet",
        partition=(carrier,) if partition is None else partition,
        record_count=rows,
        file_size_in_bytes=1_000,
        value_counts={1: rows, 2: rows},
        null_value_counts={1: 0, 2: nulls},
        lower_bounds={**lower, **named},
        upper_bounds={**upper, **named},
        sort_order_id=0,
        spec_id=spec_id,
    )


def _long(value: int) -> bytes:
    return encode_value(LongType(), value)


def equality_delete(name: str, carrier: str | None = "AA", *, ids: tuple[int, int]) -> DataFile:
    """Build a delete file of ids of one carrier."""
    file = data_file(name, carrier, rows=ids[1] - ids[0] + 1, ids=ids)
    content = DataFileContent.EQUALITY_DELETES
    return replace(file, content=content, equality_ids=(1,), file_size_in_bytes=100)


def position_delete(
    name: str, carrier: str | None = "AA", *, of: str | None = None, rows: int = 1
) -> DataFile:
    """Build a position delete file of a data file, or of any of its partition."""
    return DataFile(
        content=DataFileContent.POSITION_DELETES,
        file_path=f"{FOLDER}/data/{name}.parquet",
        partition=(carrier,),
        record_count=rows,
        file_size_in_bytes=100,
        referenced_data_file=None if of is None else f"{FOLDER}/data/{of}.parquet",
    )


def name_of(path: str) -> str:
    return path.rsplit("/", 1)[1].split(".")[0]


def path_of(name: str) -> str:
    return f"{FOLDER}/data/{name}.parquet"


@dataclass
class Branch:
    """`reads`: the objects that were asked for since the last change, each once."""

    table: LoadedTable
    manifests: tuple[ListedManifest, ...] = ()
    objects: dict[str, bytes] = field(default_factory=dict)
    reads: list[ObjectRange] = field(default_factory=list)
    produced: Produced | None = None
    _ids: count[int] = field(default_factory=lambda: count(1))

    @classmethod
    def build(
        cls,
        format_version: int = 2,
        *,
        fields: tuple[PartitionField, ...] = BY_CARRIER,
        properties: dict[str, str] | None = None,
    ) -> Branch:
        return cls(
            build_flights(format_version=format_version, fields=fields, properties=properties)
        )

    @property
    def metadata(self) -> TableMetadata:
        return self.table.metadata

    @property
    def snapshot(self) -> Snapshot:
        found = self.metadata.branch_head()
        assert found is not None
        return found

    @property
    def base(self) -> Base:
        """What a client reads now."""
        return Base(
            snapshot_id=self.snapshot.snapshot_id, sequence_number=self.snapshot.sequence_number
        )

    # --- Changes -------------------------------------------------------------------------------

    def added(self, *files: DataFile) -> tuple[CheckedManifest, ...]:
        """Return the manifests of a request: one for each spec and content."""
        groups: dict[tuple[int, ManifestContent], list[DataFile]] = {}
        for file in files:
            groups.setdefault((file.spec_id, file.manifest_content), []).append(file)
        return tuple(self._manifest(*key, group) for key, group in groups.items())

    def _manifest(
        self, spec_id: int, content: ManifestContent, files: Sequence[DataFile]
    ) -> CheckedManifest:
        version, spec = self.metadata.format_version, self.metadata.spec_by_id(spec_id)
        schema = schema_of_spec(spec, self.metadata)
        context = ManifestContext(version, schema, spec, content)
        encoded = encode_additions(files, context, sync=bytes(16)).content
        walked = walk_additions(encoded, partition_type(spec, schema), version, content)
        return CheckedManifest(spec_id, ManifestPart(encoded, walked))

    def change(self, operation: str, *files: DataFile, **needs: object) -> Change:
        """Build a change of an operation that adds these files, without a base."""
        removed = frozenset(map(path_of, needs.pop("removed", ())))  # type: ignore[call-overload]
        built = Change(operation=operation, base=Base(), added=self.added(*files))
        return replace(built, removed_data_files=removed, **needs)  # type: ignore[arg-type]

    def vectors(self, name: str, **positions: Iterable[int]) -> tuple[DataFile, ...]:
        """Write a Puffin file of vectors for data files of carrier AA."""
        path = f"{FOLDER}/data/{name}.puffin"
        pairs = [(data_file(of), DeletionVector(found)) for of, found in positions.items()]
        encoded = encode_deletion_vectors(pairs, file_path=path, created_by="test")
        self.objects[path] = encoded.content
        return encoded.delete_files

    # --- Landing -------------------------------------------------------------------------------

    def plan(self, *changes: Change) -> Produced | Conflict:
        """Plan a step, and read what it asks for."""
        head = self.head
        self.reads.clear()
        while True:
            try:
                return produce(head, changes, self._names)
            except MissingObjectsError as missing:
                assert missing.needs.isdisjoint(self.reads)
                self.reads += sorted(missing.needs, key=str)
                head = replace(head, objects=_Read({one: self._bytes(one) for one in self.reads}))

    def land(self, *changes: Change) -> Produced:
        """Land a step: number its manifests and their rows, and commit its snapshot."""
        produced = self.plan(*changes)
        assert isinstance(produced, Produced), produced
        names = self._names
        for created in produced.objects:
            assert created.location not in self.objects
            self.objects[created.location] = created.content
        next(self._ids)
        next_row_id = self.metadata.next_row_id or 0
        listed: list[ListedManifest] = []
        for one in produced.manifests:
            row = one.row
            is_data = row.content == ManifestContent.DATA
            if self.metadata.format_version > 2 and is_data and row.first_row_id is None:
                row = replace(row, first_row_id=next_row_id)
                next_row_id += (row.existing_rows_count or 0) + (row.added_rows_count or 0)
            listed.append(replace(one, row=row))
        parent = self.metadata.branch_head()
        previous = parent.summary if parent else None
        is_v3 = self.metadata.format_version > 2
        first = self.metadata.next_row_id or 0
        snapshot = Snapshot(
            snapshot_id=names.snapshot_id,
            parent_snapshot_id=parent.snapshot_id if parent else None,
            sequence_number=names.sequence_number,
            timestamp_ms=self.metadata.last_updated_ms + 1,
            manifest_list=f"{FOLDER}/metadata/snap-{names.snapshot_id}.avro",
            summary=commit_summary(produced.label, previous, produced.counts, extra=produced.extra),
            schema_id=self.metadata.current_schema_id,
            first_row_id=first if is_v3 else None,
            added_rows=next_row_id - first if is_v3 else None,
        )
        self.objects[snapshot.manifest_list or ""] = encode_manifest_list(
            [encode_manifest_file(one.row, self.metadata.format_version) for one in listed],
            format_version=self.metadata.format_version,
            snapshot_id=snapshot.snapshot_id,
            parent_snapshot_id=snapshot.parent_snapshot_id,
            sequence_number=snapshot.sequence_number,
            first_row_id=snapshot.first_row_id,
            sync=bytes(16),
            extra_metadata={},
        )
        self.update(
            AddSnapshot(snapshot),
            SetSnapshotRef("main", SnapshotRef(snapshot_id=snapshot.snapshot_id, type="branch")),
        )
        self.manifests, self.produced = tuple(listed), produced
        return produced

    def append(self, *files: DataFile) -> Produced:
        return self.land(self.change("append", *files))

    def upgrade(self, format_version: int = 3) -> None:
        """Upgrade the table: in version 3 its files get row ids with the next commit."""
        self.update(UpgradeFormatVersion(format_version))

    def by_day(self) -> None:
        """Partition the table by day from now on: spec 1."""
        self.update(AddPartitionSpec(PartitionSpec(1, BY_DAY)), SetDefaultPartitionSpec(1))

    def update(self, *updates: Update) -> None:
        self.table = changed(self.table, *updates)

    @property
    def head(self) -> Head:
        return Head(self.metadata, "main", self.metadata.branch_head(), self.manifests, _Read({}))

    @property
    def _names(self) -> StepNames:
        number = len(self.metadata.snapshots) + 1
        version_1 = self.metadata.format_version == 1
        return StepNames(
            100 + number,
            0 if version_1 else self.metadata.last_sequence_number + 1,
            f"{FOLDER}/metadata",
            UUID(int=number),
            UUID(int=1_000 + number),
        )

    def _bytes(self, wanted: ObjectRange) -> bytes:
        stop = None if wanted.length is None else wanted.offset + wanted.length
        return self.objects[wanted.location][wanted.offset : stop]

    # --- What the branch is ----------------------------------------------------------------------

    def entries(self) -> list[ManifestEntry]:
        """Return all entries of the branch's manifests, with what they inherit."""
        return [entry for one in self.manifests for entry in self.entries_of(one)]

    def entries_of(self, one: ListedManifest) -> list[ManifestEntry]:
        content = self.objects[one.row.manifest_path]
        return list(iter_entries(content, manifest_file=one.row))

    def live(self) -> dict[str, ManifestEntry]:
        """Return the live entries by the names of their files; no file may be live twice."""
        found: dict[str, ManifestEntry] = {}
        for entry in self.entries():
            if entry.is_live:
                file = entry.data_file
                name = name_of(file.file_path)
                if file.is_deletion_vector:
                    name += f"@{name_of(file.referenced_data_file or '')}"
                assert name not in found
                found[name] = entry
        return found

    def names(self) -> set[str]:
        return set(self.live())

    def numbers(self) -> dict[str, int | None]:
        return {name: entry.sequence_number for name, entry in self.live().items()}

    def identity(self, name: str) -> RemovedDelete:
        """Return how a request names a live delete file."""
        return removed_delete(self.live()[name].data_file)

    def positions(self, of: str) -> list[int]:
        """Return the positions of the one vector of a data file."""
        (entry,) = (
            entry
            for entry in self.live().values()
            if entry.data_file.is_deletion_vector
            and entry.data_file.referenced_data_file == path_of(of)
        )
        file = entry.data_file
        offset, length = vector_range(file)
        blob = self.objects[file.file_path][offset : offset + length]
        return list(decode_vector_of(file, blob))

    @property
    def summary(self) -> dict[str, str]:
        return dict(self.snapshot.summary or {})


@dataclass(frozen=True)
class _Read:
    by_range: dict[ObjectRange, bytes]

    def find(self, wanted: ObjectRange) -> bytes | None:
        return self.by_range.get(wanted)
