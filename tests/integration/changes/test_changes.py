"""DELETE, UPDATE and MERGE by Spark: as Iceberg's own runtime leaves a table, and beside others."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from committer.errors import PublishError, SettingsError
from frazil.spark import Changed, MergeBuilder, delete_from, merge_into, update
from tests.integration.changes.cases import (
    CHANGES,
    FEW,
    INSERTED,
    OF_FORMATS,
    Case,
    all_cases,
    create_pair,
)
from tests.integration.changes.harness import ChangesHarness
from tests.support.integration.real_harness import CATALOG
from workers.branches.attempt_identity import AttemptIdentity
from workers.changes.change_options import Command, parse_change_options
from workers.changes.change_run import ChangeRun, kind_of, with_places
from workers.changes.changed_rows import prepare_rows
from workers.changes.changed_table import ChangedTable
from workers.changes.merge_clauses import Clauses
from workers.changes.merged_rows import Merge, prepare_merge
from workers.changes.publish_change import PreparedChange, run_change
from workers.changes.tasks.row_kinds import KIND, RowKind

pytestmark = [
    pytest.mark.server,
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    # PySpark leaves the connection of a `collect` to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*socket:pytest.PytestUnraisableExceptionWarning"),
]


DeleteKinds = Counter[tuple[str, int]]


# --- As Iceberg's runtime ------------------------------------------------------------------------


@pytest.mark.parametrize("case", FEW, ids=str)
def test_changes_leave_what_the_same_statements_of_iceberg_leave(
    harness: ChangesHarness, case: Case
) -> None:
    check_equal(harness, case)


@pytest.mark.heavy
@pytest.mark.parametrize("case", sorted({*all_cases(), *OF_FORMATS} - {*FEW}, key=str), ids=str)
def test_changes_of_every_kind_of_table_leave_what_icebergs_statements_leave(
    harness: ChangesHarness, case: Case
) -> None:
    check_equal(harness, case)


def check_equal(harness: ChangesHarness, case: Case) -> None:
    ours, javas = create_pair(harness, case)
    for by_frazil, by_java in CHANGES:
        by_frazil(harness, ours)
        by_java(harness, javas)
        assert_equal(harness, case, ours, javas)
    # Each goes on with what the other one has written.
    for who, table in ((update_last, ours), (update_last_by_java, javas)):
        who(harness, javas if table == ours else ours)
    assert_equal(harness, case, ours, javas)


def update_last(harness: ChangesHarness, table: str) -> None:
    update(table, {"amount": "1"}, "id in (5, 8)", spark=harness.spark)


def update_last_by_java(harness: ChangesHarness, table: str) -> None:
    harness.sql(f"UPDATE {CATALOG}.{table} SET amount = 1 WHERE id IN (5, 8)")


def assert_equal(harness: ChangesHarness, case: Case, ours: str, javas: str) -> None:
    assert harness.rows(ours) == harness.rows(javas)
    assert_equal_deletes(case, delete_kinds(harness, ours), delete_kinds(harness, javas))
    assert files_by_partition(harness, ours) == files_by_partition(harness, javas)
    assert harness.operations(ours) == harness.operations(javas)
    assert data_formats(harness, ours) == data_formats(harness, javas) == {case.format.upper()}
    if case.version == 3:
        assert lineage(harness, ours) == lineage(harness, javas)


def assert_equal_deletes(case: Case, ours: DeleteKinds, javas: DeleteKinds) -> None:
    if case.format != "avro":
        assert ours == javas
        return
    # Of its Avro delete files Java does not know which data file each is of, so it unites none.
    deleted = [sum(rows * files for (_, rows), files in found.items()) for found in (ours, javas)]
    assert deleted[0] == deleted[1]
    assert {name for name, _ in ours} == {name for name, _ in javas} <= {"AVRO"}


def data_formats(harness: ChangesHarness, table: str) -> set[str]:
    return {task.file.file_format for task in harness.tasks(table)}


def delete_kinds(harness: ChangesHarness, table: str) -> DeleteKinds:
    """Count the delete files: by format, and rows."""
    found = {
        (delete.file_path, delete.content_offset): (delete.file_format, delete.record_count)
        for task in harness.tasks(table)
        for delete in task.delete_files
    }
    return Counter(found.values())


def files_by_partition(harness: ChangesHarness, table: str) -> Counter[tuple[object, ...]]:
    """Count the data files of each partition: of so few rows, no task has to share one."""
    return Counter(task.file.partition for task in harness.tasks(table))


def lineage(harness: ChangesHarness, table: str) -> list[tuple[Any, ...]]:
    """Return id and last change of each row, and its row id if it was there from the start: those
    of rows that the merge inserts depend on the order of files."""
    rows = harness.rows(table, "id, _row_id, _last_updated_sequence_number")
    assert len({row[1] for row in rows}) == len(rows)
    return [(id_, None if id_ in INSERTED else row_id, last) for id_, row_id, last in rows]


# --- Deletes of whole files ----------------------------------------------------------------------


@pytest.fixture
def two_files(harness: ChangesHarness, request: pytest.FixtureRequest) -> str:
    name = f"whole.{request.node.name.partition('[')[0][-60:]}"
    harness.create(name, partitioned_by="region", write_delete_mode="merge-on-read")
    harness.insert(name, "(1, 'a', 10), (2, 'b', 20), (3, 'b', 30)")
    return name


def test_files_whose_rows_all_match_are_deleted_unread(
    harness: ChangesHarness, two_files: str
) -> None:
    by_partition = delete_from(two_files, "region = 'a'", spark=harness.spark)
    by_metrics = delete_from(two_files, F.col("amount") >= 20, spark=harness.spark)
    assert (by_partition.deleted_rows, by_metrics.deleted_rows) == (None, None)
    assert harness.rows(two_files) == []
    harness.insert(two_files, "(1, 'a', 10), (2, 'b', NULL)")
    assert delete_from(two_files, "true", spark=harness.spark).deleted_rows is None
    assert harness.rows(two_files) == []
    assert harness.operations(two_files) == ["append", "delete", "delete", "append", "delete"]


@pytest.mark.heavy
def test_files_of_which_some_rows_match_are_not_deleted_whole(
    harness: ChangesHarness, two_files: str
) -> None:
    changed = delete_from(two_files, "amount >= 30", spark=harness.spark)
    assert changed.deleted_rows == 1
    assert harness.rows(two_files, "id") == [(1,), (2,)]
    # What Iceberg cannot say is no proof: here all rows but those that Spark computes.
    assert delete_from(two_files, "region = 'b' and id % 2 = 1", spark=harness.spark) == Changed()
    assert harness.rows(two_files, "id") == [(1,), (2,)]


@pytest.mark.heavy
def test_a_change_that_matches_nothing_makes_no_snapshot(
    harness: ChangesHarness, two_files: str
) -> None:
    spark = harness.spark
    for where in ("region = 'z'", "amount + 0 > 1000", "false", "amount is null"):
        assert delete_from(two_files, where, spark=spark) == Changed()
        assert update(two_files, {"amount": 1}, where, spark=spark) == Changed()
    nothing = harness.frame([], "id int")
    builder = merge_into(two_files, nothing, "target.id = source.id").when_matched_delete()
    assert builder.execute() == Changed()
    assert harness.operations(two_files) == ["append"]


# --- Merges --------------------------------------------------------------------------------------


@pytest.mark.heavy
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_a_row_that_two_rows_of_the_source_match_stops_a_merge(
    harness: ChangesHarness, mode: str
) -> None:
    name = f"merges.twice_{mode[:5].replace('-', '_')}"
    harness.create(name, write_merge_mode=mode)
    harness.insert(name, "(1, 'a', 10), (2, 'b', 20)")
    before, files = harness.rows(name), files_of(harness, name)
    source = harness.frame([(1, "x", 1), (1, "y", 2), (3, "z", 3)], "id int, region string, n int")
    merge = merge_into(name, source, "target.id = source.id")
    insert = merge.when_not_matched_insert(values={"id": "source.id"})
    updates = insert.when_matched_update("source.n = 1", set={"amount": "source.n"})
    with pytest.raises(PublishError, match="several rows of the source match one row") as caught:
        updates.execute()
    assert "\n" not in str(caught.value)
    assert (harness.rows(name), files_of(harness, name)) == (before, files)
    # Deleted is deleted.
    assert insert.when_matched_delete().execute().deleted_rows == 1
    assert harness.rows(name, "id, amount") == [(2, 20), (3, None)]


def files_of(harness: ChangesHarness, name: str) -> set[Path]:
    """Return the files below a table's folder of data."""
    return set((harness.real.warehouse / name.replace(".", "/") / "data").rglob("*.*"))


