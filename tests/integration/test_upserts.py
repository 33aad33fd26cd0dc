"""Upserts as Spark runs them, against a real committer: rows are those of a model, a dictionary by
key, as Iceberg Java and DuckDB read them.

No Spark runs here; `test_spark_writer.py` has it call the same code.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog as ForeignCatalog
from pyiceberg.transforms import BucketTransform

from committer.errors import PublishError
from committer.iceberg.values.types import LongType, StringType
from tests.support.integration.java_engine import JavaEngine, java_engine
from tests.support.integration.real_harness import CATALOG, RealHarness, real_harness, until
from tests.support.integration.sink_writes import (
    Options,
    Row,
    SinkWriter,
    create_table,
    rows_by_duckdb,
    run_of,
)
from tests.support.workers.tables import optional, required, schema
from tests.support.workers.write_target import spec_of

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(180)]

TABLE = schema(
    required(1, "id", LongType()),
    required(2, "region", StringType()),
    optional(3, "text", StringType()),
)
FRAME = pa.schema(
    [
        ("id", pa.int64()),
        ("region", pa.string()),
        ("text", pa.string()),
        ("op", pa.string()),
        ("at", pa.int64()),
    ]
)
OPTIONS = {"upsert-delete-column": "op in ('d', 'D')", "upsert-sequence-column": "at"}
BY_ID = {"upsert-keys": "id", **OPTIONS}
BY_BOTH = {"upsert-keys": "id, region", **OPTIONS}
COMMITTED = {"wait": "committed"}
EPOCHS = 8
KEYS = 12


@pytest.fixture(scope="module")
def harness() -> Iterator[RealHarness]:
    with real_harness(FRAZIL_COMMIT__MIN_INTERVAL_MS="20") as harness:
        asyncio.run(harness.start())
        yield harness


@pytest.fixture(scope="module")
def java(harness: RealHarness) -> Iterator[JavaEngine]:
    with java_engine(harness) as java:
        yield java


def rows_by_java(java: JavaEngine, name: str) -> list[tuple[Any, ...]]:
    java.sql(f"REFRESH TABLE {CATALOG}.{name}")
    rows = java.sql(f"SELECT id, region, text FROM {CATALOG}.{name} ORDER BY id, region, text")
    return [tuple(row) for row in rows]


@dataclass(slots=True)
class Changes:
    """Random changes of a stream's own keys, and the rows that they make. A key keeps its
    region."""

    chance: random.Random
    keys: range = range(KEYS)
    rows: dict[int, tuple[int, str, str]] = field(default_factory=dict)
    clock: int = 0

    def micro_batch(self, tasks: int) -> list[list[Row]]:
        """Return changes by task, those of a key in one task and in any order there."""
        found: list[list[Row]] = [[] for _ in range(tasks)]
        for _ in range(self.chance.randrange(1, 15)):
            self.clock += 1
            key = self.chance.choice(self.keys)
            row = (key, "ABC"[key % 3], f"{self.clock}")
            is_deleted = self.chance.random() < 0.3
            if is_deleted:
                self.rows.pop(key, None)
            else:
                self.rows[key] = row
            op = self.chance.choice("dD") if is_deleted else self.chance.choice(["c", "u", None])
            text = None if is_deleted else row[2]
            values = (*row[:2], text, op, self.clock)
            found[key // 3 % tasks].append(dict(zip(FRAME.names, values, strict=True)))
        for of_task in found:
            self.chance.shuffle(of_task)
        return found


@pytest.mark.parametrize("format_version", [pytest.param(2, marks=pytest.mark.heavy), 3])
@pytest.mark.parametrize(
    ("kind", "partitioned", "options"),
    [
        ("plain", (), BY_ID),
        pytest.param("buckets", ((1, "b", "bucket[3]"),), BY_ID, marks=pytest.mark.heavy),
        ("regions", ((2, "region", "identity"), (1, "t", "truncate[4]")), BY_BOTH),
    ],
)
def test_rows_are_a_models_after_random_upserts_of_two_streams_with_replays(
    harness: RealHarness,
    java: JavaEngine,
    kind: str,
    partitioned: tuple[tuple[int, str, str], ...],
    options: Options,
    format_version: int,
) -> None:
    name = f"db.{kind}_{format_version}"
    spec = replace(spec_of(*partitioned), spec_id=0)
    asyncio.run(create_table(harness, name, TABLE, spec=spec, format_version=format_version))
    writer = SinkWriter(harness, name, FRAME)
    chance = random.Random(name)
    streams = [Changes(chance, range(half, KEYS, 2)) for half in (0, 1)]
    sent: list[tuple[str, int, list[list[Row]]]] = []
    for number in range(2 * EPOCHS):
        half, epoch = number % 2, number // 2
        sent.append((f"stream-{half}", epoch, streams[half].micro_batch(tasks=2)))
        writer.micro_batch(run_of(*sent[-1][:2]), sent[-1][2], options)
        if chance.random() < 0.3:
            query, epoch, tasks = chance.choice(sent[-3:])
            # Spark runs it again, under another run id and perhaps with other tasks.
            again = [[row for of_task in tasks for row in of_task]]
            writer.micro_batch(run_of(query, epoch), again, options)
    asyncio.run(until(harness.is_settled, "an empty inbox"))
    expected = sorted(row for stream in streams for row in stream.rows.values())
    assert rows_by_duckdb(harness, name, "id, region, text") == expected
    assert rows_by_java(java, name) == expected
    assert asyncio.run(harness.quarantined()) == []


def test_an_upsert_reaches_rows_of_former_partition_specs(
    harness: RealHarness, java: JavaEngine
) -> None:
    """DuckDB fails on delete files of several specs (an internal error of 1.5.5)."""
    name = "db.evolved"
    spec = replace(spec_of((1, "b", "bucket[2]")), spec_id=0)
    asyncio.run(create_table(harness, name, TABLE, spec=spec))
    writer = SinkWriter(harness, name, FRAME)
    catalog = ForeignCatalog("frazil", uri=f"sqlite:///{harness.catalog_file}")
    changes = Changes(random.Random(name))
    for epoch, change in enumerate((None, "finer", "by_region")):
        if change == "finer":
            with catalog.load_table(name).update_spec() as update:
                update.remove_field("b")
                update.add_field("id", BucketTransform(3), "finer")
        if change == "by_region":
            with catalog.load_table(name).update_spec() as update:
                update.add_identity("region")
        for half in range(2):
            options = BY_BOTH if change == "by_region" else BY_ID
            source = run_of("stream", 2 * epoch + half)
            writer.micro_batch(source, changes.micro_batch(2), options | COMMITTED)
        assert rows_by_java(java, name) == sorted(changes.rows.values())
    with pytest.raises(PublishError, match="spec 2 of the table partitions by `region`"):
        writer.micro_batch(run_of("other", 0), [[]], BY_ID)


def test_keys_of_two_tasks_are_refused_before_anything_is_published(harness: RealHarness) -> None:
    asyncio.run(create_table(harness, "db.doubled", TABLE))
    writer = SinkWriter(harness, "db.doubled", FRAME)
    row = dict(zip(FRAME.names, (7, "A", "x", "c", 1), strict=True))
    other = {**row, "id": 8}
    with pytest.raises(PublishError, match=r"two tasks have rows of one key.*repartition\(4, 'id'"):
        writer.micro_batch(run_of("q", 0), [[row], [other], [row, other]], BY_ID)
    assert asyncio.run(harness.outstanding()) == []
    writer.micro_batch(run_of("q", 0), [[row], [other]], BY_ID | COMMITTED)
    assert rows_by_duckdb(harness, "db.doubled", "id") == [(7,), (8,)]


def test_a_batch_write_may_upsert_too(harness: RealHarness) -> None:
    asyncio.run(create_table(harness, "db.batches", TABLE))
    writer = SinkWriter(harness, "db.batches", FRAME)
    rows = [dict(zip(FRAME.names, (at, "A", "x", "c", 1), strict=True)) for at in range(3)]
    for text in ("x", "y"):
        changed = [[{**row, "text": text} for row in rows[:2]], rows[2:]]
        writer.append(changed, BY_ID | COMMITTED)
    found = rows_by_duckdb(harness, "db.batches", "id, text")
    assert found == [(0, "y"), (1, "y"), (2, "x")]


def test_a_table_of_version_1_has_no_deletes(harness: RealHarness) -> None:
    asyncio.run(create_table(harness, "db.first", TABLE, format_version=1))
    with pytest.raises(PublishError, match="format version 1, which has no deletes"):
        SinkWriter(harness, "db.first", FRAME).micro_batch(run_of("q", 0), [[]], BY_ID)
