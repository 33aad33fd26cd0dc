"""Readers as Spark uses them, without Spark: made, pickled, and read split by split."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle

from committer.errors import NotFoundError
from pyspark_frazil import DefaultSource
from tests.support.builders.fixture_catalog import NAME, fixture_catalog
from tests.support.builders.fixtures import expected
from workers.session import configured_source

APPENDS = "v2_merged_manifests"  # eight appends, 13 files
SECRET = "open-sesame"
TABLES = (APPENDS, "v2_position_deletes", "v2_empty")


@pytest.fixture
def options(tmp_path: Path) -> dict[str, str]:
    """Return settings with what no task may get: the name of the file stands for a secret."""
    catalog = tmp_path / f"{SECRET}.db"
    fixture_catalog(catalog, TABLES)
    return {"catalog.uri": f"sqlite:///{catalog}", "catalog.name": NAME}


def source(options: dict[str, str], table: str = APPENDS, **more: str) -> DefaultSource:
    return DefaultSource({**options, "path": f"db.{table}", **more})


def planned(found: DefaultSource) -> tuple[Any, list[bytes]]:
    """Return the reader that a task gets, and what each task gets besides."""
    reader = found.reader(found.schema())
    sent = cloudpickle.dumps((reader, found))
    assert b".parquet" not in sent, "the plan of all tasks"
    splits = [cloudpickle.dumps(split) for split in reader.partitions()]
    for each in (sent, *splits):
        assert SECRET.encode() not in each
    return pickle.loads(sent)[0], splits


def rows_of(reader: Any, splits: list[bytes]) -> int:
    return sum(batch.num_rows for split in splits for batch in reader.read(pickle.loads(split)))


@pytest.mark.parametrize("table", TABLES)
def test_tasks_read_the_rows_and_get_no_settings(options: dict[str, str], table: str) -> None:
    reader, splits = planned(source(options, table))
    assert rows_of(reader, splits) == expected(table)["table_rows"]["count"]


def test_options_of_a_session_do_not_travel_either(options: dict[str, str]) -> None:
    found = configured_source(options)({"path": f"db.{APPENDS}"})
    reader, splits = planned(found)
    assert rows_of(reader, splits) == 24


def test_a_source_keeps_its_options_until_it_is_planned(options: dict[str, str]) -> None:
    found = source(options)
    schema = found.schema()
    sent = pickle.loads(cloudpickle.dumps(found))
    assert (
        rows_of(
            sent.reader(schema), [cloudpickle.dumps(p) for p in sent.reader(schema).partitions()]
        )
        == 24
    )


def test_a_task_gets_its_own_files_only(options: dict[str, str]) -> None:
    _, splits = planned(source(options, **{"split-size": "1"}))
    assert len(splits) == 13
    named = [split.count(b".parquet") for split in splits]
    assert set(named) == {1}


def test_metadata_tables_are_read_by_a_task_without_settings(options: dict[str, str]) -> None:
    for kind, rows in (("snapshots", 8), ("files", 13), ("manifests", None)):
        reader, splits = planned(source(options, f"{APPENDS}${kind}"))
        assert len(splits) == 1
        assert rows is None or rows_of(reader, splits) == rows


def test_a_stream_sends_all_facts_with_its_splits(options: dict[str, str]) -> None:
    found = source(options, **{"streaming-max-files-per-micro-batch": "5"})
    reader: Any = found.streamReader(found.schema())
    sent = cloudpickle.dumps((reader, found))
    assert SECRET.encode() not in sent
    task = pickle.loads(sent)[0]
    start, rows = reader.initialOffset(), []
    while (end := reader.latestOffset()) != start:
        splits = [cloudpickle.dumps(split) for split in reader.partitions(start, end)]
        assert all(SECRET.encode() not in split for split in splits)
        rows.append(rows_of(task, splits))
        assert reader.partitions(end, end) == []
        start = end
    reader.stop()
    assert sum(rows) == 24 and len(rows) == 3


def test_a_restarted_stream_is_told_its_place_before_it_is_asked(options: dict[str, str]) -> None:
    """PySpark 4.1 asks for an empty range where the checkpoint is, and then for the newest."""
    limit = {"streaming-max-files-per-micro-batch": "5"}
    first: Any = source(options, **limit).streamReader(source(options).schema())
    start = first.initialOffset()
    end = first.latestOffset()
    first.stop()
    again: Any = source(options, **limit).streamReader(source(options).schema())
    assert again.partitions(end, end) == []
    following = again.latestOffset()
    assert following == again.latestOffset(end, None) != end != start
    again.stop()


def test_a_stream_that_reads_what_is_there_now_goes_no_further(options: dict[str, str]) -> None:
    found: Any = source(options).streamReader(source(options).schema())
    found.prepareForTriggerAvailableNow()
    last = found.latestOffset()
    assert last["snapshot_id"] == expected(APPENDS)["current_snapshot_id"]
    found.stop()


def test_the_first_line_of_an_error_says_what_is_wrong(options: dict[str, str]) -> None:
    with pytest.raises(RuntimeError) as raised:
        source(options, **{"snapshot-id": "7"}).schema()
    assert isinstance(raised.value.__cause__, NotFoundError)
    assert str(raised.value.__cause__).startswith(f"db.{APPENDS}: the table has no snapshot 7")
