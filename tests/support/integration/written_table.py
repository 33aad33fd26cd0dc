"""A table in a local folder that Frazil alone has written: no engine, no catalog, no committer.

Data files are written as Spark executors write them (`workers`), all else by the format code.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

from committer.iceberg.deletes.deletion_vector import DeletionVector
from committer.iceberg.deletes.deletion_vector_file import encode_deletion_vectors
from committer.iceberg.deletes.position_deletes import (
    POSITION_DELETE_SCHEMA,
    describe_position_deletes,
)
from committer.iceberg.entry.data_file import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
)
from committer.iceberg.manifest.manifest import decode_manifest
from committer.iceberg.manifest.manifest_list import (
    ManifestFile,
    decode_manifest_list,
    encode_manifest_file,
    encode_manifest_list,
)
from committer.iceberg.manifest.manifest_writer import (
    ManifestContext,
    encode_manifest,
    manifest_file,
)
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.metadata.new_table import new_table_metadata
from committer.iceberg.metadata.snapshot import MAIN, Snapshot, SnapshotRef
from committer.iceberg.metadata.summary import commit_summary
from committer.iceberg.metadata.table_metadata import parse_table_metadata, print_table_metadata
from committer.iceberg.schema.partition_spec import UNPARTITIONED, PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.schema_selection import select_fields
from committer.iceberg.schema.sort_order import UNSORTED, SortOrder
from committer.iceberg.updates.metadata_update import (
    AddSnapshot,
    SetSnapshotRef,
    Update,
    apply_updates,
)
from committer.iceberg.values.locations import metadata_file_location
from tests.support.iceberg.manifest_builders import added_entry
from tests.support.integration.readers import local
from tests.support.workers.write_target import Target, names, writer_of
from workers.arrow.arrow_schema import arrow_schema
from workers.arrow.arrow_types import is_writable

Row = dict[str, Any]

_SYNC = bytes(range(16))
_START_MS = 1_790_000_000_000
_ATTEMPT = UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
_EXISTING, _DELETED = ManifestEntryStatus.EXISTING, ManifestEntryStatus.DELETED


@dataclass(slots=True)
class WrittenTable:
    """The table as its last commit left it; every commit is on disk when it returns.

    `codec`: of the manifests that are written from now on, by its name in Avro.
    """

    folder: Path
    metadata: TableMetadata
    metadata_location: str = ""
    codec: str = "deflate"
    gzip: bool = False
    _numbers: count[int] = field(default_factory=lambda: count(1))
    _snapshot_ids: count[int] = field(default_factory=lambda: count(4000))

    @classmethod
    def create(
        cls,
        folder: Path,
        schema: Schema,
        *,
        format_version: int = 2,
        spec: PartitionSpec = UNPARTITIONED,
        sort_order: SortOrder = UNSORTED,
        properties: Mapping[str, str] | None = None,
    ) -> WrittenTable:
        metadata = new_table_metadata(
            table_uuid=UUID(int=hash(folder.name) & (2**64 - 1)),
            location=f"file:{folder}",
            schema=schema,
            partition_spec=spec,
            sort_order=sort_order,
            properties=properties or {},
            format_version=format_version,
            now_ms=_START_MS,
        )
        table = cls(folder, metadata)
        table._save(metadata)
        return table

    # --- Data files and delete files -------------------------------------------------------------

    def write(self, rows: Sequence[Row]) -> list[DataFile]:
        """Write one data file for each partition, by the table's schema and spec."""
        columns = arrow_schema(self.metadata.current_schema)
        # Parquet has other names for columns whose names it cannot hold.
        schema = self.metadata.current_schema
        fields = [field for field in schema.fields if is_writable(field.field_type)]
        pairs = zip(fields, columns, strict=True)
        arrays = [pa.array([row.get(a.name) for row in rows], b.type) for a, b in pairs]
        return self.write_batch(pa.RecordBatch.from_arrays(arrays, schema=columns))

    def write_batch(self, batch: pa.RecordBatch) -> list[DataFile]:
        metadata = self.metadata
        target = Target(
            metadata.location, metadata.current_schema, metadata.default_spec, metadata.properties
        )
        with writer_of(target, file_names=names(partition_id=next(self._numbers))) as writer:
            writer.write(batch)
            return list(writer.close())

    def position_deletes(self, positions: Mapping[str, Collection[int]], of: DataFile) -> DataFile:
        """Write a Parquet file of deleted positions, in the partition of a data file."""
        rows = [
            {"file_path": path, "pos": at}
            for path in sorted(positions)
            for at in sorted(positions[path])
        ]
        file = self._parquet_deletes(rows, POSITION_DELETE_SCHEMA, of)
        return describe_position_deletes(file, positions)

    def equality_deletes(self, rows: Sequence[Row], ids: Collection[int], of: DataFile) -> DataFile:
        """Write a Parquet file of deleted values, in the partition of a data file."""
        schema = select_fields(self.metadata.current_schema, ids)
        file = self._parquet_deletes(rows, schema, of)
        equality_ids = tuple(sorted(ids))
        return replace(file, content=DataFileContent.EQUALITY_DELETES, equality_ids=equality_ids)

    def _parquet_deletes(self, rows: Sequence[Row], schema: Schema, of: DataFile) -> DataFile:
        path = self.folder / "data" / f"{next(self._numbers):05d}-deletes.parquet"
        pq.write_table(pa.Table.from_pylist(rows, schema=arrow_schema(schema)), path)
        return DataFile(
            content=DataFileContent.POSITION_DELETES,
            file_path=f"file:{path}",
            partition=of.partition,
            spec_id=of.spec_id,
            record_count=len(rows),
            file_size_in_bytes=path.stat().st_size,
        )

    def deletion_vectors(
        self, positions: Sequence[tuple[DataFile, Iterable[int]]]
    ) -> Sequence[DataFile]:
        """Write one Puffin file with a vector for each data file."""
        path = self.folder / "data" / f"{next(self._numbers):05d}-deletes.puffin"
        encoded = encode_deletion_vectors(
            [(file, DeletionVector(found)) for file, found in positions],
            file_path=f"file:{path}",
            created_by="Frazil",
        )
        path.write_bytes(encoded.content)
        return encoded.delete_files

    # --- Commits ---------------------------------------------------------------------------------

    def append(self, rows: Sequence[Row], *, branch: str = MAIN) -> list[DataFile]:
        files = self.write(rows)
        self.commit(files, branch=branch)
        return files

    def commit(
        self,
        added: Sequence[DataFile],
        *,
        removed: Collection[str] = (),
        operation: str = "append",
        branch: str = MAIN,
    ) -> Snapshot:
        """Commit a snapshot that adds files and removes paths; one manifest for each kind."""
        draft = _Draft.of(self, branch)
        for content in ManifestContent:
            for spec_id in sorted({file.spec_id for file in added}):
                entries = [
                    added_entry(file, snapshot_id=draft.snapshot_id)
                    for file in added
                    if file.manifest_content == content and file.spec_id == spec_id
                ]
                if entries:
                    draft.rows.append(self._manifest(draft, entries, spec_id, content))
        draft.rows += self._kept(draft, set(removed))
        return self._land(draft, operation, branch, _counts(added))

    def update(self, *updates: Update) -> None:
        """Change the metadata alone."""
        self._save(self._changed(*updates))

    def _manifest(
        self,
        draft: _Draft,
        entries: Sequence[ManifestEntry],
        spec_id: int,
        content: ManifestContent,
    ) -> ManifestFile:
        metadata = self.metadata
        context = ManifestContext(
            metadata.format_version, metadata.current_schema, metadata.spec_by_id(spec_id), content
        )
        encoded = encode_manifest(entries, context, codec=self.codec, sync=_SYNC)
        path = self.folder / "metadata" / f"{_ATTEMPT}-m{next(self._numbers)}.avro"
        path.write_bytes(encoded.content)
        return manifest_file(
            encoded,
            context,
            manifest_path=f"file:{path}",
            snapshot_id=draft.snapshot_id,
            sequence_number=draft.sequence_number,
        )

    def _kept(self, draft: _Draft, removed: set[str]) -> list[ManifestFile]:
        """Return the manifests of the parent; those with a removed file are rewritten."""
        kept = []
        for row in self.manifests(draft.parent):
            entries = decode_manifest(self.read(row.manifest_path), manifest_file=row).entries
            live = [entry for entry in entries if entry.is_live]
            if removed & {entry.data_file.file_path for entry in live}:
                again = [_again(entry, removed, draft.snapshot_id) for entry in live]
                row = self._manifest(draft, again, row.partition_spec_id, row.content)
            kept.append(row)
        return kept

    def _land(
        self, draft: _Draft, operation: str, branch: str, counts: Mapping[str, int]
    ) -> Snapshot:
        version, next_row_id = self.metadata.format_version, self.metadata.next_row_id
        rows = draft.rows
        if next_row_id is not None:
            rows, draft.added_rows = _with_row_ids(rows, next_row_id)
        path = self.folder / "metadata" / f"snap-{draft.snapshot_id}-1-{_ATTEMPT}.avro"
        parent_id = None if draft.parent is None else draft.parent.snapshot_id
        path.write_bytes(
            encode_manifest_list(
                [encode_manifest_file(row, version) for row in rows],
                format_version=version,
                snapshot_id=draft.snapshot_id,
                parent_snapshot_id=parent_id,
                sequence_number=draft.sequence_number,
                first_row_id=next_row_id,
                sync=_SYNC,
                extra_metadata={},
            )
        )
        previous = None if draft.parent is None else draft.parent.summary
        snapshot = Snapshot(
            snapshot_id=draft.snapshot_id,
            parent_snapshot_id=parent_id,
            sequence_number=draft.sequence_number,
            timestamp_ms=self._now_ms,
            manifest_list=f"file:{path}",
            summary=commit_summary(operation, previous, counts),
            schema_id=self.metadata.current_schema_id,
            first_row_id=next_row_id,
            added_rows=draft.added_rows,
        )
        ref = replace(self.metadata.refs.get(branch, SnapshotRef(0)), snapshot_id=draft.snapshot_id)
        self.update(AddSnapshot(snapshot), SetSnapshotRef(branch, ref))
        return snapshot

    # --- The state of the table ------------------------------------------------------------------

    @property
    def _now_ms(self) -> int:
        return self.metadata.last_updated_ms + 60_000

    def _changed(self, *updates: Update) -> TableMetadata:
        return apply_updates(
            self.metadata, updates, base_location=self.metadata_location, now_ms=self._now_ms
        )

    def _save(self, metadata: TableMetadata) -> None:
        import gzip

        number = len(metadata.metadata_log)
        self.metadata, folder = metadata, f"file:{self.folder}/metadata"
        self.metadata_location = metadata_file_location(folder, number, _ATTEMPT, gzip=self.gzip)
        path, content = Path(local(self.metadata_location)), print_table_metadata(metadata)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(content) if self.gzip else content)

    def read(self, location: str) -> bytes:
        return Path(local(location)).read_bytes()

    def manifests(self, snapshot: Snapshot | None) -> tuple[ManifestFile, ...]:
        if snapshot is None or snapshot.manifest_list is None:
            return ()
        return decode_manifest_list(self.read(snapshot.manifest_list)).rows

    def live(self, content: ManifestContent | None = None) -> list[ManifestEntry]:
        """Return the live entries of main, of one kind or all."""
        return [
            entry
            for row in self.manifests(self.metadata.current_snapshot)
            if content in (None, row.content)
            for entry in decode_manifest(self.read(row.manifest_path), manifest_file=row).entries
            if entry.is_live
        ]

    def reload(self, metadata_location: str) -> None:
        """Continue with the metadata that another engine has committed."""
        self.metadata = parse_table_metadata(self.read(metadata_location))
        self.metadata_location = metadata_location


