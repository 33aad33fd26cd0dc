from __future__ import annotations

from uuid import uuid4

import pytest

from committer.iceberg.entry.data_file import DataFile
from workers.sink.warnings.small_files import SMALL_FILE_BYTES, hint_at_small_files


def file_of(size_bytes: int) -> DataFile:
    return DataFile(
        file_path="file:///t/data/a.parquet",
        partition=(),
        record_count=1,
        file_size_in_bytes=size_bytes,
    )


@pytest.fixture
def query() -> str:
    return str(uuid4())


def test_small_files_are_hinted_at_once_for_each_query(
    query: str, caplog: pytest.LogCaptureFixture
) -> None:
    files = [file_of(10), file_of(21)]
    hint_at_small_files("db.t", query, files)
    hint_at_small_files("db.t", query, files)
    hint_at_small_files("db.other", query, files)
    said = [record.getMessage() for record in caplog.records]
    assert [text.partition(":")[0] for text in said] == ["table `db.t`", "table `db.other`"]
    assert "2 data files of 15 bytes on average" in said[0]
    assert "trigger" in said[0]
    assert "rewrite_data_files" in said[0]


def test_files_of_a_megabyte_on_average_are_not_hinted_at(
    query: str, caplog: pytest.LogCaptureFixture
) -> None:
    files = [file_of(1), file_of(2 * SMALL_FILE_BYTES)]
    hint_at_small_files("db.t", query, files)
    assert caplog.records == []
