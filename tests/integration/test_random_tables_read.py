"""Random tables that Iceberg Java has made: its rows and ours, with metadata columns, are equal.

Each seed is a program of SQL: inserts, deletes, updates and changes of the schema and the spec, on
files of each format and in each format version.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest

import frazil
from tests.integration.random_sql import RandomTable
from tests.support.integration.java_engine import JavaEngine, java_engine
from tests.support.integration.real_harness import CATALOG, RealHarness, real_harness

pytestmark = [
    pytest.mark.server,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]

STEPS = 9
CASES = [
    (3, "parquet", 3),
    *product((2, 3), ("parquet", "orc", "avro"), (5, 6, 7)),
]
PLACES = ("_file", "_pos", "_spec_id", "_partition")
LINEAGE = ("_row_id", "_last_updated_sequence_number")


@dataclass(slots=True)
class Shared:
    harness: RealHarness
    java: JavaEngine

    def ours(self, name: str) -> frazil.Table:
        return frazil.load_table(
            name,
            catalog_name=CATALOG,
            catalog_uri=f"sqlite:///{self.harness.catalog_file}",
            home=str(self.harness.folder),
        )


@pytest.fixture(scope="module")
def shared() -> Iterator[Shared]:
    with real_harness() as harness, java_engine(harness) as java:
        java.sql(f"CREATE NAMESPACE {CATALOG}.rnd")
        yield Shared(harness, java)


@pytest.mark.heavy
@pytest.mark.parametrize(("version", "file_format", "seed"), CASES)
def test_rows_of_a_random_table_are_those_that_java_reads(
    shared: Shared, version: int, file_format: str, seed: int
) -> None:
    name = f"{CATALOG}.rnd.v{version}_{file_format}_{seed}"
    table = RandomTable(name, random.Random(seed * 100 + version), version)
    steps = [table.create(file_format), *table.steps(STEPS)]
    print(*steps, sep=";\n")
    for step in steps:
        shared.java.sql(step)
    ours = shared.ours(name.removeprefix(f"{CATALOG}."))
    names = ("*", *PLACES, *(LINEAGE if version >= 3 else ()))
    wanted = shared.java.sql(f"SELECT {', '.join(names)} FROM {name}")
    found = ours.scan(selected_fields=names).to_arrow()
    assert in_order(found.to_pylist()) == in_order_of_java(wanted)
    assert ours.scan().count() == len(wanted)
    marked = shared.java.sql(f"SELECT id, _pos, _file, _deleted FROM {name}")
    marks = ours.scan(selected_fields=("id", "_pos", "_file", "_deleted")).to_arrow()
    assert in_order(marks.to_pylist()) == in_order_of_java(marked)
    for where in ("id > 5 AND name = 'a'", "name IS NULL", "name <> 'a'"):
        said = shared.java.value(f"SELECT count(*) FROM {name} WHERE {where}")
        known = "name <> 'a' and name is not null" if "<>" in where else where
        assert ours.scan(known).to_arrow().num_rows == said, where


def in_order(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps([plain(value) for value in row.values()]) for row in rows)


def in_order_of_java(rows: list[list[Any]]) -> list[str]:
    return sorted(map(json.dumps, rows))


def plain(value: Any) -> Any:
    """Return a value as the other side's JSON has it: structs are lists, maps objects."""
    if isinstance(value, dict):
        return [plain(part) for part in value.values()]
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return {str(key): plain(part) for key, part in value}
    if isinstance(value, list):
        return [plain(part) for part in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)
