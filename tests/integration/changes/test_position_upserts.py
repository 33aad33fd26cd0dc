"""Upserts that look their keys up, by Spark and a real committer: rows are those of a model, a
dictionary by key, as Iceberg Java and DuckDB read them; beside other writers too.

Micro-batches are handed to the function of `sink` as `foreachBatch` does. `test_spark_writer.py`
and `test_spark_driver_killed.py` have whole queries.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from committer.errors import PublishError
from frazil.spark import merge_into, sink, upsert_stream
from tests.integration.changes.harness import ChangesHarness
from tests.support.integration.duckdb_iceberg import duckdb_with_iceberg
from tests.support.integration.readers import local
from workers.changes.change_run import ChangeRun
from workers.changes.publish_change import PreparedChange
from workers.changes.upserts.upserted_rows import prepare_upsert
from workers.changes.upserts.winners import Winners
from workers.files.file_system import local_path
from workers.settings.options import parse_options
from workers.streams.position_upserts import Tries, upsert_micro_batch

pytestmark = [
    pytest.mark.server,
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    # PySpark leaves the connection of a `collect` to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*socket:pytest.PytestUnraisableExceptionWarning"),
]

COLUMNS = "id BIGINT NOT NULL, region STRING, text STRING"
FRAME = "id int, region string, text string, op string, at bigint"
OPTIONS = {
    "upsert-keys": "id",
    "upsert-delete-column": "op in ('d', 'D')",
    "upsert-sequence-column": "at",
    "upsert-deletes": "positions",
    "upsert-partitions": "2",
}
KEYS = 10
Row = tuple[Any, ...]


def upsert(harness: ChangesHarness, name: str, rows: list[Row], of: str, epoch: int) -> None:
    sink(name, producer=of, **OPTIONS)(harness.frame(rows, FRAME), epoch)


@dataclass(slots=True)
class Changes:
    """Random changes of a stream's own keys, and the rows that they make. A key moves to other
    regions."""

    chance: random.Random
    keys: range
    rows: dict[int, Row] = field(default_factory=dict)
    clock: int = 0

    def micro_batch(self) -> list[Row]:
        found: list[Row] = []
        for _ in range(self.chance.randrange(1, 12)):
            self.clock += 1
            key, is_deleted = self.chance.choice(self.keys), self.chance.random() < 0.3
            row = (key, self.chance.choice("ABC"), f"{self.clock}")
            if is_deleted:
                self.rows.pop(key, None)
                found.append((key, None, None, self.chance.choice("dD"), self.clock))
            else:
                self.rows[key] = row
                found.append((*row, self.chance.choice(["c", None]), self.clock))
        self.chance.shuffle(found)
        return found


@pytest.mark.parametrize(
    ("partitioned_by", "version", "rounds"),
    [
        ("", 3, 3),
        *(
            pytest.param(by, version, 5, marks=pytest.mark.heavy)
            for by, version in (
                ("", 2),
                ("", 3),
                ("bucket(3, id)", 2),
                ("bucket(3, id)", 3),
                ("region", 2),
                ("region", 3),
            )
        ),
    ],
)
def test_rows_are_a_models_after_random_upserts_of_two_streams_with_replays(
    harness: ChangesHarness, partitioned_by: str, version: int, rounds: int
) -> None:
    kind = partitioned_by.partition("(")[0] or "plain"
    draws = f"positions.{kind}_{version}"
    name = f"{draws}_{rounds}"
    granularity = "partition" if partitioned_by else "file"
    harness.create(
        name,
        COLUMNS,
        partitioned_by=partitioned_by,
        version=version,
        write_delete_granularity=granularity,
    )
    chance = random.Random(draws)
    streams = [Changes(chance, range(half, KEYS, 2)) for half in (0, 1)]
    sent: list[tuple[str, int, list[Row]]] = []
    for number in range(2 * rounds):
        half, epoch = number % 2, number // 2
        sent.append((f"{name}-{half}", epoch, streams[half].micro_batch()))
        upsert(harness, name, sent[-1][2], *sent[-1][:2])
        if chance.random() < 0.4:
            stream, epoch, rows = chance.choice(sent[-3:])
            before = harness.metadata(name).last_sequence_number
            upsert(harness, name, rows, stream, epoch)
            assert harness.metadata(name).last_sequence_number == before
    expected = sorted(row for stream in streams for row in stream.rows.values())
    assert harness.rows(name) == expected
    assert rows_by_duckdb(harness, name) == expected
    assert not equality_deletes(harness, name)


def rows_by_duckdb(harness: ChangesHarness, name: str) -> list[Row]:
    location = local(harness.metadata_location(name))
    with duckdb_with_iceberg() as connection:
        query = "SELECT id, region, text FROM iceberg_scan(?) ORDER BY ALL"
        return list(connection.execute(query, [location]).fetchall())


def equality_deletes(harness: ChangesHarness, name: str) -> list[str]:
    deletes = (file for task in harness.tasks(name) for file in task.delete_files)
    return [file.file_path for file in deletes if file.equality_ids]


def files_of(harness: ChangesHarness, name: str) -> set[str]:
    """Return the files below a table's folder of data."""
    folder: Path = harness.real.warehouse / name.replace(".", "/") / "data"
    return {str(path) for path in folder.rglob("*.*") if path.suffix != ".crc"}


