"""The contents of a table, by three readers that share no code: ours, PyIceberg and DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
from pyiceberg.table import StaticTable

from committer.iceberg.manifest.manifest import decode_manifest
from committer.iceberg.manifest.manifest_list import decode_manifest_list
from committer.ports.pointer_swap import LoadedTable
from tests.support.integration.duckdb_iceberg import duckdb_with_iceberg
from tests.support.integration.real_harness import RealHarness

_SCHEME = "file:"


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A live data file with what it has inherited."""

    path: str
    record_count: int
    snapshot_id: int
    sequence_number: int


@dataclass(frozen=True, slots=True)
class Contents:
    """A table in a few numbers that change with every row lost or doubled."""

    files: int
    distinct_files: int
    rows: int
    distinct_ids: int
    sum_of_ids: int


def expected(files: int, ids: Sequence[int]) -> Contents:
    return Contents(files, files, len(ids), len(set(ids)), sum(ids))


async def seen_by_all(harness: RealHarness, name: str) -> dict[str, Contents]:
    """Return the table's contents by reader. Rows are really read from the data files."""
    table = await harness.load(name)
    live = live_files(table)
    return {
        "PyIceberg": seen_by_pyiceberg(table),
        "DuckDB": seen_by_duckdb(table),
        "Frazil": _by_manifests(live),
    }


def live_files(table: LoadedTable, read: Callable[[str], bytes] | None = None) -> list[LiveFile]:
    """Return all live data files of main, read back through manifest list and manifests."""
    read = read or _read
    head = table.metadata.current_snapshot
    if head is None or head.manifest_list is None:
        return []
    found = []
    for row in decode_manifest_list(read(head.manifest_list)).rows:
        for entry in decode_manifest(read(row.manifest_path), manifest_file=row).entries:
            if entry.is_live:
                assert entry.snapshot_id is not None and entry.sequence_number is not None
                file = entry.data_file
                found.append(
                    LiveFile(
                        local(file.file_path),
                        file.record_count,
                        entry.snapshot_id,
                        entry.sequence_number,
                    )
                )
    return found


def seen_by_pyiceberg(table: LoadedTable, properties: Mapping[str, str] | None = None) -> Contents:
    """Return the contents that PyIceberg sees. `properties`: how it reaches the storage."""
    scan = StaticTable.from_metadata(table.metadata_location, dict(properties or {})).scan()
    paths = [local(task.file.file_path) for task in scan.plan_files()]
    ids = scan.to_arrow().column("id").to_pylist()
    return Contents(len(paths), len(set(paths)), len(ids), len(set(ids)), sum(ids))


def seen_by_duckdb(table: LoadedTable) -> Contents:
    with duckdb_with_iceberg() as connection:
        metadata = [local(table.metadata_location)]
        paths = connection.execute(
            "SELECT count(*), count(DISTINCT file_path) FROM iceberg_metadata(?)"
            " WHERE status <> 'DELETED'",
            metadata,
        ).fetchone()
        rows = connection.execute(
            "SELECT count(*), count(DISTINCT id), sum(id)::BIGINT FROM iceberg_scan(?)", metadata
        ).fetchone()
    assert paths and rows
    return Contents(*paths, *rows)


def _by_manifests(live: Sequence[LiveFile]) -> Contents:
    """Return the contents that our manifests name; DuckDB reads the ids from those files."""
    ids: list[int] = []
    for file in live:
        found = duckdb.execute("SELECT id FROM read_parquet(?)", [file.path]).fetchall()
        assert len(found) == file.record_count
        ids.extend(each for (each,) in found)
    paths = [file.path for file in live]
    return Contents(len(paths), len(set(paths)), len(ids), len(set(ids)), sum(ids))


def local(location: str) -> str:
    """Return the path behind `file:/…` or `file:///…`; another location as it is."""
    if "://" in location and not location.startswith(_SCHEME):
        return location
    path = location.removeprefix(_SCHEME)
    return "/" + path.lstrip("/")


def _read(location: str) -> bytes:
    return Path(local(location)).read_bytes()
