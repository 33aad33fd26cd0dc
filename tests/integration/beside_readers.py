"""The rows of a branch or tag, as Java, DuckDB and PyIceberg read them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pyiceberg.table import StaticTable

from committer.iceberg.entry.data_file import DataFileContent
from committer.ledger_entry import MAIN
from committer.ports.pointer_swap import LoadedTable
from tests.integration.changing_state import ChangingState
from tests.support.integration.duckdb_iceberg import duckdb_with_iceberg
from tests.support.integration.java_engine import JavaEngine
from tests.support.integration.readers import local
from tests.support.integration.real_harness import CATALOG

Found = list[tuple[object, ...]]


async def read_by_java(java: JavaEngine, name: str, ref: str, columns: Sequence[str]) -> Found:
    version = "" if ref == MAIN else f" VERSION AS OF '{ref}'"
    query = f"SELECT {', '.join(columns)} FROM {CATALOG}.{name}{version} ORDER BY id"
    return [tuple(row) for row in await asyncio.to_thread(java.sql, query)]


def column_names(table: LoadedTable) -> list[str]:
    """Return the columns of a table in their order, as PyIceberg reads them."""
    seen: list[str] = StaticTable.from_metadata(table.metadata_location).schema().column_names
    return seen


def read_by_duckdb(table: LoadedTable, ref: str, columns: Sequence[str]) -> Found | str:
    """Return the rows, or why DuckDB cannot read them: of deletes beside files of several specs.

    DuckDB 1.5.5 fails on equality deletes then ("Comparison on NULL values"), and overlooks some
    deletion vectors, also in tables that only Iceberg Java has written.
    """
    state = ChangingState.of(table, ref)
    equality = state.deletes(DataFileContent.EQUALITY_DELETES)
    if (equality or state.vectors) and len({one.data_file.spec_id for one in state.entries}) > 1:
        return "DuckDB: deletes beside files of several specs"
    head = table.metadata.branch_head(ref)
    at = "" if ref == MAIN or head is None else f", snapshot_from_id = {head.snapshot_id}"
    query = f"SELECT {', '.join(columns)} FROM iceberg_scan(?{at}) ORDER BY id"
    with duckdb_with_iceberg() as connection:
        found = connection.execute(query, [local(table.metadata_location)]).fetchall()
        return [tuple(row) for row in found]


def read_by_pyiceberg(table: LoadedTable, ref: str, columns: Sequence[str]) -> Found | str:
    """Return the rows, or why PyIceberg cannot read them: it knows no equality deletes."""
    head = table.metadata.branch_head(ref)
    snapshot_id = None if ref == MAIN or head is None else head.snapshot_id
    seen = StaticTable.from_metadata(table.metadata_location)
    try:
        rows = seen.scan(selected_fields=tuple(columns), snapshot_id=snapshot_id).to_arrow()
    except ValueError as error:
        if "equality deletes" not in str(error):
            raise
        return "PyIceberg: equality deletes"
    found = (tuple(row[name] for name in columns) for row in rows.to_pylist())
    return sorted(found, key=lambda row: row[0])
