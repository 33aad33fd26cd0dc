"""Which columns get dictionaries: those that repeat, judged by a sample of the first rows."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from committer.iceberg.values.types import LongType, StringType
from tests.support.workers.tables import optional, schema
from tests.support.workers.write_target import Target, path_of, write_rows
from workers.arrow.arrow_schema import arrow_schema
from workers.files.formats.dictionary_choice import (
    SAMPLE_ROWS,
    DictionaryChoice,
    estimated_distinct,
)

LIMIT_BYTES = 2 * 1024 * 1024
ROWS = 16 * SAMPLE_ROWS


def chosen(limit_bytes: int = LIMIT_BYTES, **columns: pa.Array) -> list[str]:
    return DictionaryChoice(limit_bytes).columns(pa.table(columns))


@pytest.mark.parametrize(("distinct", "expected"), [(4, True), (20_000, True), (200_000, False)])
@pytest.mark.parametrize("is_clustered", [True, False])
def test_a_column_has_a_dictionary_if_its_values_repeat_enough(
    *, distinct: int, expected: bool, is_clustered: bool
) -> None:
    chance = random.Random(1)
    values = [f"a value {chance.randrange(distinct):06}" for _ in range(ROWS)]
    column = pa.array(sorted(values) if is_clustered else values)
    assert chosen(value=column) == (["value"] if expected else [])


def test_neighbors_that_are_equal_do_not_look_like_values_that_repeat() -> None:
    assert chosen(pair=pa.array([n // 2 for n in range(ROWS)], pa.int64())) == []


def test_few_rows_are_all_looked_at() -> None:
    distinct = pa.array(range(100), pa.int64())
    assert chosen(same=pa.array([7] * 100, pa.int64()), distinct=distinct) == ["same"]
    assert chosen(nothing=pa.array([], pa.string())) == []
    assert chosen(nulls=pa.nulls(10, pa.string())) == []


def test_a_dictionary_that_would_outgrow_its_limit_is_not_begun() -> None:
    column = pa.array([n % 10_000 for n in range(ROWS)], pa.int64())
    assert chosen(90_000, number=column) == ["number"]
    assert chosen(70_000, number=column) == []


def test_columns_within_columns_are_chosen_by_their_paths_in_parquet(tmp_path: Path) -> None:
    same, flags = pa.array(["x"] * 100), pa.array([True] * 100)
    numbers = pa.array(range(100), pa.int64())
    table = pa.table(
        {
            "a.b": same,
            "s": pa.StructArray.from_arrays([same, numbers, flags], ["text", "number", "flag"]),
            "l": pa.array([["x", "y"]] * 100),
            "m": pa.array([[("k", n)] for n in range(100)], pa.map_(pa.string(), pa.int64())),
            "u": pa.array([bytes(16)] * 100, pa.binary(16)).cast(pa.uuid()),
        }
    )
    paths = DictionaryChoice(LIMIT_BYTES).columns(table)
    assert paths == ["a.b", "s.text", "l.list.element", "m.key_value.key", "u"]
    pq.write_table(table, tmp_path / "f.parquet", use_dictionary=paths)
    group = pq.read_metadata(tmp_path / "f.parquet").row_group(0)
    columns = [group.column(n) for n in range(group.num_columns)]
    assert [one.path_in_schema for one in columns if one.has_dictionary_page] == paths


def test_a_task_chooses_by_its_first_rows_for_all_of_its_files(tmp_path: Path) -> None:
    table = schema(optional(1, "id", LongType()), optional(2, "text", StringType()))
    small_files = {"write.target-file-size-bytes": "1", "write.parquet.row-group-size-bytes": "1"}
    batches = [
        pa.RecordBatch.from_arrays(
            [pa.array(range(100)), pa.array(texts)], schema=arrow_schema(table)
        )
        for texts in (["same"] * 100, [f"{n}" for n in range(100)])
    ]
    files = write_rows(Target(f"file:{tmp_path}", table, properties=small_files), *batches)
    groups = [pq.read_metadata(path_of(file)).row_group(0) for file in files]
    assert len(groups) == 2
    for group in groups:
        assert [group.column(n).has_dictionary_page for n in (0, 1)] == [False, True]


@pytest.mark.parametrize("true", [1_000, 30_000, 100_000, 1_000_000])
def test_the_number_of_distinct_values_is_estimated_from_a_sample(true: int) -> None:
    chance = random.Random(2)
    seen = len({chance.randrange(true) for _ in range(SAMPLE_ROWS)})
    found = estimated_distinct(SAMPLE_ROWS, seen, 10_000_000)
    assert found == pytest.approx(true, rel=0.3)
    assert estimated_distinct(SAMPLE_ROWS, SAMPLE_ROWS, 10_000_000) == 10_000_000
