"""Files that plain Spark wrote, without Iceberg: added by the command, and read by Iceberg Java.

Spark's layout of folders, its old form of timestamps and names without field ids, as a table that
is moved to Iceberg has them.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyiceberg.table import StaticTable

from tests.support.integration.java_engine import JavaEngine, java_engine
from tests.support.integration.real_harness import ROOT, RealHarness, real_harness

pytestmark = [
    pytest.mark.server,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.heavy,
    pytest.mark.timeout(300),
]

ROWS = """
    SELECT id, timestamp '2026-03-01 12:00:00 UTC' + make_interval(0, 0, 0, 0, id) AS at,
      CAST(id AS DECIMAL(9, 2)) AS amount, named_struct('x', id, 'tags', array('a', NULL)) AS inner,
      CASE WHEN id % 3 = 0 THEN NULL WHEN id % 3 = 1 THEN 'DE' ELSE 'a/b' END AS country
    FROM range(30)
"""
COLUMNS = (
    "id long, at timestamptz, amount decimal(12, 2),"
    " inner struct<x: long, tags: list<string>>, country string"
)


@contextmanager
def engines() -> Iterator[tuple[RealHarness, JavaEngine]]:
    with real_harness() as harness:
        asyncio.run(harness.start())
        with java_engine(harness) as java:
            yield harness, java


def frazil(harness: RealHarness, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "committer", *arguments],
        cwd=ROOT,
        env=harness.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_a_table_of_spark_is_added_and_java_and_pyiceberg_read_its_rows() -> None:
    with engines() as (harness, java):
        old = harness.folder / "old"
        java.sql(
            "CREATE TABLE spark_catalog.default.old USING parquet PARTITIONED BY (country)"
            f" LOCATION 'file://{old}' AS {ROWS}"
        )
        columns = "id, date_format(at, 'yyyy-MM-dd HH:mm:ss'), CAST(amount AS STRING), inner.x"
        query = f"SELECT {columns}, inner.tags, country FROM {{}} ORDER BY id"
        files = sorted(old.rglob("*.parquet"))
        expected = java.sql(query.format("spark_catalog.default.old"))
        assert len(expected) == 30
        allowed = f"frazil.adopt.locations=file://{old}"
        frazil(
            harness,
            *("table", "create", "db.trips", "--schema", COLUMNS, "--partition", "country"),
            *("--property", allowed),
        )
        said = frazil(harness, "table", "add-files", "db.trips", str(old))
        assert "with 30 rows" in said
        assert java.sql(query.format("frazil.db.trips")) == expected
        # By metrics and partitions of the entries, too.
        few = java.sql("SELECT count(*) FROM frazil.db.trips WHERE country = 'a/b' AND id > 20")
        assert few == [[sum(1 for row in expected if row[5] == "a/b" and row[0] > 20)]]
        nulls = java.sql("SELECT count(*) FROM frazil.db.trips WHERE country IS NULL")
        assert nulls == [[10]]
        # Java may rewrite what was added, and its own files are read beside.
        java.sql("DELETE FROM frazil.db.trips WHERE id = 4")
        java.sql("INSERT INTO frazil.db.trips SELECT 99, NULL, NULL, NULL, 'DE'")
        table = asyncio.run(harness.load("db.trips"))
        read = StaticTable.from_metadata(table.metadata_location).scan().to_arrow()
        ids = sorted(read["id"].to_pylist())
        assert ids == [*(each for each in range(30) if each != 4), 99]
        assert sorted(old.rglob("*.parquet")) == files