@pytest.mark.heavy
def test_all_columns_are_found_by_name_and_those_of_the_source_alone_are_left_out(
    harness: ChangesHarness,
) -> None:
    harness.create("merges.all", write_merge_mode="merge-on-read", version=3)
    harness.insert("merges.all", "(1, 'a', 10), (2, 'b', 20)")
    source = harness.frame(
        [(5, "A", 1, 9), (30, "C", 3, 9)], "Amount int, REGION string, id int, more int"
    )
    on = F.col("target.id") == F.col("source.id")
    merge = merge_into("merges.all", source, on)
    changed = merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert (changed.updated_rows, changed.inserted_rows, changed.deleted_rows) == (1, 1, 0)
    assert harness.rows("merges.all") == [(1, "A", 5), (2, "b", 20), (3, "C", 30)]
    with pytest.raises(SettingsError, match="the source has no column `region`"):
        merge_into("merges.all", source.drop("REGION"), on).when_matched_update_all().execute()


@pytest.mark.heavy
@pytest.mark.parametrize("partitioned_by", ["", "region", "bucket(2, id)"])
def test_few_rows_are_written_into_one_file_of_each_partition(
    harness: ChangesHarness, partitioned_by: str
) -> None:
    name = f"merges.files_{partitioned_by.partition('(')[0] or 'whole'}"
    harness.create(name, partitioned_by=partitioned_by)
    for first in (0, 10, 20):
        harness.insert(name, f"({first}, 'a', 1), ({first + 1}, 'b', 1), ({first + 2}, 'a', 1)")
    before = {task.file.file_path for task in harness.tasks(name)}
    source = harness.spark.range(0, 40).selectExpr("cast(id as int) id", "'a' region", "id amount")
    merge = merge_into(name, source.repartition(4), "target.id = source.id AND source.id % 3 = 0")
    set_ = {"amount": "source.amount"}
    merge.when_matched_update(set=set_).when_not_matched_insert_all("source.id % 3 = 0").execute()
    written = [task.file for task in harness.tasks(name) if task.file.file_path not in before]
    assert set(Counter(file.partition for file in written).values()) == {1}
    assert len(harness.rows(name)) == 9 + 11


