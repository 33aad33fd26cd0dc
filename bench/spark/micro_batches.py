"""Streams of tiny micro-batches: what each costs alone, and how many land side by side."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.spark.process_tree import tree_cpu_s
from bench.spark.systems import System, Target
from bench.statistics import percentile

_ROWS = 100
_WARM_UP = 10
_COLUMNS = ("value AS id", "timestamp AS at", "concat('row-', value) AS text")


@dataclass(frozen=True, slots=True)
class Batches:
    """The micro-batches of one stream, the first ones left out."""

    system: str
    count: int
    add_batch_p50_ms: float
    cpu_ms: float


@dataclass(frozen=True, slots=True)
class Streams:
    """Streams beside each other on one table. `failed`: queries that ended with an error."""

    system: str
    micro_batches: int
    failed: int
    window_s: float


def measure_alone(
    spark: Any, systems: Sequence[System], folder: Path, batches: int, rounds: int
) -> Iterator[Batches]:
    """Yield the cost of micro-batches of 100 rows; the systems take turns."""
    for turn in range(rounds):
        first = turn % len(systems)
        for system in (*systems[first:], *systems[:first]):
            target = Target(f"alone_{turn}")
            frame = _source(spark)
            system.create(frame, target)
            query = system.stream(frame, target, folder / f"{system.name}-{target.name}")
            try:
                _wait_for(query, _WARM_UP)
                cpu_s, before = tree_cpu_s(), _ended(query)
                _wait_for(query, before + batches)
                cpu_s, after = tree_cpu_s() - cpu_s, _ended(query)
                found = [one["durationMs"]["addBatch"] for one in _progress(query)][-batches:]
            finally:
                query.stop()
            yield Batches(
                system.name, len(found), percentile(found, 0.5), cpu_s * 1000 / (after - before)
            )


def measure_together(
    spark: Any, systems: Sequence[System], folder: Path, count: int, window_s: float
) -> Iterator[Streams]:
    """Yield what so many streams on one table come to in a window."""
    for system in systems:
        target = Target("together")
        system.create(_source(spark), target)
        queries = [
            system.stream(_source(spark), target, folder / f"{system.name}-together-{number}")
            for number in range(count)
        ]
        started_s = time.monotonic()
        try:
            while (left_s := window_s - (time.monotonic() - started_s)) > 0:
                time.sleep(min(1.0, left_s))
            took_s = time.monotonic() - started_s
            failed = sum(query.exception() is not None for query in queries)
            landed = sum(map(_ended, queries))
        finally:
            for query in queries:
                query.stop()
        yield Streams(system.name, landed, failed, took_s)


def _source(spark: Any) -> Any:
    reader = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", _ROWS)
    return reader.option("numPartitions", 1).load().selectExpr(*_COLUMNS)


def _progress(query: Any) -> list[Mapping[str, Any]]:
    return [one for one in query.recentProgress if one["numInputRows"]]


def _ended(query: Any) -> int:
    last = query.lastProgress
    return 0 if last is None else int(last["batchId"]) + 1


def _wait_for(query: Any, batches: int) -> None:
    while _ended(query) < batches:
        if query.exception() is not None:
            raise query.exception()
        time.sleep(0.01)
