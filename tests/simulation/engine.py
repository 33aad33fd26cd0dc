"""One attempt of another engine: from a table as it was loaded to a swap, by Iceberg's rules.

Reads and writes real manifests. The changes that engines make are in `foreign.py`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from committer.iceberg.entry.data_file import DataFile, ManifestContent, ManifestEntry
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
from committer.iceberg.metadata.snapshot import MAIN, Snapshot, SnapshotRef
from committer.iceberg.metadata.summary import commit_summary
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.updates.metadata_update import (
    AddSnapshot,
    SetSnapshotRef,
    Update,
    apply_updates,
)
from committer.iceberg.updates.requirements_of import requirements_of_update
from committer.iceberg.values.locations import (
    manifest_list_location,
    manifest_location,
    metadata_file_location,
    metadata_folder,
    metadata_version,
)
from committer.ports.pointer_swap import Committed, Conflict, LoadedTable, Rejected, Swap, Unknown
from committer.ports.storage import NewObject
from tests.simulation.ports import Ports
from tests.simulation.producers import build_data_file, write_files

SYNC = bytes(range(16))
NewManifest = tuple[ManifestFile, NewObject]


@dataclass(frozen=True, slots=True)
class Change:
    """The updates of one attempt, and the objects to write before. `finish`: the engine's own last
    step, from the base and the updated metadata, where the engine is not Iceberg Java.
    """

    updates: tuple[Update, ...]
    objects: tuple[NewObject, ...] = ()
    files: tuple[DataFile, ...] = ()
    finish: Callable[[TableMetadata, TableMetadata], TableMetadata] | None = None


class Worker:
    """One attempt of an engine on one base."""

    def __init__(self, ports: Ports, base: LoadedTable, chance: random.Random) -> None:
        self.ports = ports
        self.base = base
        self.chance = chance
        self.commit_uuid = ports.world.uuid()

    @property
    def metadata(self) -> TableMetadata:
        return self.base.metadata

    @property
    def folder(self) -> str:
        return metadata_folder(self.metadata.location, self.metadata.properties)

    async def swap(self, change: Change) -> LoadedTable | None:
        """Write everything and swap. None: it has not landed, as far as can be told."""
        ports, base = self.ports, self.base
        metadata = apply_updates(
            base.metadata,
            change.updates,
            base_location=base.metadata_location,
            now_ms=ports.world.now_ms(),
        )
        if change.finish is not None:
            metadata = change.finish(base.metadata, metadata)
        location = metadata_file_location(
            self.folder, metadata_version(base.metadata_location) + 1, ports.world.uuid()
        )
        requirements = requirements_of_update(base.metadata, change.updates)
        swap = Swap(base, requirements, change.updates, metadata, location)
        await write_files(ports, change.files)
        await ports.storage.create((*change.objects, *ports.catalog.objects_before(swap)))
        match await ports.catalog.swap(swap):
            case Committed(table):
                return table
            case Unknown():
                return await self._look_up(location)
            case Conflict() | Rejected():
                return None

    async def _look_up(self, location: str) -> LoadedTable | None:
        """Return the table if the own metadata is or was current: Iceberg's status check. Not where
        the catalog names the files: what has become of it is not known then.
        """
        table = await self.ports.catalog.load(self.base.identifier)
        log = [entry.metadata_file for entry in table.metadata.metadata_log]
        return table if location in (*log, table.metadata_location) else None

    # --- Reading ---

    async def rows(self, branch: str = MAIN) -> tuple[ManifestFile, ...]:
        """Return the manifests of a branch's head."""
        head = self.metadata.branch_head(branch)
        if head is None or head.manifest_list is None:
            return ()
        return await self.rows_of(head)

    async def rows_of(self, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
        content = await self.ports.storage.get(snapshot.manifest_list or "")
        return decode_manifest_list(content).rows

    async def entries(self, row: ManifestFile) -> tuple[ManifestEntry, ...]:
        """Return the entries of a manifest, with all that they inherit."""
        content = await self.ports.storage.get(row.manifest_path)
        return decode_manifest(content, manifest_file=row).entries

    async def named_by(self, snapshots: Sequence[Snapshot]) -> set[str]:
        """Return every file that these snapshots need."""
        named: set[str] = set()
        for snapshot in snapshots:
            named.add(snapshot.manifest_list or "")
            for row in await self.rows_of(snapshot):
                if row.manifest_path in named:
                    continue
                named.add(row.manifest_path)
                named.update(
                    entry.data_file.file_path for entry in await self.entries(row) if entry.is_live
                )
        return named

    # --- Writing ---

    def new_file(self, *, rows: int) -> DataFile:
        return build_data_file(self.metadata, self.ports.world.uuid(), "foreign", rows=rows)

    def manifest(
        self,
        entries: Sequence[ManifestEntry],
        number: int,
        spec_id: int,
        snapshot_id: int,
        content: ManifestContent = ManifestContent.DATA,
    ) -> NewManifest:
        """Encode a manifest of these entries, with its row."""
        metadata = self.metadata
        context = ManifestContext(
            metadata.format_version,
            metadata.current_schema,
            metadata.spec_by_id(spec_id),
            content,
        )
        path = manifest_location(self.folder, self.commit_uuid, number)
        if metadata.format_version == 1:
            entries = [
                replace(entry, snapshot_id=entry.snapshot_id or snapshot_id) for entry in entries
            ]
        encoded = encode_manifest(entries, context, sync=SYNC)
        row = manifest_file(
            encoded,
            context,
            manifest_path=path,
            snapshot_id=snapshot_id,
            sequence_number=self.next_number,
        )
        return row, NewObject(path, encoded.content)

    @property
    def next_number(self) -> int:
        metadata = self.metadata
        return 0 if metadata.format_version == 1 else metadata.last_sequence_number + 1

    def snapshot(
        self,
        operation: str,
        counts: dict[str, int],
        manifests: Sequence[NewManifest],
        kept: Sequence[ManifestFile],
        snapshot_id: int,
    ) -> tuple[Snapshot, NewObject]:
        """Build a snapshot of new and kept manifests, and its manifest list."""
        metadata, parent = self.metadata, self.metadata.current_snapshot
        rows = [row for row, _ in manifests] + list(kept)
        first_row_id = next_row_id = metadata.next_row_id
        if next_row_id is not None:
            for position, row in enumerate(rows):
                if row.first_row_id is None and row.content is ManifestContent.DATA:
                    rows[position] = replace(row, first_row_id=next_row_id)
                    next_row_id += (row.existing_rows_count or 0) + (row.added_rows_count or 0)
        location = manifest_list_location(self.folder, snapshot_id, 1, self.commit_uuid)
        content = encode_manifest_list(
            [encode_manifest_file(row, metadata.format_version) for row in rows],
            format_version=metadata.format_version,
            snapshot_id=snapshot_id,
            parent_snapshot_id=parent.snapshot_id if parent else None,
            sequence_number=self.next_number,
            first_row_id=first_row_id,
            sync=SYNC,
            extra_metadata={},
        )
        snapshot = Snapshot(
            snapshot_id=snapshot_id,
            parent_snapshot_id=parent.snapshot_id if parent else None,
            sequence_number=self.next_number,
            timestamp_ms=max(self.ports.world.now_ms(), metadata.last_updated_ms),
            manifest_list=location,
            summary=commit_summary(operation, parent.summary if parent else None, counts),
            schema_id=metadata.current_schema_id,
            first_row_id=first_row_id,
            added_rows=None
            if next_row_id is None or first_row_id is None
            else next_row_id - first_row_id,
        )
        return snapshot, NewObject(location, content)

    def change(
        self,
        snapshot: tuple[Snapshot, NewObject],
        manifests: Sequence[NewManifest],
        files: Sequence[DataFile],
    ) -> Change:
        added, manifest_list = snapshot
        ref = self.metadata.refs.get(MAIN)
        head = (
            replace(ref, snapshot_id=added.snapshot_id)
            if ref
            else SnapshotRef(added.snapshot_id, "branch")
        )
        return Change(
            (AddSnapshot(added), SetSnapshotRef(MAIN, head)),
            (*(written for _, written in manifests), manifest_list),
            tuple(files),
        )

    def new_snapshot_id(self) -> int:
        return self.ports.world.uuid().int & (2**62 - 1)