@pytest.mark.heavy
def test_rows_of_types_that_spark_has_no_hash_of_are_merged(harness: ChangesHarness) -> None:
    harness.create("merges.maps", "m MAP<STRING, INT>", write_merge_mode="merge-on-read")
    harness.sql(f"INSERT INTO {CATALOG}.merges.maps VALUES (map('a', 1))")
    source = harness.frame([({"b": 2},)], "m map<string, int>")
    merge = merge_into("merges.maps", source, "target.m['a'] = source.m['b'] - 1")
    changed = merge.when_matched_delete().execute()
    assert changed.deleted_rows == 1
    merge_into("merges.maps", source, "false").when_not_matched_insert_all().execute()
    new = merge_into("merges.maps", source, "target.m['b'] = source.m['b']")
    assert new.when_matched_update_all().execute().updated_rows == 1
    assert harness.rows("merges.maps") == [({"b": 2},)]


def test_inserts_alone_are_an_append(harness: ChangesHarness) -> None:
    harness.create("merges.inserts")
    source = harness.frame([(1, "a", 1), (2, "b", 2)], "id int, region string, amount bigint")
    merge = merge_into("merges.inserts", source, "target.id = source.id")
    assert merge.when_not_matched_insert_all("source.id = 1").execute().inserted_rows == 1
    assert merge.when_not_matched_insert_all().execute().inserted_rows == 1
    assert merge.when_not_matched_insert_all().execute() == Changed()
    assert harness.rows("merges.inserts") == [(1, "a", 1), (2, "b", 2)]
    assert harness.operations("merges.inserts") == ["append", "append"]


