"""A streaming upsert while the table is compacted and its deletes are converted, over and over.

Each look at the table shows the rows of a dictionary after some micro-batch, and never an earlier
one again; no micro-batch fails. Readers: Iceberg's runtime meanwhile, DuckDB as well at the end.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from committer.iceberg.entry.data_file import DataFileContent
from committer.iceberg.manifest.manifest import decode_manifest
from committer.iceberg.scan.snapshot_manifests import snapshot_manifests
from frazil.spark import (
    convert_equality_deletes,
    keep_in_shape,
    rewrite_data_files,
    rewrite_position_deletes,
    upsert_stream,
)
from tests.integration.changes.harness import ChangesHarness
from tests.support.integration.sink_writes import rows_by_duckdb
from workers.files.file_system import local_path

pytestmark = [
    pytest.mark.server,
    pytest.mark.spark,
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    # PySpark leaves the connection of a `collect` to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*socket:pytest.PytestUnraisableExceptionWarning"),
]

KEYS = 40
Rows = tuple[tuple[int, str], ...]


@dataclass(slots=True)
class Changes:
    """Random changes of some keys, a file for each micro-batch, and the rows after each."""

    chance: random.Random
    folder: Path
    rows: dict[int, str] = field(default_factory=dict)
    states: list[Rows] = field(default_factory=lambda: [()])
    clock: int = 0

    def write(self, micro_batches: int) -> None:
        self.folder.mkdir()
        for number in range(micro_batches):
            lines = [self._change() for _ in range(self.chance.randrange(2, 12))]
            self.chance.shuffle(lines)
            path = self.folder / f"{number:05}.json"
            path.write_text("\n".join(json.dumps(line) for line in lines))
            # Spark takes the oldest first.
            os.utime(path, (1_700_000_000 + number,) * 2)
            self.states.append(tuple(sorted(self.rows.items())))

    def _change(self) -> dict[str, object]:
        self.clock += 1
        key = self.chance.randrange(KEYS)
        if self.chance.random() < 0.25:
            self.rows.pop(key, None)
            return {"id": key, "op": "d", "at": self.clock}
        self.rows[key] = f"n{self.clock}"
        return {"id": key, "name": self.rows[key], "op": "u", "at": self.clock}


@pytest.mark.heavy
def test_rows_are_a_dictionarys_whatever_upkeep_runs_beside_the_stream(
    harness: ChangesHarness, tmp_path: Path
) -> None:
    check(harness, tmp_path, "shaped.short", 3, "bucket(2, id)", micro_batches=30)


@pytest.mark.heavy
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("by", ["", "bucket(3, id)"])
def test_a_long_stream_beside_upkeep(
    harness: ChangesHarness, tmp_path: Path, version: int, by: str
) -> None:
    check(harness, tmp_path, f"shaped.long_{version}{by[:6]}", version, by, micro_batches=150)


def check(
    harness: ChangesHarness, folder: Path, table: str, version: int, by: str, *, micro_batches: int
) -> None:
    harness.create(table, "id BIGINT, name STRING", partitioned_by=by, version=version)
    changes = Changes(random.Random(table), folder / "changes")
    changes.write(micro_batches)
    query = started(harness, table, changes.folder, folder / "checkpoint")
    seen, rounds = 0, 0
    upkeep = cycle(upkeep_of(harness, table))
    while query.isActive:
        next(upkeep)()
        rounds += 1
        found = tuple(harness.rows(table))
        seen = changes.states.index(tuple(sorted(found)), seen)
    query.awaitTermination()
    for each in upkeep_of(harness, table):
        each()
        assert sorted(harness.rows(table)) == list(changes.states[-1])
    assert rows_by_duckdb(harness.real, table, "*") == list(changes.states[-1])
    assert equality_deletes(harness, table) == 0 < rounds
    operations = harness.operations(table)
    print(
        f"{rounds} rounds of upkeep beside {micro_batches} micro-batches: {len(operations)}"
        f" snapshots, of which {operations.count('replace')} are upkeep's"
    )
    assert operations.count("replace") > 3


def started(harness: ChangesHarness, table: str, source: Path, checkpoint: Path) -> Any:
    changes = (
        harness.spark.readStream.schema("id LONG, name STRING, op STRING, at LONG")
        .option("maxFilesPerTrigger", 1)
        .json(str(source))
    )
    writer = upsert_stream(changes, "id", delete_column="op = 'd'", sequence_column="at")
    return (
        writer.option("checkpointLocation", str(checkpoint))
        .option("wait", "committed")
        .options(**harness.settings())
        .trigger(availableNow=True)
        .start(table)
    )


def upkeep_of(harness: ChangesHarness, table: str) -> list[Callable[[], object]]:
    """Return what is run in turn. A group that loses a race is no error: the next turn has it."""
    spark = harness.spark
    everything = {"rewrite-all": True, "remove-dangling-deletes": True}
    return [
        lambda: convert_equality_deletes(spark, table),
        lambda: rewrite_data_files(spark, table, options={"min-input-files": 2}),
        lambda: keep_in_shape(
            spark, [table], small_file_threshold=3, equality_delete_threshold=2, rounds=1
        ),
        lambda: rewrite_data_files(spark, table, options=everything),
        lambda: rewrite_position_deletes(spark, table, options={"min-input-files": 2}),
    ]


def equality_deletes(harness: ChangesHarness, table: str) -> int:
    def read(location: str) -> bytes:
        return local_path(location).read_bytes()

    snapshot = harness.metadata(table).current_snapshot
    return sum(
        entry.is_live and entry.data_file.content is DataFileContent.EQUALITY_DELETES
        for row in snapshot_manifests(snapshot, read)
        if row.content
        for entry in decode_manifest(read(row.manifest_path), manifest_file=row).entries
    )
