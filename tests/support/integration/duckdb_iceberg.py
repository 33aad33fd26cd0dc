"""DuckDB with its extension for Iceberg, and nothing else: some tests open it in a process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import duckdb


@contextmanager
def duckdb_with_iceberg() -> Iterator[Any]:
    """Open a DuckDB that reads Iceberg."""
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as connection:
        for name in ("duckdb_extension_avro", "duckdb_extension_iceberg"):
            folder = Path(import_module(name).__file__ or "").parent
            [extension] = folder.rglob("*.duckdb_extension")
            connection.execute(f"LOAD '{extension}'")
        yield connection


def duckdb_rows(metadata_path: str, columns: Sequence[str]) -> list[Any]:
    names = ", ".join(f'"{name}"' for name in columns)
    with duckdb_with_iceberg() as connection:
        query = f"SELECT {names} FROM iceberg_scan(?)"  # names of our own
        rows: list[Any] = connection.execute(query, [metadata_path]).fetchall()
        return rows
