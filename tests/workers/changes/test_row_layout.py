from __future__ import annotations

import pytest

from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.expressions.expression import ALWAYS_TRUE
from committer.iceberg.scan.scan_task import FileScanTask
from workers.changes.layout.row_layout import RewriteSize, files_of, rewrite_size


def planned(partition: str, size_bytes: int, rows: int, spec_id: int = 0) -> FileScanTask:
    file = DataFile(
        file_path=f"{partition}{size_bytes}",
        partition=(partition,),
        record_count=rows,
        file_size_in_bytes=size_bytes,
        spec_id=spec_id,
    )
    return FileScanTask(file, (), ALWAYS_TRUE)


@pytest.mark.parametrize(
    ("size_bytes", "files"), [(0, 1), (1, 1), (100, 1), (101, 2), (1_000, 10), (1_001, 11)]
)
def test_rows_have_as_many_files_as_they_fill(size_bytes: int, files: int) -> None:
    assert files_of(size_bytes, 100) == files


def test_the_size_is_that_of_the_removed_files_and_of_new_rows_like_those_that_are_there() -> None:
    one, two, other = planned("a", 600, 10), planned("a", 300, 20), planned("b", 700, 10)
    stays = planned("b", 400, 10)
    size = rewrite_size([one, two, other, stays], [one, two, other], new_rows=7)
    # 2,000 bytes in 50 rows.
    assert size == RewriteSize(600 + 300 + 700 + 7 * 40, 900)
    # Values of two specs are not compared.
    former = planned("a", 800, 10, spec_id=1)
    assert rewrite_size([], [two, former], new_rows=0).partition_bytes == 800


def test_new_rows_of_an_empty_table_count_too() -> None:
    assert rewrite_size([], [], new_rows=10) == RewriteSize(1_000, 0)