@dataclass(slots=True)
class _Draft:
    """A snapshot that is being made."""

    snapshot_id: int
    sequence_number: int
    parent: Snapshot | None
    rows: list[ManifestFile] = field(default_factory=list)
    added_rows: int | None = None

    @classmethod
    def of(cls, table: WrittenTable, branch: str) -> _Draft:
        metadata = table.metadata
        parent = metadata.branch_head(branch) or metadata.current_snapshot
        number = 0 if metadata.format_version == 1 else metadata.last_sequence_number + 1
        return cls(next(table._snapshot_ids), number, parent)


def _again(entry: ManifestEntry, removed: set[str], snapshot_id: int) -> ManifestEntry:
    if entry.data_file.file_path in removed:
        return replace(entry, status=_DELETED, snapshot_id=snapshot_id)
    return replace(entry, status=_EXISTING)


def _counts(added: Sequence[DataFile]) -> dict[str, int]:
    data = [file for file in added if file.content == DataFileContent.DATA]
    by_position = [file for file in added if file.content == DataFileContent.POSITION_DELETES]
    by_value = [file for file in added if file.content == DataFileContent.EQUALITY_DELETES]
    return {
        "added-data-files": len(data),
        "added-records": sum(file.record_count for file in data),
        "added-files-size": sum(file.file_size_in_bytes for file in added),
        "added-delete-files": len(added) - len(data),
        "added-position-deletes": sum(file.record_count for file in by_position),
        "added-equality-deletes": sum(file.record_count for file in by_value),
    }


def _with_row_ids(rows: Sequence[ManifestFile], start: int) -> tuple[list[ManifestFile], int]:
    """Give data manifests without one a first row id; return how many ids that took."""
    numbered, next_row_id = [], start
    for row in rows:
        if row.content == ManifestContent.DATA and row.first_row_id is None:
            row = replace(row, first_row_id=next_row_id)
            next_row_id += (row.added_rows_count or 0) + (row.existing_rows_count or 0)
        numbered.append(row)
    return numbered, next_row_id - start
