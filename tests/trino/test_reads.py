"""Trino reads tables of ours: rows, and what its metadata tables say of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from tests.trino.shared_catalog import SCHEMA, SharedCatalog

pytestmark = [pytest.mark.trino, pytest.mark.timeout(600)]

EPOCHS: Sequence[Sequence[Mapping[str, Any]]] = (
    (
        {"id": 1, "name": "a", "at": datetime(2021, 4, 1, 12, 0, 0, 1, tzinfo=UTC)},
        {"id": 2, "name": None, "at": datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)},
    ),
    ({"id": 3, "name": "é😀", "at": None},),
    ({"id": 4, "name": "", "at": datetime(2021, 4, 1, tzinfo=UTC)},),
)
# By column: its type, a value, and how Trino prints it.
TYPES: Mapping[str, tuple[str, Any, Any]] = {
    "a_boolean": ("boolean", True, True),
    "an_int": ("int", -(2**31), -(2**31)),
    "a_long": ("long", 2**63 - 1, 2**63 - 1),
    "a_float": ("float", 1.5, 1.5),
    "a_double": ("double", -1e300, -1e300),
    "a_decimal": ("decimal(38, 10)", Decimal("-1.0000000001"), "-1.0000000001"),
    "a_date": ("date", date(1582, 10, 15), "1582-10-15"),
    "a_time": ("time", time(23, 59, 59, 999999), "23:59:59.999999"),
    "a_timestamp": (
        "timestamp",
        datetime(2021, 4, 1, 12, 0, 0, 1),
        "2021-04-01 12:00:00.000001",
    ),
    "a_timestamptz": (
        "timestamptz",
        datetime(2021, 4, 1, 12, 0, 0, 1, tzinfo=UTC),
        "2021-04-01 12:00:00.000001 UTC",
    ),
    "a_string": ("string", "'; DROP", "'; DROP"),
    "a_uuid": ("uuid", UUID(int=7).bytes, str(UUID(int=7))),
    "a_binary": ("binary", b"\xff\x00", "/wA="),
    "a_fixed": ("fixed[2]", b"\x01\x02", "AQI="),
    "a_list": ("list<string>", ["x", None], ["x", None]),
    "a_map": ("map<string, long>", [("k", 1)], {"k": 1}),
    "a_struct": ("struct<x: long, y: string>", {"x": 1, "y": None}, [1, None]),
}


@dataclass(frozen=True, slots=True)
class Filled:
    """A table after some commits of ours, and its name without the schema."""

    shared: SharedCatalog
    table: str
    name: str

    def trino(self, kind: str, columns: str = "*") -> list[list[Any]]:
        return self.shared.trino.sql(f'SELECT {columns} FROM {SCHEMA}."{self.name}${kind}"')

    def ours(self, kind: str) -> list[dict[str, Any]]:
        return self.shared.lines("table", "inspect", self.table, "--kind", kind)


@pytest.fixture(scope="session")
def filled(shared: SharedCatalog) -> Filled:
    columns = "id long not null, name string, at timestamptz"
    table = shared.create("read", columns, "--partition", "day(at), bucket(4, id)")
    shared.publish(table, *EPOCHS)
    return Filled(shared, table, "read")


def test_rows_are_read_with_their_values(filled: Filled) -> None:
    found = filled.shared.trino.sql(f"SELECT id, name, at FROM {filled.table} ORDER BY id")
    wanted = [
        [row["id"], row["name"], row["at"] and f"{row['at']:%Y-%m-%d %H:%M:%S.%f} UTC"]
        for rows in EPOCHS
        for row in rows
    ]
    assert found == wanted
    columns = filled.shared.trino.sql(f"DESCRIBE {filled.table}")
    assert [(name, kind) for name, kind, *_ in columns] == [
        ("id", "bigint"),
        ("name", "varchar"),
        ("at", "timestamp(6) with time zone"),
    ]


def test_values_of_each_type_are_read_and_found_by_a_filter(shared: SharedCatalog) -> None:
    columns = ", ".join(f"{name} {kind}" for name, (kind, *_) in TYPES.items())
    table = shared.create("typed", columns)
    shared.publish(table, [{name: value for name, (_, value, _) in TYPES.items()}, {}])
    found = shared.trino.sql(f"SELECT * FROM {table} WHERE a_long IS NOT NULL")
    assert found == [[printed for *_, printed in TYPES.values()]]
    nothing = shared.trino.sql(f"SELECT * FROM {table} WHERE a_date IS NULL")
    assert nothing == [[None] * len(TYPES)]
    for literal in ("a_decimal = DECIMAL '-1.0000000001'", "a_date = DATE '1582-10-15'"):
        assert shared.trino.value(f"SELECT count(*) FROM {table} WHERE {literal}") == 1


def test_earlier_snapshots_are_read_by_their_ids(filled: Filled) -> None:
    ids = [one["snapshot_id"] for one in filled.ours("snapshots")]
    counts = [
        filled.shared.trino.value(f"SELECT count(*) FROM {filled.table} FOR VERSION AS OF {each}")
        for each in ids
    ]
    assert counts == [2, 3, 4]


# --- Metadata tables -----------------------------------------------------------------------------


def as_time(milliseconds: int) -> str:
    at = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return f"{at:%Y-%m-%d %H:%M:%S}.{milliseconds % 1000:03d} UTC"


def snapshot(ours: Mapping[str, Any]) -> list[Any]:
    names = ("snapshot_id", "parent_id", "operation", "manifest_list", "summary")
    return [as_time(ours["timestamp_ms"]), *(ours[name] for name in names)]


def history(ours: Mapping[str, Any]) -> list[Any]:
    names = ("snapshot_id", "parent_id", "is_current_ancestor")
    return [as_time(ours["timestamp_ms"]), *(ours[name] for name in names)]


def metadata_log(ours: Mapping[str, Any]) -> list[Any]:
    names = ("metadata_file", "latest_snapshot_id", "latest_schema_id", "latest_sequence_number")
    return [as_time(ours["timestamp_ms"]), *(ours[name] for name in names)]


def ref(ours: Mapping[str, Any]) -> list[Any]:
    return [ours["name"], ours["type"].upper(), ours["snapshot-id"], None, None, None]


def partition(ours: Mapping[str, Any]) -> list[Any]:
    names = ("record_count", "file_count", "total_data_file_size_in_bytes")
    return [list(ours["partition"].values()), *(ours[name] for name in names)]


def manifest(ours: Mapping[str, Any]) -> list[Any]:
    names = (
        *("manifest_path", "manifest_length", "partition_spec_id", "added_snapshot_id"),
        *("added_files_count", "added_rows_count", "existing_files_count", "existing_rows_count"),
        *("deleted_files_count", "deleted_rows_count"),
    )
    return [ours[name] for name in names]


def file(ours: Mapping[str, Any]) -> list[Any]:
    before = ("content", "file_path", "file_format", "spec_id")
    after = (
        *("record_count", "file_size_in_bytes", "column_sizes", "value_counts"),
        *("null_value_counts", "nan_value_counts"),
    )
    bounds = [
        {key: bound["human"].replace("Z", "+00:00") for key, bound in ours[name].items()}
        for name in ("lower_bounds", "upper_bounds")
    ]
    rest = [ours[name] for name in ("key_metadata", "split_offsets", "equality_ids")]
    return [
        *(ours[name] for name in before),
        list(ours["partition"].values()),
        *(ours[name] for name in after),
        *bounds,
        *rest,
        ours["sort_order_id"],
    ]


Make = Callable[[Mapping[str, Any]], list[Any]]
KINDS: Mapping[str, tuple[Make, str]] = {
    "snapshots": (snapshot, "*"),
    "history": (history, "*"),
    "metadata_log_entries": (metadata_log, "*"),
    "refs": (ref, "*"),
    "partitions": (partition, "partition, record_count, file_count, total_size"),
    "manifests": (
        manifest,
        "path, length, partition_spec_id, added_snapshot_id, added_data_files_count,"
        " added_rows_count, existing_data_files_count, existing_rows_count,"
        " deleted_data_files_count, deleted_rows_count",
    ),
    "files": (
        file,
        "content, file_path, file_format, spec_id, partition, record_count, file_size_in_bytes,"
        " column_sizes, value_counts, null_value_counts, nan_value_counts, lower_bounds,"
        " upper_bounds, key_metadata, split_offsets, equality_ids, sort_order_id",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_metadata_table_says_what_ours_says(filled: Filled, kind: str) -> None:
    make, columns = KINDS[kind]
    ours = sorted((make(row) for row in filled.ours(kind)), key=json.dumps)
    assert len(ours) > 0
    assert sorted(filled.trino(kind, columns), key=json.dumps) == ours


def test_properties_and_the_ledger_in_them_are_the_tables(filled: Filled) -> None:
    metadata = filled.shared.load(filled.table).metadata
    found = dict(filled.trino("properties"))
    assert {name: found.get(name) for name in metadata.properties} == metadata.properties
    assert found["format-version"] == "2"
    assert found["current-snapshot-id"] == str(metadata.current_snapshot_id)


def test_files_are_of_sort_order_0(filled: Filled) -> None:
    assert {order for [order] in filled.trino("files", "sort_order_id")} == {0}
