"""Delete files written anew by Spark: the rows that Iceberg's runtime and DuckDB read before and
after, Iceberg's own procedure on an equal table, and other writers beside it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from committer.errors import PublishError
from committer.iceberg.entry.data_file import DataFile, DataFileContent
from committer.iceberg.manifest.manifest import decode_manifest
from committer.iceberg.scan.snapshot_manifests import snapshot_manifests
from committer.iceberg.values.types import LongType, StringType
from frazil.spark import (
    convert_equality_deletes,
    keep_in_shape,
    rewrite_data_files,
    rewrite_position_deletes,
)
from tests.integration.changes.harness import ChangesHarness
from tests.support.integration.real_harness import CATALOG
from tests.support.integration.sink_writes import SinkWriter, create_table, rows_by_duckdb, run_of
from tests.support.workers.tables import optional, required, schema
from tests.support.workers.write_target import spec_of
from workers.compaction.deletes.delete_job import DeletesJob
from workers.compaction.deletes.delete_task import DeletesWritten
from workers.compaction.rewrite_result import DeletesResult
from workers.files.file_system import local_path

pytestmark = [
    pytest.mark.server,
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    # PySpark leaves the connection of a `collect` to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*socket:pytest.PytestUnraisableExceptionWarning"),
]

MERGE_ON_READ = {
    "write_delete_mode": "merge-on-read",
    "write_distribution__mode": "none",
    "write_delete_granularity": "partition",
}
REGIONS = schema(
    required(1, "id", LongType()),
    required(2, "region", StringType()),
    optional(3, "text", StringType()),
)
FRAME = pa.schema([("id", pa.int64()), ("region", pa.string()), ("text", pa.string())])
COLUMNS = "id, region, text"


def live_deletes(harness: ChangesHarness, table: str) -> list[DataFile]:
    metadata = harness.metadata(table)
    return [
        entry.data_file
        for row in snapshot_manifests(metadata.current_snapshot, read)
        if row.content
        for entry in decode_manifest(read(row.manifest_path), manifest_file=row).entries
        if entry.is_live
    ]


def read(location: str) -> bytes:
    return local_path(location).read_bytes()


def kinds(harness: ChangesHarness, table: str) -> tuple[int, int, int]:
    """Count vectors, files of position deletes, files of equality deletes."""
    files = live_deletes(harness, table)
    vectors = sum(file.is_deletion_vector for file in files)
    by_value = sum(file.content is DataFileContent.EQUALITY_DELETES for file in files)
    return vectors, len(files) - vectors - by_value, by_value


# --- Position deletes ----------------------------------------------------------------------------


def with_position_deletes(harness: ChangesHarness, name: str, **about: str) -> str:
    """Create a table of version 2 in two partitions, with some position delete files in each."""
    table = f"db.{name}"
    harness.create(table, partitioned_by="region", version=2, **{**MERGE_ON_READ, **about})
    for at in range(3):
        rows = ", ".join(f"({at * 10 + n}, '{'ew'[n % 2]}', {n})" for n in range(8))
        harness.insert(table, rows)
    for gone in (0, 1, 12, 13, 24, 25):
        harness.sql(f"DELETE FROM {CATALOG}.{table} WHERE id = {gone}")
    return table


@pytest.mark.heavy
@pytest.mark.parametrize("granularity", ["partition", "file"])
def test_position_deletes_become_as_few_as_by_icebergs_procedure(
    harness: ChangesHarness, granularity: str
) -> None:
    about = {"write_delete_granularity": granularity}
    ours = with_position_deletes(harness, f"ours_{granularity}", **about)
    theirs = with_position_deletes(harness, f"theirs_{granularity}", **about)
    before = harness.rows(ours)
    # A delete file that is left of data that was rewritten applies to nothing.
    for table in (ours, theirs):
        harness.sql(
            f"CALL {CATALOG}.system.rewrite_data_files(table => '{table}', where => 'id < 8',"
            " options => map('rewrite-all', 'true', 'use-starting-sequence-number', 'false'))"
        )
    [expected] = harness.sql(
        f"CALL {CATALOG}.system.rewrite_position_delete_files(table => '{theirs}',"
        " options => map('rewrite-all', 'true'))"
    )
    result = rewrite_position_deletes(harness.spark, ours, options={"rewrite-all": True})
    assert (result.rewritten_delete_files, result.added_delete_files) == expected[:2]
    assert result.added_bytes > 0 and result.failed_groups == ()
    rows = [sum(f.record_count for f in live_deletes(harness, one)) for one in (ours, theirs)]
    assert rows[0] == rows[1] and kinds(harness, ours) == kinds(harness, theirs)
    assert harness.rows(ours) == harness.rows(theirs) == before
    assert rows_by_duckdb(harness.real, ours, "id") == sorted((row[0],) for row in before)
    assert harness.operations(ours)[-1] == "replace"
    assert rewrite_position_deletes(harness.spark, ours) == DeletesResult()


@pytest.mark.heavy
def test_position_deletes_of_an_upgraded_table_become_vectors(harness: ChangesHarness) -> None:
    table = with_position_deletes(harness, "upgraded")
    harness.sql(f"ALTER TABLE {CATALOG}.{table} SET TBLPROPERTIES ('format-version' = '3')")
    harness.sql(f"DELETE FROM {CATALOG}.{table} WHERE id = 2")
    before = harness.rows(table)
    result = rewrite_position_deletes(harness.spark, table)
    assert kinds(harness, table)[1:] == (0, 0)
    assert result.added_delete_files > 0 and not result.failed_groups
    assert harness.rows(table) == before
    assert rows_by_duckdb(harness.real, table, "id") == sorted((row[0],) for row in before)


# --- Equality deletes ----------------------------------------------------------------------------


def upserted(
    harness: ChangesHarness, name: str, version: int, by: str, **properties: str
) -> tuple[str, SinkWriter]:
    """Create a table, and upsert some keys of each region again and again."""
    table = f"db.{name}"
    spec = replace(spec_of(*(((2, "region", "identity"),) if by else ())), spec_id=0)
    about = {"write.delete.mode": "merge-on-read", **properties}
    asyncio.run(
        create_table(
            harness.real, table, REGIONS, spec=spec, format_version=version, properties=about
        )
    )
    writer = SinkWriter(harness.real, table, FRAME)
    for at in range(5):
        upsert(writer, at, range(at, at + 6))
    harness.sql(f"REFRESH TABLE {CATALOG}.{table}")
    harness.sql(f"DELETE FROM {CATALOG}.{table} WHERE id = 7")
    return table, writer


def upsert(writer: SinkWriter, at: int, keys: range) -> None:
    rows = [{"id": key, "region": "ew"[key % 2], "text": f"{at}"} for key in keys]
    options = {"upsert-keys": "id, region", "wait": "committed"}
    writer.micro_batch(run_of("changes", at), [rows], options)


@pytest.mark.parametrize(
    ("version", "by", "granularity"),
    [
        (2, "region", "partition"),
        pytest.param(2, "", "file", marks=pytest.mark.heavy),
        pytest.param(3, "region", "file", marks=pytest.mark.heavy),
        (3, "", "file"),
    ],
)
def test_equality_deletes_become_positions_and_every_reader_reads_the_same_rows(
    harness: ChangesHarness, version: int, by: str, granularity: str
) -> None:
    about = {"write.delete.granularity": granularity}
    table, writer = upserted(harness, f"values_{version}{by}", version, by, **about)
    before, seen = harness.rows(table), rows_by_duckdb(harness.real, table, COLUMNS)
    assert [tuple(row) for row in seen] == sorted(before) and len(before) == 9
    assert kinds(harness, table)[2] == (10 if by else 5)
    result = convert_equality_deletes(harness.spark, table)
    assert result.failed_groups == () and len(result.snapshot_ids) == 1
    vectors, positions, by_value = kinds(harness, table)
    assert by_value == 0 and (vectors == 0) == (version == 2) and (positions == 0) == (version > 2)
    assert harness.rows(table) == before
    assert rows_by_duckdb(harness.real, table, COLUMNS) == seen
    assert harness.operations(table)[-1] == "replace"
    # A later equality delete deletes by value again, and leaves newer rows.
    upsert(writer, 9, range(3, 8))
    again = harness.rows(table)
    assert convert_equality_deletes(harness.spark, table).failed_groups == ()
    assert harness.rows(table) == again and len(again) == 10
    assert rows_by_duckdb(harness.real, table, COLUMNS) == sorted(again)
    assert convert_equality_deletes(harness.spark, table) == DeletesResult()
    quarantined = asyncio.run(harness.real.quarantined())
    assert [each for each in quarantined if each.table == table] == []


@pytest.mark.parametrize("version", [pytest.param(2, marks=pytest.mark.heavy), 3])
def test_a_conversion_of_rows_that_a_compaction_moves_meanwhile_is_lost_and_done_again(
    harness: ChangesHarness, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    about = {"write.delete.granularity": "partition"}
    table, writer = upserted(harness, f"moved{version}", version, "region", **about)
    before = harness.rows(table)
    run = DeletesJob.run

    def beside(job: DeletesJob) -> list[DeletesWritten]:
        written = run(job)
        if job.group.tasks[0].file.partition == ("e",):
            # The data file that the conversion deletes rows of is gone.
            rewrite_data_files(
                harness.spark, table, where="region = 'e'", options={"rewrite-all": True}
            )
            upsert(writer, 20, range(100, 102))
        return written

    def convert(**options: Any) -> DeletesResult:
        return convert_equality_deletes(harness.spark, table, options=options)

    with monkeypatch.context() as patched:
        patched.setattr(DeletesJob, "run", beside)
        lost = convert()
    assert [one.in_doubt for one in lost.failed_groups] == [False] * 2
    assert "conflict" in lost.failed_groups[0].message and lost.snapshot_ids == ()
    added = [(100, "e", "20"), (101, "w", "20")]
    expected = sorted([*before, *added])
    assert sorted(harness.rows(table)) == expected
    with monkeypatch.context() as patched:
        patched.setattr(DeletesJob, "run", beside)
        with pytest.raises(PublishError, match="nothing was changed"):
            convert(**{"partial-progress.enabled": False})
    assert sorted(harness.rows(table)) == expected
    assert convert().failed_groups == () and kinds(harness, table)[2] == 0
    assert sorted(harness.rows(table)) == expected
    assert rows_by_duckdb(harness.real, table, COLUMNS) == expected
    listed = harness.sql(f"SELECT file_path FROM {CATALOG}.{table}.all_delete_files")
    folder = local_path(harness.metadata(table).location) / "data"
    assert {*folder.rglob("0*-deletes.*")} <= {local_path(path) for (path,) in listed}


def test_rows_that_others_delete_meanwhile_stay_deleted_and_no_file_is_left_behind(
    harness: ChangesHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, _ = upserted(harness, "united", 3, "")
    run = DeletesJob.run

    def beside(job: DeletesJob) -> list[DeletesWritten]:
        written = run(job)
        harness.sql(f"DELETE FROM {CATALOG}.{table} WHERE id < 5")
        return written

    expected = [row for row in harness.rows(table) if row[0] >= 5]
    with monkeypatch.context() as patched:
        patched.setattr(DeletesJob, "run", beside)
        assert convert_equality_deletes(harness.spark, table).failed_groups == ()
    assert harness.rows(table) == expected and kinds(harness, table)[1:] == (0, 0)
    assert rows_by_duckdb(harness.real, table, COLUMNS) == sorted(expected)
    listed = harness.sql(f"SELECT file_path FROM {CATALOG}.{table}.all_delete_files")
    folder = local_path(harness.metadata(table).location) / "data"
    assert {*folder.rglob("*.puffin")} <= {local_path(path) for (path,) in listed}


def test_a_compaction_leaves_no_delete_behind_where_it_is_asked_to(
    harness: ChangesHarness,
) -> None:
    table, writer = upserted(harness, "dangling", 2, "region")
    before = harness.rows(table)
    upsert(writer, 9, range(3))
    rows = sorted([row for row in before if row[0] > 2] + [(n, "ew"[n % 2], "9") for n in range(3)])
    options = {"rewrite-all": True, "remove-dangling-deletes": True}
    result = rewrite_data_files(harness.spark, table, options=options)
    # The deletes of the last upsert have a higher number than the rewritten data.
    left = kinds(harness, table)
    assert result.removed_delete_files > 0 and sum(left) == 0
    assert sorted(harness.rows(table)) == rows == rows_by_duckdb(harness.real, table, COLUMNS)


@pytest.mark.heavy
def test_tables_that_are_kept_in_shape_have_their_equality_deletes_converted(
    harness: ChangesHarness,
) -> None:
    table, _ = upserted(harness, "shape", 3, "region")
    before = harness.rows(table)
    for threshold, left in ((6, 10), (5, 0)):
        keep_in_shape(
            harness.spark,
            [table],
            small_file_threshold=100,
            equality_delete_threshold=threshold,
            rounds=1,
        )
        assert kinds(harness, table)[2] == left
    assert harness.rows(table) == before