# --- Values --------------------------------------------------------------------------------------


@pytest.mark.heavy
def test_a_value_that_a_column_cannot_hold_is_refused_in_one_line(harness: ChangesHarness) -> None:
    harness.create("changes.values", "id INT NOT NULL, region STRING, place STRUCT<x: INT>")
    harness.sql(f"INSERT INTO {CATALOG}.changes.values VALUES (1, 'a', NULL)")
    spark = harness.spark
    files = files_of(harness, "changes.values")
    for assigned, problem in (
        ({"id": "region"}, "column `id` of type int cannot hold a value of type string: cast it"),
        ({"color": 1}, "the table has no column `color`"),
        ({"place": "id"}, "column `place` of type struct<x:int> cannot hold a value of type int"),
        ({"place": "null", "place.x": 1}, "column `place.x` is assigned twice"),
        ({}, "expected the columns to update, found none"),
        ({"id": "nullif(id, 1)"}, "column id is required, but the rows hold nulls in it"),
    ):
        with pytest.raises((PublishError, SettingsError), match=problem) as caught:
            update("changes.values", assigned, spark=spark)
        assert "\n" not in str(caught.value)
    with pytest.raises(Exception, match="CAST_OVERFLOW"):
        update("changes.values", {"id": "id + 3000000000"}, spark=spark)
    assert files_of(harness, "changes.values") == files
    update("changes.values", {"place.x": "id + 4", "target.region": F.lit("b")}, spark=spark)
    assert harness.rows("changes.values", "id, region, place.x") == [(1, "b", 5)]


@pytest.mark.heavy
def test_a_value_that_does_not_fit_fails_without_ansi_too(harness: ChangesHarness) -> None:
    harness.create("changes.ansi")
    harness.insert("changes.ansi", "(1, 'a', 10)")
    harness.spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        with pytest.raises(Exception, match="a value does not fit column id"):
            update("changes.ansi", {"id": "amount * 1000000000"}, spark=harness.spark)
        update("changes.ansi", {"id": "amount * 2"}, spark=harness.spark)
    finally:
        harness.spark.conf.unset("spark.sql.ansi.enabled")
    assert harness.rows("changes.ansi") == [(20, "a", 10)]


TYPES = (
    "id INT, b BOOLEAN, l BIGINT, f FLOAT, d DOUBLE, n DECIMAL(38, 10), day DATE, at TIMESTAMP,"
    " clock TIMESTAMP_NTZ, s STRING, bytes BINARY, list ARRAY<INT>, map MAP<STRING, DATE>,"
    " nested STRUCT<a: STRUCT<b: ARRAY<STRING>, c: DOUBLE>, m: MAP<INT, STRUCT<x: BIGINT>>>"
)
OF_EVERY_TYPE = (
    "(1, true, 9223372036854775807, float('-0.0'), double('NaN'), 1234567890123456789.0123456789,"
    " DATE'0001-01-01', TIMESTAMP'2024-03-01 10:00:00.123456', TIMESTAMP_NTZ'1969-12-31 23:59:59',"
    " 'ü\\n', X'00ff', array(1, NULL), map('k', DATE'2024-01-01'),"
    " named_struct('a', named_struct('b', array('x', NULL), 'c', double('-Infinity')),"
    " 'm', map(1, named_struct('x', 5L))))"
)
OF_NULLS = "(2" + ", NULL" * 13 + ")"


