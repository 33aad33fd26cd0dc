"""Partitions with hostile values, written by us and by Trino: each finds and counts the other's."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.support.integration.readers import local
from tests.trino.shared_catalog import SCHEMA, SharedCatalog

pytestmark = [pytest.mark.trino, pytest.mark.timeout(600)]

NAMES = (
    *("plain", "", " ", ".", "..", "../x", "a/b", "a=b", "a&b", "a+b", "a%20b", "%2F", "a\\b"),
    *(
        "'",
        '"',
        "`",
        "\n",
        "\t",
        "null",
        "NULL",
        "None",
        "__HIVE_DEFAULT_PARTITION__",
        "é",
        "e\u0301",
    ),
    *("😀😀😀", "\u202e", "\x7f", "#?*", "x" * 60, None),
)
TIMES = (
    datetime(2021, 4, 1, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(1, 1, 1, tzinfo=UTC),
    None,
)
COLUMNS = "id long, name string, at timestamptz"


PLACES = (
    *(("rest", field) for field in ("name", "bucket(4, name)", "truncate(2, name)", "day(at)")),
    *((catalog, "name") for catalog in ("jdbc", "hive")),
)


@pytest.mark.parametrize(("shared", "field"), PLACES, indirect=["shared"], scope="session")
def test_rows_of_both_are_found_by_both_in_each_partition(
    shared: SharedCatalog, field: str
) -> None:
    name = f"by_{field.partition('(')[0]}"
    table = shared.create(name, COLUMNS, "--partition", field)
    rows: list[dict[str, Any]] = [
        {"id": at, "name": each, "at": TIMES[at % len(TIMES)]} for at, each in enumerate(NAMES)
    ]
    shared.publish(table, rows)
    # Trino writes the values that it has read of ours.
    shared.trino.sql(f"INSERT INTO {table} SELECT id + 1000, name, at FROM {table}")
    shared.publish(table, [{**row, "id": row["id"] + 2000} for row in rows])

    found = shared.trino.sql(" UNION ALL ".join(map(partial(query_of, table), range(len(NAMES)))))
    wanted = [[at, [at, at + 1000, at + 2000]] for at in range(len(NAMES))]
    assert sorted(found) == wanted
    check_partitions(shared, name)
    tasks = shared.lines("table", "plan", table, "--where", "name = 'a/b'")
    paths = {task["file"] for task in tasks}
    files = shared.lines("table", "inspect", table, "--kind", "files")
    planned = sum(file["record_count"] for file in files if file["file_path"] in paths)
    assert planned == 3 if field == "name" else planned >= 3


def query_of(table: str, number: int) -> str:
    """Ask for the rows of one name, by a filter that leaves out other partitions."""
    name = NAMES[number]
    escaped = (name or "").replace("'", "''")
    condition = "IS NULL" if name is None else f"= '{escaped}'"
    return f"SELECT {number}, array_agg(id ORDER BY id) FROM {table} WHERE name {condition}"


def check_partitions(shared: SharedCatalog, name: str) -> None:
    columns = "partition, record_count, file_count"
    seen = shared.trino.sql(f'SELECT {columns} FROM {SCHEMA}."{name}$partitions"')
    ours = [
        [list(row["partition"].values()), row["record_count"], row["file_count"]]
        for row in shared.lines("table", "inspect", f"{SCHEMA}.{name}", "--kind", "partitions")
    ]
    assert sorted(seen, key=repr) == sorted(ours, key=repr)
    assert sum(rows for _, rows, _ in seen) == 3 * len(NAMES)


def test_files_of_both_have_the_field_ids_and_the_sort_order_of_the_table(
    shared: SharedCatalog,
) -> None:
    table = shared.create("ids", "id long, tags list<string>, at timestamptz")
    shared.publish(table, [{"id": 1, "tags": ["x"], "at": TIMES[0]}])
    shared.trino.sql(f"INSERT INTO {table} SELECT * FROM {table}")
    files = shared.lines("table", "inspect", table, "--kind", "files")
    assert [row["sort_order_id"] for row in files] == [0, 0]
    ids = [field_ids(row["file_path"]) for row in files]
    assert ids == [{"id": 1, "tags": 2, "at": 3, "tags.element": 4}] * 2


def field_ids(location: str) -> dict[str, int]:
    schema = pq.read_schema(Path(local(location)))
    found = {field.name: int(field.metadata[b"PARQUET:field_id"]) for field in schema}
    element = schema.field("tags").type.value_field
    return {**found, "tags.element": int(element.metadata[b"PARQUET:field_id"])}
