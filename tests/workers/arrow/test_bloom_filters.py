"""Bloom filters are written for the columns that the table names, as large as its rows need."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from committer.errors import UnsupportedError
from committer.iceberg.schema.table_text import parse_columns
from tests.support.workers.write_target import Target, path_of, write_rows
from workers.arrow.arrow_schema import arrow_schema
from workers.arrow.bloom_filters import BloomFilter, bloom_filters

ENABLED = "write.parquet.bloom-filter-enabled.column."
TABLE = parse_columns(
    "id long, a.b string, s struct<x: int>, l list<struct<y: int>>, m map<string, long>, b bool"
)


@pytest.mark.parametrize(
    ("column", "path"),
    [
        ("id", "id"),
        ("a.b", "a_x2Eb"),
        ("s.x", "s.x"),
        ("l.element.y", "l.list.element.y"),
        ("m.key", "m.key_value.key"),
        ("m.value", "m.key_value.value"),
    ],
)
def test_a_column_has_the_path_that_it_has_in_the_file(column: str, path: str) -> None:
    found = bloom_filters({ENABLED + column: "TRUE"}, TABLE)
    assert [one.path for one in found.columns] == [path]


@pytest.mark.parametrize("column", ["b", "s", "none"])
def test_a_column_that_takes_no_filter_has_none(column: str) -> None:
    assert bloom_filters({ENABLED + column: "true"}, TABLE).columns == ()
    assert bloom_filters({ENABLED + "id": "false"}, TABLE).columns == ()


def test_a_filter_is_for_the_rows_of_a_row_group_up_to_the_bytes_that_it_may_have() -> None:
    usual = BloomFilter("id", 0.01, None)
    assert usual.options(1000, 1 << 20) == {"ndv": 1000, "fpp": 0.01}
    assert BloomFilter("id", 0.01, 77).options(1000, 1 << 20)["ndv"] == 77
    # 9.7 bits a value.
    assert 850_000 < int(str(usual.options(10**9, 1 << 20)["ndv"])) < 880_000


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("write.parquet.bloom-filter-fpp.column.id", "1.5"),
        ("write.parquet.bloom-filter-fpp.column.id", "few"),
        ("write.parquet.bloom-filter-ndv.column.id", "0"),
        ("write.parquet.bloom-filter-max-bytes", "-1"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(UnsupportedError, match=f"`{name}` is `{value}`"):
        bloom_filters({ENABLED + "id": "true", name: value}, TABLE)


def write(folder: Path, properties: dict[str, str]) -> tuple[Path, int]:
    table = parse_columns("id long, name string")
    columns = [pa.array(range(5000), pa.int64()), pa.array(map(str, range(5000)), pa.string())]
    rows = pa.RecordBatch.from_arrays(columns, schema=arrow_schema(table))
    [file] = write_rows(Target(f"file:{folder}", table, properties=properties), rows)
    return path_of(file), file.file_size_in_bytes


def test_files_have_the_filters_and_no_others(tmp_path: Path) -> None:
    fpp = {"write.parquet.bloom-filter-fpp.column.name": "0.001"}
    _, plain = write(tmp_path / "plain", fpp)
    _, one = write(tmp_path / "one", {ENABLED + "name": "true", "x": "y"})
    _, finer = write(tmp_path / "finer", {ENABLED + "name": "true", **fpp})
    # 5,000 values of 9.7 or 14.6 bits, in a power of two.
    assert [one - plain > 8192 // 2, finer - one >= 8192] == [True, True]


def test_the_page_row_limit_of_the_table_is_obeyed(tmp_path: Path) -> None:
    path, usual = write(tmp_path / "usual", {})
    _, short = write(tmp_path / "short", {"write.parquet.page-row-limit": "100"})
    assert pq.read_metadata(path).num_rows == 5000
    assert short > usual + 49 * 2 * 10  # fifty pages of each column, with a header each
