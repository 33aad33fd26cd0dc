"""Streams of tiny micro-batches: what each costs alone, and how many land side by side."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from bench.spark.landings import Epoch, LandingWatch, freshness_ms
from bench.spark.process_tree import tree_cpu_s
from bench.spark.systems import System, Target
from bench.statistics import percentile

_ROWS = 100
_WARM_UP = 10
_COLUMNS = ("value AS id", "timestamp AS at", "concat('row-', value) AS text")


@dataclass(frozen=True, slots=True)
class Batches:
    """The micro-batches of one stream, the first ones left out.

    `freshness_p50_ms`: from the start of a trigger until a snapshot holds its rows; NaN of files
    without a table.
    """

    system: str
    count: int
    add_batch_p50_ms: float
    cpu_ms: float
    freshness_p50_ms: float


@dataclass(frozen=True, slots=True)
class Streams:
    """Streams beside each other on one table, once each had its first micro-batch.

    `landed`: micro-batches that came into the table in the window. `latencies_ms`: of those that
    began in it and ended before the streams were stopped, from trigger to landing. `failed`:
    queries that ended with an error, since their start.
    """

    system: str
    landed: int
    failed: int
    window_s: float
    latencies_ms: Sequence[float]

    def latency_ms(self, share: float) -> float:
        """Return a percentile of what landed."""
        return percentile([one for one in self.latencies_ms if one < math.inf], share)

    @property
    def p99_ms(self) -> float:
        """The p99 with the micro-batch that each failed query ended with, which never landed."""
        return percentile([*self.latencies_ms, *[math.inf] * self.failed], 0.99)


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
            with ExitStack() as stack:
                watch = system.watch(target)
                if watch is not None:
                    stack.enter_context(watch)
                query = system.stream(frame, target, folder / f"{system.name}-{target.name}")
                try:
                    _wait_for(query, _WARM_UP)
                    cpu_s, before = tree_cpu_s(), _ended(query)
                    _wait_for(query, before + batches)
                    cpu_s, after = tree_cpu_s() - cpu_s, _ended(query)
                    found = _progress(query)[-batches:]
                finally:
                    query.stop()
                yield Batches(
                    system.name,
                    len(found),
                    percentile([one["durationMs"]["addBatch"] for one in found], 0.5),
                    cpu_s * 1000 / (after - before),
                    percentile(_freshness_ms(watch, _triggers_ms(query, found)), 0.5),
                )


def measure_together(
    spark: Any, systems: Sequence[System], folder: Path, count: int, window_s: float
) -> Iterator[Streams]:
    """Yield what so many streams on one table come to in a window."""
    for system in systems:
        target = Target("together")
        system.create(_source(spark), target)
        watch = system.watch(target)
        assert watch is not None, f"{system.name} has no table that streams could share"
        with watch:
            queries = [
                system.stream(_source(spark), target, folder / f"{system.name}-together-{number}")
                for number in range(count)
            ]
            try:
                while not all(_ended(query) or query.exception() for query in queries):
                    time.sleep(0.1)
                starts_ms = time.time() * 1000
                time.sleep(window_s)
                ends_ms = time.time() * 1000
                failed = sum(query.exception() is not None for query in queries)
            finally:
                for query in queries:
                    query.stop()
            triggers_ms = {
                epoch: at_ms
                for query in queries
                for epoch, at_ms in _triggers_ms(query, _progress(query)).items()
                if starts_ms <= at_ms <= ends_ms
            }
            landed_ms = watch.landed_ms(triggers_ms)
        yield Streams(
            system.name,
            sum(starts_ms <= at_ms <= ends_ms for at_ms in landed_ms.values()),
            failed,
            window_s,
            freshness_ms(triggers_ms, landed_ms),
        )


def _freshness_ms(
    watch: LandingWatch | None, triggers_ms: Mapping[Epoch, float]
) -> Sequence[float]:
    return freshness_ms(triggers_ms, watch.landed_ms(triggers_ms)) if watch else []


def _triggers_ms(query: Any, progress: Sequence[Mapping[str, Any]]) -> Mapping[Epoch, float]:
    return {
        (str(query.id), one["batchId"]): datetime.fromisoformat(one["timestamp"]).timestamp() * 1000
        for one in progress
    }


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
