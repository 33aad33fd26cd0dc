"""Compaction by Spark: the rows that Iceberg's runtime reads before and after, and other writers
beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from committer.errors import PublishError, SettingsError
from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.scan.plan_files import plan_files
from committer.iceberg.values.single_value import decode_value
from committer.iceberg.values.types import IntegerType
from frazil.spark import keep_in_shape, rewrite_data_files
from tests.integration.changes.harness import ChangesHarness
from tests.support.integration.real_harness import CATALOG
from workers.compaction import rewrite_data_files as rewriting
from workers.compaction.group_job import GroupJob
from workers.compaction.rewrite_result import RewriteResult
from workers.files.file_system import local_path

pytestmark = [
    pytest.mark.server,
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    # PySpark leaves the connection of a `collect` to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*socket:pytest.PytestUnraisableExceptionWarning"),
]

ALL: Mapping[str, object] = {"rewrite-all": True}
ROWS = 1_024
LINEAGE = "*, _row_id, _last_updated_sequence_number"
COLUMNS = "id INT, region STRING, amount BIGINT, price DECIMAL(9,2), at TIMESTAMP"


def filled(harness: ChangesHarness, name: str, *, appends: int = 3, **about: Any) -> str:
    """Create a table with some small files in each of two regions, and deleted rows."""
    table = f"packs.{name}"
    harness.create(table, COLUMNS, **about)
    for at in range(appends):
        rows = ", ".join(
            f"({at * 10 + n}, '{'ew'[n % 2]}', {n}, {n}.25, TIMESTAMP'2024-01-0{n + 1} 10:00:00')"
            for n in range(6)
        )
        harness.insert(table, rows)
    return table


def compacted(harness: ChangesHarness, table: str, **about: Any) -> RewriteResult:
    return rewrite_data_files(harness.spark, table, **about)


def live(harness: ChangesHarness, table: str) -> list[DataFile]:
    tasks = plan_files(harness.metadata(table), read=read, with_metrics=True)
    return [task.file for task in tasks]


def read(location: str) -> bytes:
    return local_path(location).read_bytes()


def on_disk(harness: ChangesHarness, table: str) -> set[Path]:
    folder = local_path(harness.metadata(table).location) / "data"
    return set(folder.rglob("*.parquet"))


# --- The same rows -------------------------------------------------------------------------------


KINDS = [(version, by) for version in (1, 2, 3) for by in ("", "region", "bucket(2, id)")]
FEW = [(3, "bucket(2, id)")]


@pytest.mark.parametrize(("version", "partitioned_by"), FEW)
def test_bin_packing_keeps_every_row_and_its_lineage(
    harness: ChangesHarness, version: int, partitioned_by: str
) -> None:
    check_packed(harness, version, partitioned_by)


@pytest.mark.heavy
@pytest.mark.parametrize(("version", "partitioned_by"), sorted(set(KINDS) - set(FEW)))
def test_bin_packing_keeps_the_rows_of_every_kind_of_table(
    harness: ChangesHarness, version: int, partitioned_by: str
) -> None:
    check_packed(harness, version, partitioned_by)


def check_packed(harness: ChangesHarness, version: int, partitioned_by: str) -> None:
    name = f"pack{version}{partitioned_by[:6] or 'whole'}"
    about: dict[str, Any] = {"write_delete_mode": "merge-on-read"} if version > 1 else {}
    table = filled(harness, name, version=version, partitioned_by=partitioned_by, **about)
    harness.sql(f"DELETE FROM {CATALOG}.{table} WHERE id IN (3, 14)")
    columns = LINEAGE if version == 3 else "*"
    before, files = harness.rows(table, columns), live(harness, table)
    result = compacted(harness, table, options=ALL)
    assert harness.rows(table, columns) == before
    after = live(harness, table)
    assert len(after) == (2 if partitioned_by else 1)
    assert all(not task.delete_files for task in harness.tasks(table))
    assert (result.rewritten_files, result.added_files) == (len(files), len(after))
    assert result.rewritten_bytes == sum(file.file_size_in_bytes for file in files)
    assert result.added_bytes == sum(file.file_size_in_bytes for file in after)
    assert not result.failed_groups and harness.operations(table)[-1] == "replace"


# --- In order ------------------------------------------------------------------------------------


def numbers(rows: int, appends: int) -> Iterator[str]:
    """Yield the rows of some appends: pairs of numbers, strewn over all of them."""
    every = [(n * 37 % rows, n * 61 % rows) for n in range(rows)]
    for at in range(appends):
        yield ", ".join(f"({x}, {y}, 'n{x % 7}', {x})" for x, y in every[at::appends])


def strewn(harness: ChangesHarness, name: str, **about: Any) -> str:
    table = f"packs.{name}"
    harness.create(table, "x INT, y INT, name STRING, z BIGINT", version=3, **about)
    for rows in numbers(ROWS, 4):
        harness.insert(table, rows)
    return table


def bounds(file: DataFile, field_id: int) -> tuple[int, int]:
    low, high = (file.lower_bounds or {})[field_id], (file.upper_bounds or {})[field_id]
    kind = IntegerType()
    return int(str(decode_value(kind, low))), int(str(decode_value(kind, high)))


def overlaps(files: list[DataFile], field_id: int) -> int:
    """Count the pairs of files that may have a value in common."""
    found = [bounds(file, field_id) for file in files]
    return sum(
        one[0] <= other[1] and other[0] <= one[1]
        for at, one in enumerate(found)
        for other in found[at + 1 :]
    )


def width(files: list[DataFile], field_id: int) -> float:
    """Return which part of all values a file may have, on average."""
    found = [bounds(file, field_id) for file in files]
    return sum(high - low for low, high in found) / len(found) / (ROWS - 1)


def in_files_of(harness: ChangesHarness, table: str, count: int) -> Mapping[str, object]:
    """Return options by which the table becomes about that many files."""
    target = sum(file.file_size_in_bytes for file in live(harness, table)) // count
    return {**ALL, "target-file-size-bytes": target}


def test_sorted_files_are_in_the_tables_order_and_say_so(harness: ChangesHarness) -> None:
    table = strewn(harness, "sorted")
    harness.sql(f"ALTER TABLE {CATALOG}.{table} WRITE ORDERED BY name DESC NULLS LAST, x")
    before = harness.rows(table, LINEAGE)
    compacted(harness, table, strategy="sort", options=ALL)
    assert harness.rows(table, LINEAGE) == before
    [file] = live(harness, table)
    assert file.sort_order_id == harness.metadata(table).default_sort_order_id == 1
    written = pq.read_table(local_path(file.file_path), columns=["name", "x"]).to_pylist()
    rows = [(row["name"], row["x"]) for row in written]
    assert rows == sorted(sorted(rows, key=itemgetter(1)), key=itemgetter(0), reverse=True)


@pytest.mark.heavy
def test_another_order_is_not_recorded_as_the_tables(harness: ChangesHarness) -> None:
    table = strewn(harness, "ranges", partitioned_by="bucket(1, x)")
    before = harness.rows(table)
    options = in_files_of(harness, table, 4)
    compacted(harness, table, strategy="sort", sort_order="truncate(10, y), x", options=options)
    assert harness.rows(table) == before
    files = live(harness, table)
    assert len(files) == 4 and {file.sort_order_id for file in files} == {0}
    # A value of `truncate` may end one file and begin the next.
    assert overlaps(files, 2) <= 3 and overlaps(files, 1) == 6
    with pytest.raises(SettingsError, match="sort order"):
        compacted(harness, table, strategy="sort")


@pytest.mark.heavy
def test_files_along_a_z_order_overlap_less_by_each_column(harness: ChangesHarness) -> None:
    table = strewn(harness, "zorder")
    before = harness.rows(table, LINEAGE)
    assert min(width(live(harness, table), field_id) for field_id in (1, 2)) > 0.95
    options = in_files_of(harness, table, 4)
    compacted(harness, table, strategy="zorder", zorder_columns=["x", "y"], options=options)
    assert harness.rows(table, LINEAGE) == before
    files = live(harness, table)
    assert len(files) == 4
    # One of the two columns alone has widths of 0.25 and 1.
    assert max(width(files, field_id) for field_id in (1, 2)) < 0.8


# --- Beside others -------------------------------------------------------------------------------


@pytest.mark.heavy
def test_a_group_that_loses_its_race_costs_no_other_group(
    harness: ChangesHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = filled(harness, "races", version=3, partitioned_by="region")
    run = GroupJob.run

    def beside(job: GroupJob) -> list[DataFile]:
        files = run(job)
        if job.group.tasks[0].file.partition == ("e",):
            harness.sql(f"DELETE FROM {CATALOG}.{table} WHERE id = 2")
            harness.insert(table, "(99, 'e', 9, 9.25, NULL), (98, 'w', 9, 9.25, NULL)")
        return files

    monkeypatch.setattr(GroupJob, "run", beside)
    harness.sql(
        f"ALTER TABLE {CATALOG}.{table} SET TBLPROPERTIES ('write.delete.mode'='merge-on-read')"
    )
    before = set(harness.rows(table, "id, _row_id"))
    result = compacted(harness, table, options=ALL)
    monkeypatch.undo()
    assert (result.rewritten_files, result.added_files, len(result.snapshot_ids)) == (3, 1, 1)
    [failed] = result.failed_groups
    assert (failed.files, failed.in_doubt) == (3, False) and "conflict" in failed.message
    after = set(harness.rows(table, "id, _row_id"))
    assert {row for row in before if row[0] != 2} == {row for row in after if row[0] < 90}
    # Of what lost, nothing is left behind: what the table had, has, and no more.
    listed = harness.sql(f"SELECT file_path FROM {CATALOG}.{table}.all_data_files")
    assert on_disk(harness, table) <= {local_path(path) for (path,) in listed}
    # The next look gets the group.
    assert compacted(harness, table, options=ALL).failed_groups == ()
    assert len(live(harness, table)) == 2


@pytest.mark.heavy
def test_a_compaction_that_is_to_land_whole_lands_not_at_all(
    harness: ChangesHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = filled(harness, "whole", version=2, partitioned_by="region")
    run = GroupJob.run

    def beside(job: GroupJob) -> list[DataFile]:
        files = run(job)
        if job.group.tasks[0].file.partition == ("e",):
            harness.sql(f"DELETE FROM {CATALOG}.{table} WHERE id = 2")
        return files

    options = {**ALL, "partial-progress.enabled": False}
    with monkeypatch.context() as patched:
        patched.setattr(GroupJob, "run", beside)
        with pytest.raises(PublishError, match="nothing was changed"):
            compacted(harness, table, options=options)
    rows = harness.rows(table)
    listed = harness.sql(f"SELECT file_path FROM {CATALOG}.{table}.all_data_files")
    assert on_disk(harness, table) == {local_path(path) for (path,) in listed}
    assert compacted(harness, table, options=options).added_files == 2
    assert harness.rows(table) == rows


@pytest.mark.heavy
def test_a_job_that_fails_costs_its_own_group(harness: ChangesHarness) -> None:
    table = filled(harness, "failing", version=2, partitioned_by="region", appends=6)
    # The last one of its group: the job's other tasks have ended by then, but for one perhaps.
    *_, lost = (file for file in live(harness, table) if file.partition == ("w",))
    away = local_path(lost.file_path).rename(f"{local_path(lost.file_path)}.away")
    options = {**ALL, "target-file-size-bytes": lost.file_size_in_bytes}
    before = on_disk(harness, table)
    result = compacted(harness, table, options=options)
    [failed] = result.failed_groups
    assert failed.files == result.rewritten_files == 6
    assert "NotFoundError" in failed.message and not failed.in_doubt
    assert len(on_disk(harness, table) - before) <= result.added_files + 1
    before = on_disk(harness, table)
    with pytest.raises(PublishError, match="did not land"):
        compacted(harness, table, options={**options, "partial-progress.enabled": False})
    assert len(on_disk(harness, table) - before) <= 1
    away.rename(local_path(lost.file_path))
    assert len(harness.rows(table)) == 36


def test_tables_are_kept_in_shape_a_partition_a_round(harness: ChangesHarness) -> None:
    table = filled(harness, "shape", version=2, partitioned_by="region")
    rows = harness.rows(table)
    size = sum(file.file_size_in_bytes for file in live(harness, table)) // 2
    about: dict[str, Any] = {"small_file_threshold": 3, "budget_bytes": size + size // 4}
    for left in (4, 2):
        keep_in_shape(harness.spark, ["packs.is_not_there", table], rounds=1, **about)
        assert len(live(harness, table)) == left
    assert harness.rows(table) == rows


@pytest.mark.heavy
def test_requests_of_a_few_groups_each_land_by_themselves(
    harness: ChangesHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = filled(harness, "parts", version=2, partitioned_by="id", appends=2)
    before = harness.rows(table)
    monkeypatch.setattr(rewriting, "REMOVED_FILES_MAX", 5)
    options = {**ALL, "partial-progress.max-commits": 3}
    result = compacted(harness, table, where="id < 15", options=options)
    assert result.rewritten_files == 11 and len(result.snapshot_ids) == 3
    assert harness.rows(table) == before
    assert harness.operations(table)[-3:] == ["replace"] * 3


def test_nothing_to_do_is_no_commit(harness: ChangesHarness) -> None:
    table = "packs.nothing"
    harness.create(table, COLUMNS)
    assert compacted(harness, table, options=ALL) == RewriteResult()
    harness.insert(table, "(1, 'e', 1, 1.25, NULL)")
    assert compacted(harness, table) == RewriteResult()
    assert harness.operations(table) == ["append"]
