"""Reads the second act's table: Frazil's own reader and DuckDB, which both apply upserts' deletes.

PyIceberg 0.12 refuses a scan that has equality deletes younger than its data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa

import frazil
from committer.demo.demo_readers import data_paths, open_duckdb, sums_by_carrier
from committer.demo.demo_verdict import Reading
from committer.demo.writers.flight_changes import KEY
from committer.storage.disk.local_files import local_path

_NAMED_MAX = 5


@dataclass(frozen=True, slots=True)
class ReadRows:
    """A reader's findings, and the rows themselves."""

    reading: Reading
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class LatestReport:
    """Frazil's view of the table. `operations`: of its snapshots, in their order."""

    read: ReadRows
    metadata_location: str
    operations: Sequence[str]


def read_latest_by_frazil(table_name: str) -> LatestReport:
    """Scan the table as a user of `frazil.load_table` does."""
    table = frazil.load_table(table_name)
    scan = table.scan()
    rows = scan.to_arrow()
    paths = [task.file.file_path for task in scan.plan_files()]
    operations = [snapshot.operation or "" for snapshot in table.snapshots()]
    read = ReadRows(Reading("Frazil", sums_by_carrier(rows), paths), rows)
    return LatestReport(read, table.metadata_location, operations)


def read_latest_by_duckdb(metadata_location: str) -> ReadRows:
    """Scan the table by DuckDB."""
    path = str(local_path(metadata_location))
    with open_duckdb() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        rows = connection.execute("FROM iceberg_scan(?)", [path]).to_arrow_table()
        paths = data_paths(connection, path)
    return ReadRows(Reading("DuckDB", sums_by_carrier(rows), paths), rows)


def row_differences(read: ReadRows, expected: pa.Table) -> list[str]:
    """Compare all columns of all rows, by id. Return each kind of difference with some ids."""
    reader, found = read.reading.reader, read.rows.select(expected.schema.names)
    found = found.cast(expected.schema).sort_by(KEY).combine_chunks()
    if found.equals(expected.combine_chunks()):
        return []
    found_ids, expected_ids = found[KEY].to_pylist(), expected[KEY].to_pylist()
    kinds = {
        "missing": set(expected_ids) - set(found_ids),
        "too many": set(found_ids) - set(expected_ids),
        "there twice": {one for one, other in pairwise(found_ids) if one == other},
        "different": _changed(found, expected),
    }
    return [
        f"{reader}: {len(ids):,} flights are {kind}: id {_named(ids)}"
        for kind, ids in kinds.items()
        if ids
    ]


def _changed(found: pa.Table, expected: pa.Table) -> set[int]:
    rows = {row[KEY]: row for row in expected.to_pylist()}
    return {row[KEY] for row in found.to_pylist() if row != rows.get(row[KEY], row)}


def _named(ids: set[int]) -> str:
    named = ", ".join(map(str, sorted(ids)[:_NAMED_MAX]))
    return named if len(ids) <= _NAMED_MAX else f"{named}, …"
