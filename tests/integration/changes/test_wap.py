"""Write, audit, publish from Spark: rows that are staged or on a branch until they are looked at.

The tables are read, and what is staged is published, by Iceberg's own runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark.errors import PySparkException

from committer.errors import SettingsError
from committer.iceberg.metadata.snapshot import Snapshot
from frazil.spark import delete_from, merge_into, sink, update, upsert_stream
from tests.integration.changes.harness import ChangesHarness
from tests.support.integration.real_harness import CATALOG
from workers.spark.releases import has_stream_writer

pytestmark = [
    pytest.mark.server,
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    # PySpark leaves the connection of a `collect` to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*socket:pytest.PytestUnraisableExceptionWarning"),
]

SCHEMA = "id int, region string, amount long"
ID, BRANCH = "spark.wap.id", "spark.wap.branch"
OLD = [(1, "a", 10), (2, "b", 20)]

Row = tuple[Any, ...]


@contextmanager
def confs(harness: ChangesHarness, **by_name: str) -> Iterator[None]:
    """Set confs of the session for as long as the block runs: `id`, `branch`."""
    names = {"id": ID, "branch": BRANCH}
    for name, value in by_name.items():
        harness.spark.conf.set(names[name], value)
    try:
        yield
    finally:
        for name in by_name:
            harness.spark.conf.unset(names[name])


@pytest.fixture
def table(harness: ChangesHarness) -> str:
    """Return a table whose writes are audited, with two rows in main."""
    name = f"wap.t{uuid4().hex[:8]}"
    harness.create(name, write_wap_enabled="true")
    harness.insert(name, "(1, 'a', 10), (2, 'b', 20)")
    return name


def append(harness: ChangesHarness, table: str, rows: list[Row], **options: str) -> None:
    written(harness, rows, **options).mode("append").save(table)


def written(harness: ChangesHarness, rows: list[Row], **options: str) -> Any:
    writer = harness.frame(rows, SCHEMA).write.format("frazil").option("wait", "committed")
    return writer.options(**harness.settings(), **options)


def on_branch(harness: ChangesHarness, table: str, branch: str = "audit") -> list[Row]:
    rows = harness.sql(f"SELECT * FROM {CATALOG}.{table} VERSION AS OF '{branch}'")
    return sorted(rows, key=str)


def staged(harness: ChangesHarness, table: str, wap_id: str) -> list[Snapshot]:
    snapshots = harness.metadata(table).snapshots
    return [one for one in snapshots if (one.summary or {}).get("wap.id") == wap_id]


def read(harness: ChangesHarness, table: str, **options: str) -> list[Row]:
    reader = harness.spark.read.format("frazil").options(**harness.settings(), **options)
    return sorted((tuple(row) for row in reader.load(table).collect()), key=str)


# --- Staged --------------------------------------------------------------------------------------


def test_an_append_is_staged_by_the_sessions_id_and_icebergs_call_publishes_it(
    harness: ChangesHarness, table: str
) -> None:
    with confs(harness, id="load-1"):
        append(harness, table, [(3, "c", 30)])
    assert harness.rows(table) == OLD
    (snapshot,) = staged(harness, table, "load-1")
    at = harness.sql(f"SELECT * FROM {CATALOG}.{table} VERSION AS OF {snapshot.snapshot_id}")
    assert sorted(at) == [*OLD, (3, "c", 30)]
    harness.sql(f"CALL {CATALOG}.system.publish_changes('{table}', 'load-1')")
    assert harness.rows(table) == [*OLD, (3, "c", 30)]


def overwritten(harness: ChangesHarness, table: str) -> None:
    written(harness, [(9, "z", 90)]).mode("overwrite").save(table)


def deleted(harness: ChangesHarness, table: str) -> None:
    delete_from(table, "id = 1", spark=harness.spark)


def updated(harness: ChangesHarness, table: str) -> None:
    update(table, {"amount": 0}, "id = 1", spark=harness.spark)


def merged(harness: ChangesHarness, table: str) -> None:
    source = harness.frame([(1, "a", 11), (3, "c", 30)], SCHEMA)
    merge = merge_into(table, source, "target.id = source.id")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()


Change = Callable[[ChangesHarness, str], None]
CHANGES: dict[Change, list[Row]] = {
    overwritten: [(9, "z", 90)],
    deleted: [(2, "b", 20)],
    updated: [(1, "a", 0), (2, "b", 20)],
    merged: [(1, "a", 11), (2, "b", 20), (3, "c", 30)],
}
FEW = [
    pytest.param(change, marks=() if change is merged else pytest.mark.heavy) for change in CHANGES
]


@pytest.mark.parametrize("change", FEW)
def test_a_change_is_staged_and_published(
    harness: ChangesHarness, table: str, change: Change
) -> None:
    with confs(harness, id="load-1"):
        change(harness, table)
    assert harness.rows(table) == OLD
    assert len(staged(harness, table, "load-1")) == 1
    harness.sql(f"CALL {CATALOG}.system.publish_changes('{table}', 'load-1')")
    assert harness.rows(table) == CHANGES[change]


@pytest.mark.parametrize("queue", [{}, {"queue.url": "none"}], ids=["queue", "table"])
def test_the_snapshot_of_a_staged_change_is_the_staged_one(
    harness: ChangesHarness, table: str, queue: dict[str, str]
) -> None:
    """The queue carries its id; the ledger of the table names the head of the branch instead."""
    changed = delete_from(table, "id = 1", spark=harness.spark, wap_id="load-1", **queue)
    (snapshot,) = staged(harness, table, "load-1")
    assert changed.snapshot_id == (None if queue else snapshot.snapshot_id)
    assert changed.deleted_rows == 1


def test_options_stage_whatever_the_table_and_the_session_say(harness: ChangesHarness) -> None:
    harness.create("wap.options")
    harness.insert("wap.options", "(1, 'a', 10), (2, 'b', 20)")
    with confs(harness, id="of-the-session"):
        append(harness, "wap.options", [(3, "c", 30)], **{"wap-id": "of-the-write"})
    append(harness, "wap.options", [(4, "d", 40)], **{"stage-only": "true"})
    assert harness.rows("wap.options") == OLD
    assert len(staged(harness, "wap.options", "of-the-write")) == 1
    assert len(harness.metadata("wap.options").snapshots) == 3
    # Without `write.wap.enabled` the session's conf does not count, as in Iceberg.
    with confs(harness, id="of-the-session"):
        append(harness, "wap.options", [(5, "e", 50)])
    assert harness.rows("wap.options") == [*OLD, (5, "e", 50)]


# --- On a branch ---------------------------------------------------------------------------------


@pytest.mark.heavy
def test_rows_of_every_kind_of_write_land_on_the_sessions_branch(
    harness: ChangesHarness, table: str
) -> None:
    with confs(harness, branch="audit"):
        append(harness, table, [(3, "c", 30)])
    assert (harness.rows(table), on_branch(harness, table)) == (OLD, [*OLD, (3, "c", 30)])
    with confs(harness, branch="audit"):
        updated(harness, table)
        delete_from(table, "id = 2", spark=harness.spark)
    assert on_branch(harness, table) == [(1, "a", 0), (3, "c", 30)]
    with confs(harness, branch="audit"):
        merged(harness, table)
    assert on_branch(harness, table) == [(1, "a", 11), (3, "c", 30)]
    with confs(harness, branch="audit"):
        overwritten(harness, table)
    assert on_branch(harness, table) == [(9, "z", 90)]
    assert harness.rows(table) == OLD


@pytest.mark.parametrize("change", FEW)
def test_a_change_creates_the_branch_from_main(
    harness: ChangesHarness, table: str, change: Change
) -> None:
    with confs(harness, branch="audit"):
        change(harness, table)
    assert on_branch(harness, table) == CHANGES[change]
    assert harness.rows(table) == OLD


def test_the_first_rows_of_a_table_may_land_on_a_branch(harness: ChangesHarness) -> None:
    harness.create("wap.first", write_wap_enabled="true")
    with confs(harness, branch="audit"):
        append(harness, "wap.first", OLD)
    assert (harness.rows("wap.first"), on_branch(harness, "wap.first")) == ([], OLD)
    harness.sql(f"CALL {CATALOG}.system.fast_forward('wap.first', 'main', 'audit')")
    assert harness.rows("wap.first") == OLD


def test_an_option_names_another_branch_than_the_session(
    harness: ChangesHarness, table: str
) -> None:
    with confs(harness, branch="audit"):
        append(harness, table, [(3, "c", 30)], branch="main")
        delete_from(table, "id = 3", spark=harness.spark, branch="main")
    assert harness.rows(table) == OLD
    assert "audit" not in harness.metadata(table).refs


def test_both_confs_exclude_each_other(harness: ChangesHarness, table: str) -> None:
    count = len(harness.metadata(table).snapshots)
    with confs(harness, id="load-1", branch="audit"):
        with pytest.raises(PySparkException, match="exclude each other") as caught:
            append(harness, table, [(3, "c", 30)])
        assert "`spark.wap.id` (`load-1`)" in str(caught.value)
        with pytest.raises(SettingsError, match="exclude each other"):
            deleted(harness, table)
    assert len(harness.metadata(table).snapshots) == count


# --- Streams -------------------------------------------------------------------------------------


def stream_of(harness: ChangesHarness, folder: Path, rows: str) -> Any:
    source = folder / "source"
    source.mkdir(exist_ok=True)
    (source / f"{len(list(source.iterdir()))}.json").write_text(rows)
    return harness.spark.readStream.schema(SCHEMA).json(str(source))


NEW = '{"id": 3, "region": "c", "amount": 30}\n'


@pytest.mark.skipif(not has_stream_writer(), reason="PySpark 4.0 has no stream writer in Python")
@pytest.mark.parametrize("conf", [pytest.param("id", marks=pytest.mark.heavy), "branch"])
def test_a_stream_lands_as_its_session_says_when_it_starts(
    harness: ChangesHarness, table: str, tmp_path: Path, conf: str
) -> None:
    writer = stream_of(harness, tmp_path, NEW).writeStream.format("frazil")
    writer = writer.options(**harness.settings(), wait="committed")
    writer = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    with confs(harness, **{conf: "audit"}):
        query = writer.start(table)
    query.awaitTermination()
    assert harness.rows(table) == OLD
    if conf == "id":
        assert len(staged(harness, table, "audit")) == 1
    else:
        assert on_branch(harness, table) == [*OLD, (3, "c", 30)]


def test_a_foreach_batch_lands_on_the_sessions_branch(
    harness: ChangesHarness, table: str, tmp_path: Path
) -> None:
    writer = stream_of(harness, tmp_path, NEW).writeStream.foreachBatch(
        sink(table, wait="committed", **harness.settings())
    )
    writer = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    with confs(harness, branch="audit"):
        writer.start().awaitTermination()
    assert (harness.rows(table), on_branch(harness, table)) == (OLD, [*OLD, (3, "c", 30)])


@pytest.mark.parametrize(
    "deletes", [pytest.param("equality", marks=pytest.mark.heavy), "positions"]
)
def test_an_upsert_lands_on_the_sessions_branch_and_cannot_be_staged(
    harness: ChangesHarness, table: str, tmp_path: Path, deletes: str
) -> None:
    rows = stream_of(harness, tmp_path, '{"id": 1, "region": "a", "amount": 99}\n')

    def upsert(checkpoint: str) -> None:
        writer = upsert_stream(rows, "id", deletes=deletes)
        writer = writer.options(**harness.settings(), wait="committed")
        writer = writer.option("checkpointLocation", str(tmp_path / checkpoint))
        writer.trigger(availableNow=True).start(table).awaitTermination()

    with confs(harness, branch="audit"):
        upsert("branch")
    assert (harness.rows(table), on_branch(harness, table)) == (OLD, [(1, "a", 99), OLD[1]])
    with (
        confs(harness, id="load-1"),
        pytest.raises(PySparkException, match=r"a streaming upsert into table .* cannot be staged"),
    ):
        upsert("staged")
    assert harness.rows(table) == OLD


# --- Reads ---------------------------------------------------------------------------------------


@pytest.mark.heavy
def test_a_read_in_a_session_with_a_branch_says_what_it_reads(
    harness: ChangesHarness, table: str
) -> None:
    with confs(harness, branch="audit"):
        # As long as the branch is not there, Iceberg reads main, too.
        assert read(harness, table) == OLD
        append(harness, table, [(3, "c", 30)])
        with pytest.raises(PySparkException, match="this read names no state of the table"):
            read(harness, table)
        assert read(harness, table, branch="audit") == [*OLD, (3, "c", 30)]
        assert read(harness, table, branch="main") == OLD
        # Iceberg's runtime learns the conf in time.
        assert harness.rows(table) == [*OLD, (3, "c", 30)]
    assert read(harness, table) == OLD
