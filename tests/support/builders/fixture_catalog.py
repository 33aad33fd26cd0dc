"""The fixtures' tables in a SQLite catalog, where they are: Frazil, PyIceberg and Java open it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from tests.support.builders.fixtures import expected, place_fixtures

NAME = "lake"


def fixture_catalog(file: Path, names: Iterable[str]) -> None:
    """Make the catalog `lake` with these tables in its namespace `db`."""
    place_fixtures()
    rows = [(NAME, "db", name, expected(name)["metadata_location"]) for name in names]
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(
            "CREATE TABLE iceberg_tables (catalog_name TEXT, table_namespace TEXT, table_name TEXT,"
            " metadata_location TEXT, previous_metadata_location TEXT, iceberg_type TEXT,"
            " PRIMARY KEY (catalog_name, table_namespace, table_name));"
            "CREATE TABLE iceberg_namespace_properties (catalog_name TEXT, namespace TEXT,"
            " property_key TEXT, property_value TEXT);"
            f"INSERT INTO iceberg_namespace_properties VALUES ('{NAME}', 'db', 'exists', 'true');"
        )
        connection.executemany(
            "INSERT INTO iceberg_tables VALUES (?, ?, ?, ?, NULL, 'TABLE')", rows
        )
        connection.commit()
