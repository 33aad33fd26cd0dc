"""A snapshot that an answer describes, written as a snapshot of Frazil's table.

The inverse of `told`: manifests in the order of the list, each entry with its numbers and row id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from committer.iceberg.entry.data_file import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
)
from committer.iceberg.manifest.manifest_list import (
    ManifestFile,
    encode_manifest_file,
    encode_manifest_list,
)
from committer.iceberg.manifest.manifest_writer import (
    ManifestContext,
    encode_manifest,
    manifest_file,
)
from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.metadata.table_metadata import TableMetadata
from tests.support.builders.request_builders import SYNC


@dataclass(frozen=True, slots=True)
class WrittenSnapshot:
    """`objects`: the manifest list and the manifests, by location."""

    snapshot: Snapshot
    objects: dict[str, bytes]


@dataclass(frozen=True, slots=True)
class History:
    """`snapshots`: all that the table has had, by id, the newest last. `added`: the snapshot that
    has added a file, by the file's name.
    """

    snapshots: Mapping[int, Snapshot]
    added: Mapping[str, int]

    def snapshot_id(self, sequence_number: int, names: Iterable[str]) -> int:
        """Return the snapshot of a sequence number. Version 1 has none: the newest of these files.

        Errors: `StopIteration` for a number that no snapshot has.
        """
        if sequence_number == 0:
            return max(self.added[name] for name in names)
        snapshots = reversed(list(self.snapshots.values()))
        return next(one.snapshot_id for one in snapshots if one.sequence_number == sequence_number)


@dataclass(frozen=True, slots=True)
class SnapshotWriter:
    """`files`: those of the table, by name."""

    metadata: TableMetadata
    files: Mapping[str, DataFile]
    history: History
    _objects: dict[str, bytes] = field(default_factory=dict)

    def snapshot(
        self, described: Mapping[str, Any], *, snapshot_id: int, parent_id: int | None
    ) -> WrittenSnapshot:
        """Return the snapshot of an answer, without its time."""
        rows = [
            self._manifest(one, f"{snapshot_id}-m{place}", snapshot_id)
            for place, one in enumerate(described["manifests"])
        ]
        location = f"{self.metadata.location}/metadata/snap-{snapshot_id}.avro"
        snapshot = Snapshot(
            snapshot_id=snapshot_id,
            parent_snapshot_id=parent_id,
            sequence_number=described["sequence-number"],
            timestamp_ms=0,
            manifest_list=location,
            summary={"operation": described["operation"], **described["summary"]},
            schema_id=self.metadata.current_schema_id,
            first_row_id=described.get("first-row-id"),
            added_rows=described.get("added-rows"),
        )
        self._objects[location] = self._list(rows, snapshot)
        return WrittenSnapshot(snapshot, self._objects)

    def _list(self, rows: Sequence[ManifestFile], snapshot: Snapshot) -> bytes:
        version = self.metadata.format_version
        return encode_manifest_list(
            [encode_manifest_file(row, version) for row in rows],
            format_version=version,
            snapshot_id=snapshot.snapshot_id,
            parent_snapshot_id=snapshot.parent_snapshot_id,
            sequence_number=snapshot.sequence_number,
            first_row_id=snapshot.first_row_id,
            sync=SYNC,
            extra_metadata={},
        )

    def _manifest(self, row: Mapping[str, Any], name: str, snapshot_id: int) -> ManifestFile:
        content = ManifestContent[row["content"].upper()]
        spec = self.metadata.spec_by_id(row["spec"])
        context = ManifestContext(
            self.metadata.format_version, self.metadata.current_schema, spec, content
        )
        names = [entry[1] for entry in row["entries"]]
        number = row["sequence-number"]
        added_by = snapshot_id if row["own"] else self.history.snapshot_id(number, names)
        entries = [self._entry(one, snapshot_id, added_by) for one in row["entries"]]
        encoded = encode_manifest(entries, context, sync=SYNC)
        path = f"{self.metadata.location}/metadata/{name}.avro"
        self._objects[path] = encoded.content
        listed = manifest_file(
            encoded,
            context,
            manifest_path=path,
            snapshot_id=added_by,
            sequence_number=number,
        )
        lowest, first_row_id = row["min-sequence-number"], row.get("first-row-id")
        return replace(listed, min_sequence_number=lowest, first_row_id=first_row_id)

    def _entry(self, entry: Sequence[Any], snapshot_id: int, added_by: int) -> ManifestEntry:
        status, name, own, data_number, file_number, first_row_id = entry
        file = self.files[name]
        if file.content == 0:
            file = replace(file, first_row_id=first_row_id)
        if own:
            by = snapshot_id
        elif status == "deleted":
            by = added_by
        else:
            by = self.history.snapshot_id(file_number, [name])
        kind = ManifestEntryStatus[status.upper()]
        return ManifestEntry(kind, by, data_number, file_number, file)