def test_rows_that_are_moved_stay_as_they_were_in_every_type(harness: ChangesHarness) -> None:
    harness.create("changes.types", TYPES, version=3)
    harness.insert("changes.types", f"{OF_EVERY_TYPE}, {OF_NULLS}, (3{OF_NULLS[2:]}")
    before = [repr(row) for row in harness.rows("changes.types") if row[0] < 3]
    assert delete_from("changes.types", "id = 3", spark=harness.spark).deleted_rows == 1
    update("changes.types", {"id": "id + 0"}, "id = 2", spark=harness.spark)
    assert harness.operations("changes.types") == ["append", "overwrite", "overwrite"]
    assert [repr(row) for row in harness.rows("changes.types")] == before


# --- Beside others -------------------------------------------------------------------------------


def test_a_branch_is_changed_alone(harness: ChangesHarness) -> None:
    harness.create("changes.branch", write_delete_mode="merge-on-read", version=3)
    harness.insert("changes.branch", "(1, 'a', 10), (2, 'b', 20)")
    harness.sql(f"ALTER TABLE {CATALOG}.changes.branch CREATE BRANCH audit")
    delete_from("changes.branch", "id = 1", spark=harness.spark, branch="audit")
    update("changes.branch", {"amount": 0}, "id = 2", spark=harness.spark, branch="audit")
    assert harness.rows("changes.branch") == [(1, "a", 10), (2, "b", 20)]
    at_branch = harness.sql(f"SELECT * FROM {CATALOG}.changes.branch VERSION AS OF 'audit'")
    assert at_branch == [(2, "b", 0)]


Prepare = Callable[[ChangeRun], PreparedChange | None]


def change_beside(
    harness: ChangesHarness,
    table: str,
    prepare: Prepare,
    foreign: Callable[[], object],
    *,
    command: Command = "delete",
    **options: object,
) -> Changed:
    """Run a change, while another one changes the table after it was read, at the first try."""
    left = [foreign]

    def beside(found: ChangedTable, identity: AttemptIdentity) -> PreparedChange | None:
        prepared = prepare(ChangeRun(harness.spark, found, identity, command))
        if left:
            left.pop()()
        return prepared

    return run_change(parse_change_options(table, options), "changes", beside)


def deleting(where: str) -> Prepare:
    return lambda run: prepare_rows(run, F.expr(where), None)


@pytest.mark.parametrize(
    "mode", ["copy-on-write", pytest.param("merge-on-read", marks=pytest.mark.heavy)]
)
def test_rows_that_others_add_meanwhile_are_a_conflict_told_in_one_line(
    harness: ChangesHarness, mode: str
) -> None:
    name = f"beside.adds_{mode[:4]}"
    harness.create(name, write_delete_mode=mode)
    harness.insert(name, "(1, 'a', 10), (2, 'b', 20)")

    def add() -> None:
        harness.insert(name, "(1, 'c', 30)")

    with pytest.raises(PublishError, match="conflicts with what others have changed") as caught:
        change_beside(harness, name, deleting("id = 1"), add)
    assert "\n" not in str(caught.value)
    live = {task.file.file_path.removeprefix("file:") for task in harness.tasks(name)}
    assert {str(path) for path in files_of(harness, name) if path.suffix != ".crc"} == live
    assert all(one.is_told_only for one in asyncio.run(harness.real.quarantined()))
    # Run again on the table as it is then, it deletes the new row too.
    change_beside(harness, name, deleting("id = 1"), add, retries=1)
    assert harness.rows(name, "id") == [(2,)]


