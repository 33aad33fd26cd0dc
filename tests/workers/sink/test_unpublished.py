"""The files of an aborted write are deleted exactly where no request can name them."""

from __future__ import annotations

import logging
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest

from committer.iceberg.values.types import LongType
from tests.support.workers.tables import required, schema
from tests.support.workers.write_target import Target, files_below, write_rows
from workers.arrow.arrow_schema import arrow_schema
from workers.files.store_access import USUAL_ACCESS
from workers.sink.files_written import FilesWritten
from workers.sink.identity import WriteIdentity
from workers.sink.unpublished import delete_unpublished

TABLE = schema(required(1, "id", LongType()))


def written(folder: Path) -> FilesWritten:
    batch = pa.record_batch([pa.array([1], pa.int64())], schema=arrow_schema(TABLE))
    files = write_rows(Target(f"file:{folder}/t", TABLE), batch)
    return FilesWritten(None, WriteIdentity("p", 0, UUID(int=1)), UUID(int=2), 0, tuple(files))


def test_where_a_task_has_no_message_nothing_was_published_and_the_files_go(tmp_path: Path) -> None:
    message = written(tmp_path)
    beside = tmp_path / "t" / "data" / "another.parquet"
    beside.touch()
    delete_unpublished([None, message], USUAL_ACCESS)
    assert files_below(tmp_path) == [beside]
    delete_unpublished([None, message], USUAL_ACCESS)


def test_where_all_tasks_have_a_message_the_request_may_be_durable_and_they_stay(
    tmp_path: Path,
) -> None:
    message = written(tmp_path)
    delete_unpublished([message, message], USUAL_ACCESS)
    assert len(files_below(tmp_path)) == 1
    delete_unpublished([], USUAL_ACCESS)


def test_what_cannot_be_deleted_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    message = written(tmp_path)
    path = Path(message.files[0].file_path.removeprefix("file:"))
    path.unlink()
    path.mkdir()
    with caplog.at_level(logging.WARNING):
        delete_unpublished([None, message, message], USUAL_ACCESS)
    (said,) = caplog.messages
    assert said.startswith("1 of 1 files of a write that Spark has aborted")
