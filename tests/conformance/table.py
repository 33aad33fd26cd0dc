"""A table of a folder like the fixtures: what it is, read by Frazil, and what Java says of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from committer.errors import InvalidMetadataError
from committer.iceberg.entry.data_file import ManifestContent, ManifestEntry
from committer.iceberg.manifest.manifest import DecodedManifest, decode_manifest
from committer.iceberg.manifest.manifest_list import ManifestFile, decode_manifest_list
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.metadata.table_metadata import parse_table_metadata
from committer.iceberg.schema.partition_spec import PartitionSpec
from committer.iceberg.schema.schema import Schema


@dataclass(frozen=True, slots=True)
class ListedEntry:
    """An entry with what it has inherited, and the schema and spec of its manifest."""

    entry: ManifestEntry
    schema: Schema
    spec: PartitionSpec


class Table:
    """One table: its folder, and the facts of its `expected.json`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.expected: dict[str, Any] = json.loads((folder / "expected.json").read_bytes())
        self._lists: dict[int, tuple[ManifestFile, ...]] = {}
        self._manifests: dict[ManifestFile, DecodedManifest] = {}

    @property
    def name(self) -> str:
        return self.folder.name

    @cached_property
    def prefix(self) -> str:
        """The prefix of all locations in the table's files, up to the table's own folder."""
        location = str(self.expected["metadata_location"])
        start, found, _ = location.partition(f"/{self.name}/")
        if not found:
            raise ValueError(f"{self.name}: its metadata file lies in another folder: {location}")
        return start + found

    def path(self, location: str) -> Path:
        """Return the local file of a location in the table's files."""
        if not location.startswith(self.prefix):
            raise ValueError(f"{self.name}: not a location of this table: {location}")
        return self.folder / location.removeprefix(self.prefix)

    def read(self, location: str) -> bytes:
        return self.path(location).read_bytes()

    @cached_property
    def metadata(self) -> TableMetadata:
        return parse_table_metadata(self.read(self.expected["metadata_location"]))

    def rows(self, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
        """Return the manifests of a snapshot."""
        found = self._lists.get(snapshot.snapshot_id)
        if found is None:
            found = self._lists[snapshot.snapshot_id] = self._rows(snapshot)
        return found

    def _rows(self, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
        if snapshot.manifest_list is not None:
            return decode_manifest_list(self.read(snapshot.manifest_list)).rows
        return tuple(self._embedded(path, snapshot) for path in snapshot.manifests or ())

    def _embedded(self, path: str, snapshot: Snapshot) -> ManifestFile:
        return ManifestFile(
            manifest_path=path,
            manifest_length=self.path(path).stat().st_size,
            partition_spec_id=0,
            added_snapshot_id=snapshot.snapshot_id,
            added_files_count=None,
            existing_files_count=None,
            deleted_files_count=None,
            added_rows_count=None,
            existing_rows_count=None,
            deleted_rows_count=None,
        )

    @cached_property
    def manifest_rows(self) -> dict[str, ManifestFile]:
        """The first row of each manifest that a snapshot of the table lists."""
        rows: dict[str, ManifestFile] = {}
        for snapshot in self.metadata.snapshots:
            rows = {row.manifest_path: row for row in self.rows(snapshot)} | rows
        return rows

    def manifest(self, row: ManifestFile) -> DecodedManifest:
        """Return a manifest with the values that its entries inherit from this row."""
        found = self._manifests.get(row)
        if found is None:
            content = self.read(row.manifest_path)
            found = self._manifests[row] = decode_manifest(content, manifest_file=row)
        return found

    def readable(self, row: ManifestFile) -> DecodedManifest | None:
        """Return the manifest; None for one of fixed partitions that is refused, as is documented.

        Each manifest answers for itself: what else a table holds is checked all the same.
        """
        try:
            return self.manifest(row)
        except InvalidMetadataError:
            if not self.has_fixed_values(row):
                raise
            return None

    def refused_paths(self) -> set[str]:
        """Return the files of refused manifests, by Java's description of them."""
        said = self.expected["manifest_entries"]
        refused = (p for p, row in self.manifest_rows.items() if self.readable(row) is None)
        return {entry["file"]["file_path"] for path in refused for entry in said[path]}

    def live(self, content: ManifestContent) -> Iterator[ListedEntry]:
        """Yield the live files of the current snapshot."""
        snapshot = self.metadata.current_snapshot
        for row in self.rows(snapshot) if snapshot is not None else ():
            if row.content == content:
                decoded = self.readable(row)
                if decoded is None:
                    continue
                for entry in decoded.entries:
                    if entry.is_live:
                        yield ListedEntry(entry, decoded.schema, decoded.spec)

    def has_fixed_values(self, row: ManifestFile) -> bool:
        """Return whether a manifest's spec partitions by the identity of a fixed column.

        Iceberg Java 1.12 writes such manifests so that they are no valid Avro: the value has a
        length in front that their own schema does not announce. Only Java reads them.
        """
        return any(
            " fixed[" in spec["partition_type"]
            for spec in self.expected["partition_specs"]
            if spec["spec-id"] == row.partition_spec_id
        )
