"""Dealing the input out: every row once, in order, and read by Spark in that order."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from committer.demo.writers.application_plan import (
    ApplicationPlan,
    BatchPlan,
    deal,
    parse_batch_plan,
    parse_plan,
    plan_streams,
    print_plan,
)
from committer.demo.writers.flight_replay import plan_input, stream_folder, write_input


@pytest.mark.parametrize(
    ("rows", "streams", "files_per_stream"),
    [(336_776, 4, 15), (20_000, 4, 3), (7, 3, 2), (1, 4, 15), (5, 8, 1), (1000, 7, 13)],
)
def test_every_row_is_in_one_file(rows: int, streams: int, files_per_stream: int) -> None:
    files = plan_input(rows, streams, files_per_stream)
    covered = sorted(number for file in files for number in range(file.start, file.stop))
    assert covered == [*range(rows)]
    assert all(file.stop > file.start for file in files)


def test_files_are_of_one_size_and_dealt_out_in_turn() -> None:
    files = plan_input(100, 4, 5)
    assert {file.stop - file.start for file in files} == {5}
    for stream in range(4):
        mine = [file for file in files if file.stream == stream]
        assert [file.number for file in mine] == [0, 1, 2, 3, 4]
        assert [file.start for file in mine] == [5 * stream + 20 * number for number in range(5)]


def test_files_of_a_stream_are_as_old_as_their_order(tmp_path: Path) -> None:
    rows = pa.table({"n": [*range(20)]})
    write_input(rows, plan_input(20, 2, 3), tmp_path)
    for stream, expected in ((0, [0, 1, 2, 6, 7, 8, 9, 13, 14, 15]), (1, None)):
        folder = stream_folder(tmp_path, stream)
        by_age = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime)
        assert by_age == sorted(folder.iterdir())
        assert len({path.stat().st_mtime for path in by_age}) == 3
        read = [n for path in by_age for n in pq.ParquetFile(path).read()["n"].to_pylist()]
        assert expected is None or read == expected


@pytest.mark.parametrize(("streams", "applications"), [(4, 2), (5, 3), (1, 1), (16, 4)])
def test_every_stream_runs_in_one_application(streams: int, applications: int) -> None:
    plans = plan_streams(streams, Path("/input"), Path("/checkpoints"))
    dealt = deal(plans, applications)
    assert len(dealt) == applications
    assert all(dealt)
    assert sorted(plan.name for group in dealt for plan in group) == [one.name for one in plans]
    assert len({plan.checkpoint for plan in plans}) == len({plan.folder for plan in plans})


def test_an_application_reads_its_plan_as_it_was_made() -> None:
    plan = ApplicationPlan(
        name="spark-1",
        table="demo.flights",
        schema="a int",
        events="/e",
        spark_confs={"k": "v"},
        streams=tuple(plan_streams(2, Path("/h"), Path("/c"))),
    )
    assert parse_plan(print_plan(plan)) == plan


def test_the_batch_beside_the_streams_reads_its_plan_as_it_was_made() -> None:
    plan = BatchPlan(
        name="spark-batch",
        table="demo.latest",
        events="/e",
        spark_confs={"k": "v"},
        input="/a home/changes",
        first_correction=80,
        snapshots_before=6,
    )
    assert parse_batch_plan(print_plan(plan)) == plan
