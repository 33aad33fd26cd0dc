"""The tables of a benchmark: one catalog file of Frazil's layout for each system, one empty table
for each run, so that all begin alike. And what a reader that is not ours finds in them afterwards.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from bench import workload
from committer.catalog.sql.sql_catalog import SqlCatalog
from committer.iceberg.metadata.table_metadata import new_table_metadata
from committer.iceberg.schema.sort_order import UNSORTED
from committer.iceberg.values.locations import metadata_file_location, metadata_folder
from committer.ports.pointer_swap import LoadedTable
from committer.request.table_identifier import TableIdentifier
from committer.storage.disk.local import LocalStorage

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table.metadata import TableMetadata

NAMESPACE = "db"


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of one system. `catalog` is the catalog's name inside the file."""

    folder: Path
    catalog: str

    @property
    def catalog_file(self) -> Path:
        return self.folder / "catalog.db"

    @property
    def warehouse(self) -> Path:
        return self.folder / "warehouse"

    def location(self, name: str) -> str:
        return f"file://{self.warehouse}/{NAMESPACE}/{name}"

    def create(
        self, name: str, properties: Mapping[str, str] | None = None, *, format_version: int = 2
    ) -> None:
        """Make an empty table."""
        asyncio.run(self._create(name, properties or {}, format_version))

    async def _create(self, name: str, properties: Mapping[str, str], format_version: int) -> None:
        location = self.location(name)
        metadata = new_table_metadata(
            table_uuid=uuid4(),
            location=location,
            schema=workload.schema(),
            partition_spec=workload.partition_spec(),
            sort_order=UNSORTED,
            properties=properties,
            format_version=format_version,
            now_ms=time.time_ns() // 1_000_000,
        )
        first = metadata_file_location(metadata_folder(location, {}), 0, uuid4())
        catalog = await self._open()
        try:
            await catalog.create_namespace((NAMESPACE,))
            await catalog.create_table(LoadedTable(self._identifier(name), metadata, first))
        finally:
            await catalog.close()

    def metadata_location(self, name: str) -> str:
        """Return the location of the table's current metadata."""
        return asyncio.run(self._current(name))

    async def _current(self, name: str) -> str:
        catalog = await self._open()
        try:
            return await catalog.current_location(self._identifier(name))
        finally:
            await catalog.close()

    async def _open(self) -> SqlCatalog:
        uri = f"sqlite:///{self.catalog_file}"
        return await SqlCatalog.open(uri=uri, name=self.catalog, storage=LocalStorage())

    def _identifier(self, name: str) -> TableIdentifier:
        return TableIdentifier((NAMESPACE,), name)

    def register(self, name: str, metadata_location: str) -> str:
        """Make a table of metadata that another system has written."""
        from pyiceberg.catalog.sql import SqlCatalog as ForeignCatalog

        self.create(f"{name}_before")  # makes the catalog file and the namespace
        catalog = ForeignCatalog(self.catalog, uri=f"sqlite:///{self.catalog_file}")
        catalog.register_table((NAMESPACE, name), metadata_location)
        catalog.close()
        return name

    def metadata_size_bytes(self, name: str) -> int:
        """Return the size of the current metadata file."""
        return _path(self.metadata_location(name)).stat().st_size

    def metadata_bytes(self, name: str) -> dict[str, int]:
        """Return the bytes of all files beside the data, by kind."""
        folder = _path(self.metadata_location(name)).parent
        found = {"metadata_json": 0, "manifest_list": 0, "manifest": 0}
        for path in folder.iterdir():
            kind = "manifest_list" if path.name.startswith("snap-") else "manifest"
            kind = "metadata_json" if path.name.endswith(".metadata.json") else kind
            found[kind] += path.stat().st_size
        return found

    def count(self, name: str) -> Counted:
        """Count the files in the manifests of the table with PyIceberg."""
        return count_files(self.metadata_location(name))

    def live(self, name: str) -> Live:
        """Count what is live in the table with PyIceberg."""
        return count_live(self.metadata_location(name))


def _path(location: str) -> Path:
    return Path("/" + location.removeprefix("file:").lstrip("/"))


@dataclass(frozen=True, slots=True)
class Counted:
    """Live data files of a table, as a foreign reader counts them."""

    files: int
    distinct: int
    snapshots: int
    manifests: int

    def proves(self, landed: int) -> bool:
        return self.files == self.distinct == landed


def count_files(metadata_location: str) -> Counted:
    from pyiceberg.io import load_file_io
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(metadata_location)
    head = table.current_snapshot()
    if head is None:
        return Counted(0, 0, 0, 0)
    io = load_file_io(location=metadata_location)
    manifests = head.manifests(io)
    paths = [
        entry.data_file.file_path
        for manifest in manifests
        for entry in manifest.fetch_manifest_entry(io, discard_deleted=True)
    ]
    return Counted(len(paths), len(set(paths)), len(table.metadata.snapshots), len(manifests))


@dataclass(frozen=True, slots=True)
class Live:
    """Live files, the rows that position deletes name, and the snapshots that overwrite."""

    data_files: int
    delete_files: int
    deleted_rows: int
    overwrites: int


def count_live(metadata_location: str) -> Live:
    """Count with PyIceberg, which is not ours."""
    from pyiceberg.manifest import DataFileContent

    metadata, files = _live_files(metadata_location)
    data = [one for one in files if one.content == DataFileContent.DATA]
    positions = [one for one in files if one.content == DataFileContent.POSITION_DELETES]
    labels = [one.summary.operation.value for one in metadata.snapshots if one.summary]
    return Live(
        len(data),
        len(files) - len(data),
        sum(one.record_count for one in positions),
        labels.count("overwrite"),
    )


def live_paths(metadata_location: str) -> set[str]:
    """Return the paths of the live files, as PyIceberg finds them."""
    return {one.file_path for one in _live_files(metadata_location)[1]}


def _live_files(metadata_location: str) -> tuple[TableMetadata, list[DataFile]]:
    from pyiceberg.io import load_file_io
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(metadata_location)
    head = table.current_snapshot()
    assert head is not None
    io = load_file_io(location=metadata_location)
    return table.metadata, [
        entry.data_file
        for manifest in head.manifests(io)
        for entry in manifest.fetch_manifest_entry(io, discard_deleted=True)
    ]