def live_files(harness: ChangesHarness, name: str) -> set[str]:
    tasks = harness.tasks(name)
    found = {task.file.file_path for task in tasks}
    found |= {file.file_path for task in tasks for file in task.delete_files}
    return {str(local_path(path)) for path in found}


# --- Beside others -------------------------------------------------------------------------------


def upsert_beside(
    harness: ChangesHarness,
    name: str,
    rows: list[Row],
    foreign: Callable[[], object],
) -> int:
    """Upsert rows, while another writer changes the table after they were looked up, at the first
    try; return how often they were."""
    tries: list[object] = []

    def beside(change: ChangeRun, winners: Winners) -> PreparedChange | None:
        prepared = prepare_upsert(change, winners)
        tries.append(prepared)
        if len(tries) == 1:
            foreign()
        return prepared

    try_to_upsert(harness, name, rows, Tries(beside))
    return len(tries)


def try_to_upsert(harness: ChangesHarness, name: str, rows: list[Row], tries: Tries) -> None:
    given = {"table": name, "producer": f"{name}-beside", "epoch": "0", **OPTIONS}
    options = parse_options(given, streaming=False)
    upsert_micro_batch(harness.frame(rows, FRAME), options, None, tries)


def new(key: int, text: str) -> Row:
    return (key, "A", text, "c", 1)


@pytest.mark.parametrize("version", [pytest.param(2, marks=pytest.mark.heavy), 3])
def test_a_key_that_another_stream_writes_meanwhile_has_one_row(
    harness: ChangesHarness, version: int
) -> None:
    name = f"beside.same_{version}"
    harness.create(name, COLUMNS, version=version)
    upsert(harness, name, [new(1, "a"), new(2, "a")], "first", 0)

    def other() -> None:
        upsert(harness, name, [new(1, "b"), new(3, "b")], "other", 0)

    tries = upsert_beside(harness, name, [new(1, "c"), new(3, "c")], other)
    assert tries == 2
    assert harness.rows(name, "id, text") == [(1, "c"), (2, "a"), (3, "c")]
    # The files of the first try are deleted.
    assert files_of(harness, name) == live_files(harness, name)


@pytest.mark.heavy
def test_vectors_of_disjoint_keys_are_united_without_another_look(
    harness: ChangesHarness,
) -> None:
    name = "beside.disjoint"
    harness.create(name, COLUMNS, version=3)
    harness.insert(name, ", ".join(f"({key}, 'A', 'old')" for key in range(1, 9)))

    def other() -> None:
        upsert(harness, name, [new(7, "b"), new(8, "b")], "other", 0)

    tries = upsert_beside(harness, name, [new(1, "c"), new(3, "c")], other)
    assert tries == 1
    changed = {1: "c", 3: "c", 7: "b", 8: "b"}
    assert harness.rows(name, "id, text") == [(k, changed.get(k, "old")) for k in range(1, 9)]


@pytest.mark.heavy
def test_rows_that_are_compacted_meanwhile_are_looked_up_again(
    harness: ChangesHarness,
) -> None:
    name = "beside.compacted"
    harness.create(name, COLUMNS, version=3)
    for key in (1, 2):
        harness.insert(name, f"({key}, 'A', 'old')")

    def compact() -> None:
        harness.sql(
            f"CALL frazil.system.rewrite_data_files(table => '{name}',"
            " options => map('rewrite-all', 'true'))"
        )

    assert upsert_beside(harness, name, [new(1, "c")], compact) == 2
    assert harness.rows(name, "id, text") == [(1, "c"), (2, "old")]


