"""Tables with any history: real manifests and lists, made without a committer or an engine.

Each snapshot is known as well as what it is for a reader: the set of its live paths.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from committer.iceberg.entry.data_file import (
    DataFile,
    DataFileContent,
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
from committer.iceberg.metadata.snapshot import MAIN, Snapshot, SnapshotRef
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.updates.metadata_update import (
    AddSnapshot,
    SetSnapshotRef,
    SetStatistics,
    Update,
    apply_updates,
)
from committer.plan.cleanup.reachability import Gone, Unreachable, find_unreachable
from committer.plan.ledger.state import TableState
from committer.ports.pointer_swap import LoadedTable
from committer.request.table_identifier import TableIdentifier
from tests.support.builders.table_builders import build_metadata
from tests.support.iceberg.metadata_builders import build_statistics

SYNC = bytes(range(16))
START_MS = 1_800_000_000_000
# An entry as the history keeps it: path, adding snapshot, sequence number, is it a vector.
Entry = tuple[str, int, int, bool]


@dataclass
class History:
    """`objects` holds manifests and lists; `live[snapshot id]` its manifests with their entries."""

    metadata: TableMetadata
    now_ms: int = START_MS
    objects: dict[str, bytes] = field(default_factory=dict)
    live: dict[int, dict[ManifestFile, tuple[Entry, ...]]] = field(default_factory=dict)
    listed: dict[int, tuple[ManifestFile, ...]] = field(default_factory=dict)
    reads: int = 0
    _ids: count[int] = field(default_factory=lambda: count(1))
    _names: count[int] = field(default_factory=count)

    @classmethod
    def empty(
        cls, properties: Mapping[str, str] | None = None, *, format_version: int = 2
    ) -> History:
        metadata = build_metadata(
            location="memory://warehouse/db/flights",
            properties=properties,
            format_version=format_version,
        )
        return cls(replace(metadata, last_updated_ms=START_MS))

    @property
    def state(self) -> TableState:
        identifier = TableIdentifier.parse("db.flights")
        return TableState.of(LoadedTable(identifier, self.metadata, "memory://none"))

    def apply(self, *updates: Update) -> None:
        self.metadata = apply_updates(
            self.metadata, updates, base_location=None, now_ms=self.now_ms
        )

    def commit(
        self,
        *,
        added: Iterable[str] = (),
        deleted: Iterable[str] = (),
        merged: int = 0,
        branch: str | None = MAIN,
        parent: int | None = None,
        summary: Mapping[str, str] | None = None,
        vectors: bool = False,
        step_ms: int = 1_000,
    ) -> Snapshot:
        """Add a snapshot: one manifest of the added files, the manifests that hold deleted ones
        rewritten, the youngest `merged` ones merged. `branch=None`: staged, no ref moves.
        """
        self.now_ms += step_ms
        head = self.metadata.branch_head(branch or MAIN) or self.metadata.current_snapshot
        parent_id = parent if parent is not None else head.snapshot_id if head else None
        snapshot_id = next(self._ids)
        number = 0 if self.metadata.format_version == 1 else self.metadata.last_sequence_number + 1
        gone = set(deleted)
        held: dict[ManifestFile, tuple[Entry, ...]] = {}
        fresh = tuple((path, snapshot_id, number, vectors) for path in added)
        if fresh:
            held |= self._manifest(snapshot_id, number, added=fresh)
        before = list(self.live.get(parent_id or 0, {}).items())
        kept: list[tuple[ManifestFile, tuple[Entry, ...]]] = []
        for row, entries in before:
            hit = tuple(one for one in entries if one[0] in gone)
            if hit:
                rest = tuple(one for one in entries if one[0] not in gone)
                kept += self._manifest(snapshot_id, number, kept=rest, dead=hit).items()
            else:
                kept.append((row, entries))
        # Its own manifests are not merged at once, so that they keep its deletes.
        kind = [
            one
            for one in kept
            if one[1]
            and one[0].added_snapshot_id != snapshot_id
            and not any(each[3] for each in one[1])
        ]
        if merged > 1 and len(kind) >= merged:
            chosen = kind[:merged]
            entries = tuple(each for _, some in chosen for each in some)
            kept = [one for one in kept if one not in chosen]
            held |= self._manifest(snapshot_id, number, kept=entries)
        held |= dict(kept)
        return self._add(snapshot_id, parent_id, number, held, branch, summary)

    def again(self, snapshot_id: int) -> Snapshot:
        """Add the very manifests of an old snapshot to the head, as who adopts them would do."""
        self.now_ms += 1_000
        head, own = self.metadata.current_snapshot, next(self._ids)
        parent_id = head.snapshot_id if head else None
        number = self.metadata.last_sequence_number + 1
        held = {
            replace(row, added_snapshot_id=own, sequence_number=number): entries
            for row, entries in self.live[snapshot_id].items()
        }
        held |= self.live[parent_id or 0]
        return self._add(own, parent_id, number, held, MAIN, None)

    def _manifest(
        self,
        snapshot_id: int,
        number: int,
        *,
        added: tuple[Entry, ...] = (),
        kept: tuple[Entry, ...] = (),
        dead: tuple[Entry, ...] = (),
    ) -> dict[ManifestFile, tuple[Entry, ...]]:
        statuses = (
            (ManifestEntryStatus.ADDED, added),
            (ManifestEntryStatus.EXISTING, kept),
            (ManifestEntryStatus.DELETED, dead),
        )
        is_vectors = any(one[3] for one in (*added, *kept, *dead))
        metadata = self.metadata
        context = ManifestContext(
            metadata.format_version,
            metadata.current_schema,
            metadata.default_spec,
            ManifestContent.DELETES if is_vectors else ManifestContent.DATA,
        )
        encoded = encode_manifest(
            (
                self._entry(status, one, snapshot_id)
                for status, entries in statuses
                for one in entries
            ),
            context,
            sync=SYNC,
        )
        path = f"{metadata.location}/metadata/m{next(self._names)}.avro"
        self.objects[path] = encoded.content
        row = manifest_file(
            encoded,
            context,
            manifest_path=path,
            snapshot_id=snapshot_id,
            sequence_number=number,
        )
        if metadata.format_version >= 3 and not is_vectors:
            row = replace(row, first_row_id=0)
        return {row: (*added, *kept)}

    def _entry(self, status: ManifestEntryStatus, entry: Entry, snapshot_id: int) -> ManifestEntry:
        path, by, number, is_vector = entry
        is_added = status == ManifestEntryStatus.ADDED
        is_deleted = status == ManifestEntryStatus.DELETED
        file = DataFile(file_path=path, record_count=1, file_size_in_bytes=1)
        if is_vector:
            # One Puffin file for the vectors of many data files: `<puffin>#<n>` names one of them.
            puffin, _, offset = path.partition("#")
            file = replace(
                file,
                content=DataFileContent.POSITION_DELETES,
                file_format="PUFFIN",
                file_path=puffin,
                referenced_data_file=f"{path}.parquet",
                content_offset=int(offset or 0),
                content_size_in_bytes=1,
            )
        first = self.metadata.format_version == 1
        return ManifestEntry(
            status,
            snapshot_id if is_deleted else None if is_added and not first else by,
            None if is_added else number,
            None if is_added else number,
            file,
        )

    def _add(
        self,
        snapshot_id: int,
        parent_id: int | None,
        number: int,
        held: dict[ManifestFile, tuple[Entry, ...]],
        branch: str | None,
        summary: Mapping[str, str] | None,
    ) -> Snapshot:
        version = self.metadata.format_version
        location = f"{self.metadata.location}/metadata/snap-{snapshot_id}.avro"
        row_id = 0 if version >= 3 else None
        self.objects[location] = encode_manifest_list(
            [encode_manifest_file(row, version) for row in held],
            format_version=version,
            snapshot_id=snapshot_id,
            parent_snapshot_id=parent_id,
            sequence_number=number,
            first_row_id=row_id,
            sync=SYNC,
            extra_metadata={},
        )
        snapshot = Snapshot(
            snapshot_id=snapshot_id,
            parent_snapshot_id=parent_id,
            sequence_number=number,
            timestamp_ms=self.now_ms,
            manifest_list=location,
            summary={"operation": "append", **(summary or {})},
            first_row_id=row_id if row_id is None else (self.metadata.next_row_id or 0),
            added_rows=None if row_id is None else 0,
        )
        # A manifest without live entries is listed by the snapshot that wrote it, and dropped then.
        self.live[snapshot_id] = {row: entries for row, entries in held.items() if entries}
        self.listed[snapshot_id] = tuple(held)
        self.apply(AddSnapshot(snapshot))
        if branch is not None:
            known = self.metadata.refs.get(branch)
            ref = replace(known, snapshot_id=snapshot_id) if known else SnapshotRef(snapshot_id)
            self.apply(SetSnapshotRef(branch, ref))
        return snapshot

    def tag(self, name: str, snapshot_id: int, *, ref_age_ms: int | None = None) -> None:
        ref = SnapshotRef(snapshot_id, "tag", max_ref_age_ms=ref_age_ms)
        self.apply(SetSnapshotRef(name, ref))

    def branch(
        self,
        name: str,
        snapshot_id: int,
        *,
        keep: int | None = None,
        age_ms: int | None = None,
        ref_age_ms: int | None = None,
    ) -> None:
        ref = SnapshotRef(snapshot_id, "branch", keep, age_ms, ref_age_ms)
        self.apply(SetSnapshotRef(name, ref))

    def statistics(self, snapshot_id: int) -> str:
        path = f"{self.metadata.location}/metadata/{snapshot_id}.stats"
        self.objects[path] = b"statistics"
        self.apply(SetStatistics(build_statistics(snapshot_id, path)))
        return path

    def paths(self, snapshot_id: int) -> set[str]:
        """Return the files that a reader of the snapshot opens: data files and Puffin files."""
        return {
            one[0].partition("#")[0] if one[3] else one[0]
            for entries in self.live[snapshot_id].values()
            for one in entries
        }

    def needed(self) -> set[str]:
        """Return everything that the table's snapshots need: lists, manifests and files."""
        found: set[str] = set()
        for snapshot in self.metadata.snapshots:
            found.add(snapshot.manifest_list or "")
            found |= {row.manifest_path for row in self.listed[snapshot.snapshot_id]}
            found |= self.paths(snapshot.snapshot_id)
        return found

    def find_unreachable(self, gone: Gone, *, named: Iterable[str] = ()) -> Unreachable:
        """Answer what the search asks for out of `objects`."""
        reading = find_unreachable(self.metadata, gone, named=set(named))
        try:
            locations = next(reading)
            while True:
                self.reads += len(locations)
                locations = reading.send([self.objects.get(each) for each in locations])
        except StopIteration as done:
            found: Unreachable = done.value
            return found
