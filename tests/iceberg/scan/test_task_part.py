"""Tasks split into parts: at row groups where these are known, and never with a gap."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from committer.iceberg.entry.data_file import DataFile, DataFileContent
from committer.iceberg.expressions.expression import ALWAYS_TRUE
from committer.iceberg.scan.scan_task import FileScanTask
from committer.iceberg.scan.task_part import split_task

FILE = DataFile(
    content=DataFileContent.DATA,
    file_path="s3://b/f.parquet",
    file_format="PARQUET",
    partition=(),
    spec_id=0,
    record_count=10,
    file_size_in_bytes=1000,
)


def ranges(file: DataFile, split_bytes: int) -> list[tuple[int, int]]:
    task = FileScanTask(file, (), ALWAYS_TRUE)
    return [(part.start, part.length) for part in split_task(task, split_bytes)]


def test_row_groups_stay_together_as_far_as_the_size_allows() -> None:
    file = replace(FILE, split_offsets=(4, 300, 500, 900))
    assert ranges(file, 500) == [(0, 500), (500, 500)]
    assert ranges(file, 499) == [(0, 300), (300, 200), (500, 400), (900, 100)]
    assert ranges(file, 1) == [(0, 300), (300, 200), (500, 400), (900, 100)]


@pytest.mark.parametrize("offsets", [None, (), (4, 4), (300, 4), (4, 1000), (-4, 300)])
def test_ranges_are_equal_where_no_sound_offsets_are_known(
    offsets: tuple[int, ...] | None,
) -> None:
    file = replace(FILE, split_offsets=offsets)
    assert ranges(file, 400) == [(0, 400), (400, 400), (800, 200)]


@pytest.mark.parametrize("format", ["AVRO", "orc"])
def test_a_file_of_another_format_is_one_part(format: str) -> None:
    assert ranges(replace(FILE, file_format=format), 10) == [(0, 1000)]


def test_a_small_file_is_one_part() -> None:
    assert ranges(replace(FILE, split_offsets=(4, 500)), 1000) == [(0, 1000)]


@given(st.sets(st.integers(0, 999)), st.integers(1, 1200))
def test_each_offset_is_in_one_part(offsets: set[int], split_bytes: int) -> None:
    file = replace(FILE, split_offsets=tuple(sorted(offsets)))
    task = FileScanTask(file, (), ALWAYS_TRUE)
    parts = list(split_task(task, split_bytes))
    assert all(sum(part.has(offset) for part in parts) == 1 for offset in range(1000))