@pytest.mark.heavy
def test_streams_of_disjoint_keys_all_land_at_once(harness: ChangesHarness) -> None:
    name = "beside.streams"
    harness.create(name, COLUMNS, version=3)
    harness.insert(name, ", ".join(f"({key}, 'A', 'old')" for key in range(12)))
    errors: list[BaseException] = []

    def stream(number: int) -> None:
        try:
            for epoch in range(3):
                rows = [new(key, f"{epoch}") for key in range(number, 12, 3)]
                upsert(harness, name, rows, f"stream-{number}", epoch)
        except BaseException as error:  # noqa: BLE001  # shown below
            errors.append(error)

    threads = [threading.Thread(target=stream, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert harness.rows(name, "id, text") == sorted(
        ((key, "2") for key in range(12)), key=lambda row: str(row[0])
    )


@pytest.mark.heavy
def test_a_writer_that_conflicts_all_the_time_is_told(
    harness: ChangesHarness,
) -> None:
    name = "beside.always"
    harness.create(name, COLUMNS, version=3)
    epochs = iter(range(9))

    def beside(change: ChangeRun, winners: Winners) -> PreparedChange | None:
        prepared = prepare_upsert(change, winners)
        upsert(harness, name, [new(1, "b")], "other", next(epochs))
        return prepared

    with pytest.raises(PublishError, match=r"micro-batch 0 of .* conflicted 2 times.*: added") as e:
        try_to_upsert(harness, name, [new(1, "c")], Tries(beside, 2))
    assert "\n" not in str(e.value)
    assert harness.rows(name, "id, text") == [(1, "b")]


# --- Rows of a table -----------------------------------------------------------------------------


@pytest.mark.heavy
def test_only_files_that_may_have_the_keys_are_read_and_row_ids_stay(
    harness: ChangesHarness,
) -> None:
    name = "positions.pruned"
    harness.create(name, COLUMNS, version=3)
    for first in (0, 100, 200):
        harness.insert(name, f"({first}, 'A', 'old'), ({first + 1}, 'A', 'old')")
    before = dict(harness.rows(name, "id, _row_id"))
    [(away, _)] = harness.sql(
        f"SELECT _file, count(*) FROM frazil.{name} WHERE id >= 200 GROUP BY _file"
    )
    path = Path(away.removeprefix("file:"))
    content = path.read_bytes()
    path.unlink()
    upsert(harness, name, [new(100, "new"), new(50, "new"), (1, None, None, "d", 1)], "q", 0)
    path.write_bytes(content)
    rows = harness.rows(name, "id, text")
    assert dict(rows) == {0: "old", 50: "new", 100: "new", 101: "old", 200: "old", 201: "old"}
    after = dict(harness.rows(name, "id, _row_id"))
    assert {key: after[key] for key in (0, 100, 101)} == {k: before[k] for k in (0, 100, 101)}
    assert len(set(after.values())) == len(after)


@pytest.mark.heavy
def test_all_rows_of_a_key_that_was_appended_twice_are_replaced(harness: ChangesHarness) -> None:
    name = "positions.twice"
    harness.create(name, COLUMNS)
    harness.insert(name, "(1, 'A', 'x'), (1, 'B', 'y'), (2, 'A', 'x')")
    harness.insert(name, "(1, 'C', 'z'), (2, 'A', 'y')")
    upsert(harness, name, [new(1, "new"), (2, None, None, "d", 1)], "q", 0)
    assert harness.rows(name, "id, text") == [(1, "new")]


@pytest.mark.heavy
def test_a_micro_batch_that_changes_nothing_makes_no_snapshot(harness: ChangesHarness) -> None:
    name = "positions.nothing"
    harness.create(name, COLUMNS)
    upsert(harness, name, [], "q", 0)
    upsert(harness, name, [(2, None, None, "d", 1)], "q", 1)
    assert harness.metadata(name).snapshots == ()
    upsert(harness, name, [new(1, "a")], "q", 2)
    assert harness.rows(name, "id") == [(1,)]


def test_rows_that_do_not_fit_are_told_in_one_line_and_leave_nothing(
    harness: ChangesHarness,
) -> None:
    name = "positions.misfits"
    harness.create(name, COLUMNS)
    for rows, problem in (
        ([new(1, "a"), new(1, "b")], "a key has several different rows"),
        ([(None, "A", "a", "c", 1)], "column id is required, but the rows hold nulls"),
    ):
        with pytest.raises(PublishError, match=problem) as caught:
            upsert(harness, name, rows, "q", 0)
        assert "\n" not in str(caught.value)
    assert files_of(harness, name) == set()


@pytest.mark.heavy
def test_the_table_is_created_and_merges_go_on_with_it(harness: ChangesHarness) -> None:
    name = "positions.created"
    frame = harness.frame([(1, "a"), (2, "b")], "id bigint, text string")
    options = {"upsert-keys": "id", "upsert-deletes": "positions", "create": "true"}
    sink(name, producer="q", **options)(frame, 0)
    changed = harness.frame([(1, "c")], "id bigint, text string")
    merge_into(name, changed, "target.id = source.id").when_matched_update_all().execute()
    sink(name, producer="q", **options)(harness.frame([(2, "d")], "id bigint, text string"), 1)
    assert harness.rows(name) == [(1, "c"), (2, "d")]


def test_the_table_says_how_old_rows_are_deleted(harness: ChangesHarness, tmp_path: Path) -> None:
    name = "positions.wanted"
    harness.create(name, COLUMNS, version=3, frazil_upsert_deletes="positions")
    harness.insert(name, "(1, 'A', 'old'), (2, 'A', 'old')")
    (tmp_path / "in").mkdir()
    (tmp_path / "in/rows.json").write_text('{"id": 1, "region": "A", "text": "new"}\n')
    rows = harness.spark.readStream.schema("id int, region string, text string")
    writer = upsert_stream(rows.json(str(tmp_path / "in")), "id")
    writer = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    query = writer.start(name)
    query.awaitTermination()
    assert harness.rows(name, "id, text") == [(1, "new"), (2, "old")]
    deletes = [file for task in harness.tasks(name) for file in task.delete_files]
    assert deletes and all(file.is_deletion_vector for file in deletes)