@pytest.mark.parametrize(
    "mode", [pytest.param("copy-on-write", marks=pytest.mark.heavy), "merge-on-read"]
)
def test_rows_that_others_add_meanwhile_are_none_of_a_change_isolated_by_its_snapshot(
    harness: ChangesHarness, mode: str
) -> None:
    name = f"beside.snapshot_{mode[:4]}"
    harness.create(name, write_delete_mode=mode, write_delete_isolation__level="snapshot")
    harness.insert(name, "(1, 'a', 10), (2, 'b', 20)")
    add = lambda: harness.insert(name, "(1, 'c', 30)")  # noqa: E731
    change_beside(harness, name, deleting("id = 1"), add)
    assert harness.rows(name) == [(1, "c", 30), (2, "b", 20)]


@pytest.mark.heavy
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_two_merges_of_disjoint_rows_land_and_of_one_row_one_is_told(
    harness: ChangesHarness, mode: str
) -> None:
    name = f"beside.merges_{mode[:4]}"
    harness.create(name, partitioned_by="region", write_merge_mode=mode, version=3)
    harness.insert(name, "(1, 'a', 10), (2, 'b', 20), (3, 'a', 30)")

    def merge(region: str, add: int) -> MergeBuilder:
        source = harness.frame([(1, add), (2, add), (4, add)], "id int, amount bigint")
        on = f"target.id = source.id and target.region = '{region}'"
        builder = merge_into(name, source, on)
        return builder.when_matched_update(set={"amount": "target.amount + source.amount"})

    def merging(region: str, add: int) -> Prepare:
        return lambda run: prepare_merge(run, prepared_by(merge(region, add)))

    change_beside(harness, name, merging("a", 1), merge("b", 2).execute, command="merge")
    assert harness.rows(name) == [(1, "a", 11), (2, "b", 22), (3, "a", 30)]
    with pytest.raises(PublishError, match="conflicts with what others have changed"):
        change_beside(harness, name, merging("a", 100), merge("a", 3).execute, command="merge")
    assert harness.rows(name) == [(1, "a", 14), (2, "b", 22), (3, "a", 30)]
    change_beside(
        harness, name, merging("a", 100), merge("a", 5).execute, command="merge", retries=1
    )
    assert harness.rows(name) == [(1, "a", 119), (2, "b", 22), (3, "a", 30)]


def prepared_by(builder: MergeBuilder) -> Merge:
    """Return what a builder would run."""
    return Merge(builder._source, builder._on, Clauses(builder._clauses))


# --- What fails ----------------------------------------------------------------------------------


@pytest.mark.heavy
def test_a_job_that_fails_leaves_no_file_of_the_tasks_that_had_ended(
    harness: ChangesHarness,
) -> None:
    harness.create("fails.late")
    folder = str(harness.real.warehouse / "fails" / "late" / "data")

    def fail_behind_the_other(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.column("id")[0].as_py() == 1:
                while not list(Path(folder).rglob("*.parquet")):
                    time.sleep(0.05)
                time.sleep(1)  # so that the other task has ended; else it deletes its own
                raise RuntimeError("the second task fails")
            yield batch

    new = harness.spark.range(0, 2, 1, 2).selectExpr("cast(id as int)", "'a' region", "id amount")
    rows = new.mapInArrow(fail_behind_the_other, "id int, region string, amount bigint")

    def prepare(found: ChangedTable, identity: AttemptIdentity) -> PreparedChange | None:
        run = ChangeRun(harness.spark, found, identity, "merge")
        run.write(with_places(rows.withColumn(KIND, kind_of(RowKind.INSERT))))
        raise AssertionError("the second task was to fail")

    with pytest.raises(PySparkException, match="the second task fails"):
        run_change(parse_change_options("fails.late", {}), "changes", prepare)
    assert {path for path in files_of(harness, "fails.late") if path.is_file()} == set()
