"""Reads the table with independent readers: PyIceberg through its own catalog, and DuckDB.

Also the same sums of the input itself, which never passed through Frazil.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from committer.catalog.catalog_properties import CatalogProperties
from committer.demo.demo_catalog import open_by_pyiceberg
from committer.demo.demo_verdict import Reading, Sums
from committer.errors import SettingsError
from committer.storage.disk.local_files import local_path

_COLUMNS = ("carrier", "distance", "arr_delay")
_QUERY = """
SELECT carrier, count(*), count(arr_delay), sum(distance), sum(arr_delay)
FROM iceberg_scan(?) GROUP BY carrier
"""
_FILES = """
SELECT file_path FROM iceberg_metadata(?) WHERE status <> 'DELETED' AND manifest_content = 'DATA'
"""
_EXTENSIONS = ("avro", "iceberg")  # in the order in which they must be loaded


@dataclass(frozen=True, slots=True)
class SnapshotRow:
    """A snapshot as PyIceberg shows it."""

    timestamp_ms: int
    snapshot_id: int
    requests: int
    files: int
    rows: int
    total_rows: int


@dataclass(frozen=True, slots=True)
class TableReport:
    """PyIceberg's view of the table, besides its rows."""

    reading: Reading
    metadata_location: str
    location: str
    snapshots: Sequence[SnapshotRow]


def sums_by_carrier(flights: pa.Table) -> dict[str, Sums]:
    """Compute the sums of rows in memory."""
    grouped = flights.group_by("carrier").aggregate(
        [([], "count_all"), ("arr_delay", "count"), ("distance", "sum"), ("arr_delay", "sum")]
    )
    names = ("carrier", "count_all", "arr_delay_count", "distance_sum", "arr_delay_sum")
    return _sums(zip(*(grouped.column(name).to_pylist() for name in names), strict=True))


def read_by_pyiceberg(properties: CatalogProperties, table_name: str) -> TableReport:
    """Scan the table by PyIceberg, as its own client of the catalog finds it."""
    catalog = open_by_pyiceberg(properties)
    try:
        table = catalog.load_table(table_name)
        scan = table.scan(selected_fields=_COLUMNS)
        paths = [task.file.file_path for task in scan.plan_files()]
        reading = Reading("PyIceberg", sums_by_carrier(scan.to_arrow()), paths)
        snapshots = [_snapshot_row(snapshot) for snapshot in table.snapshots()]
        return TableReport(reading, table.metadata_location, table.location(), snapshots)
    finally:
        catalog.close()


def _snapshot_row(snapshot: Any) -> SnapshotRow:
    summary = snapshot.summary.additional_properties
    return SnapshotRow(
        snapshot.timestamp_ms,
        snapshot.snapshot_id,
        int(summary.get("frazil.requests-count", 0)),
        int(summary.get("added-data-files", 0)),
        int(summary.get("added-records", 0)),
        int(summary.get("total-records", 0)),
    )


def read_by_duckdb(metadata_location: str) -> Reading:
    """Scan the table by DuckDB."""
    path = str(local_path(metadata_location))
    with open_duckdb() as connection:
        sums = _sums(connection.execute(_QUERY, [path]).fetchall())
        return Reading("DuckDB", sums, data_paths(connection, path))


def data_paths(connection: duckdb.DuckDBPyConnection, metadata_file: str) -> list[str]:
    """List the live data files, as often as the metadata names each."""
    return [row[0] for row in connection.execute(_FILES, [metadata_file]).fetchall()]


def open_duckdb() -> duckdb.DuckDBPyConnection:
    """Open a database in memory that reads Iceberg tables. Errors: as `extension_path`."""
    connection = duckdb.connect()
    for name in _EXTENSIONS:
        connection.execute(f"LOAD '{extension_path(name)}'")
    return connection


def extension_path(name: str) -> Path:
    """Find the file of a DuckDB extension in its Python package: nothing is downloaded.

    Errors: `SettingsError` if the package is missing.
    """
    package = f"duckdb_extension_{name}"
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        pattern = f"extensions/v{duckdb.__version__}/{name}.duckdb_extension"
        path = Path(folder) / pattern
        if path.is_file():
            return path
    raise SettingsError(
        f"DuckDB's extension `{name}` is missing: pip install {package}=={duckdb.__version__}"
    )


def _sums(rows: Iterable[tuple[Any, ...]]) -> dict[str, Sums]:
    return {row[0]: Sums(*(int(value or 0) for value in row[1:])) for row in rows}
