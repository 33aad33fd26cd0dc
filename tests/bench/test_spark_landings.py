"""When micro-batches of Spark are in a table, and how long that took."""

from __future__ import annotations

import json
import math
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bench.spark.landings import LandingWatch, epochs_of, first_seen, freshness_ms


def ledger(epochs: str) -> dict[str, object]:
    return {"properties": {"frazil.producer.q1": json.dumps({"v": 1, "epochs": epochs})}}


def snapshot(query: str, epoch: int) -> dict[str, object]:
    summary = {"spark.sql.streaming.queryId": query, "spark.sql.streaming.epochId": str(epoch)}
    return {"summary": {"operation": "append", **summary}}


def test_micro_batches_are_known_by_frazils_ledger_and_by_icebergs_summaries() -> None:
    assert epochs_of(ledger("0-2,4")) == {("q1", 0), ("q1", 1), ("q1", 2), ("q1", 4)}
    theirs = {"snapshots": [snapshot("q2", 0), {"summary": {"operation": "append"}}, {}]}
    assert epochs_of(theirs) == {("q2", 0)}


def test_of_a_ledger_only_the_main_branch_counts() -> None:
    text = json.dumps({"v": 1, "epochs": "0"})
    assert epochs_of({"properties": {"frazil.producer@b.q1": text, "owner": "me"}}) == set()


def test_freshness_is_from_the_trigger_to_the_first_sight_of_its_rows() -> None:
    one, two, three = ("q1", 0), ("q1", 1), ("q1", 2)
    seen = first_seen([(100.0, [one]), (180.0, [one, two]), (250.0, [two, one])])
    assert seen == {one: 100.0, two: 180.0}
    found = freshness_ms({one: 60.0, two: 100.0, three: 200.0}, seen)
    assert found == [40.0, 80.0, math.inf]


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "catalog.db", isolation_level=None)) as catalog:
        catalog.execute(
            "CREATE TABLE iceberg_tables (table_namespace, table_name, metadata_location)"
        )
        catalog.execute("INSERT INTO iceberg_tables VALUES ('db', 't', '0'), ('db', 'u', '2-9')")
        yield catalog


def test_each_move_of_the_pointer_is_seen_and_late_micro_batches_are_waited_for(
    catalog: sqlite3.Connection, tmp_path: Path
) -> None:
    # In place of files: a location that is the ledger's epochs itself.
    def read(location: str) -> bytes:
        return json.dumps(ledger(location)).encode()

    with LandingWatch(tmp_path / "catalog.db", "db.t", read) as watch:
        first = watch.landed_ms([("q1", 0)])
        assert first.keys() == {("q1", 0)}
        before_ms = time.time() * 1000
        catalog.execute("UPDATE iceberg_tables SET metadata_location = '0-1' WHERE table_name='t'")
        second = watch.landed_ms([("q1", 1)])
    assert second.keys() == {("q1", 0), ("q1", 1)}
    assert second["q1", 0] == first["q1", 0] <= before_ms <= second["q1", 1]
