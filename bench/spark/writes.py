"""Batch writes: seconds, CPU, bytes and memory for rows in memory, by how they are partitioned."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bench.spark.process_tree import forget_worker_peaks, tree_cpu_s, worker_peak_bytes
from bench.spark.systems import System, Target, bytes_of

_COLUMNS = (
    "id",
    "cast(hash(id) % 1000000 AS int) AS number",
    "timestamp_micros(1700000000000000 + id * 1000 + abs(hash(id, 1)) % 1000000) AS at",
    "randn(1) AS reading",
    "cast(rand(2) AS float) AS share",
    "element_at(array('alpha', 'beta', 'gamma', 'delta'), cast(id % 4 + 1 AS int)) AS kind",
    "concat('word-', abs(hash(id, 3)) % 50000) AS word",
    "md5(cast(id AS string)) AS digest",
    "cast(abs(hash(id, 5)) % 10000000 / 100 AS decimal(12, 2)) AS price",
)


MANY = "2,000 partitions"


@dataclass(frozen=True, slots=True)
class Case:
    """Rows of a table. `partitions`: how many, 0 for none; clustered: sorted by them. `fans_out`:
    no writer distributes them first."""

    title: str
    partitions: int = 0
    is_clustered: bool = False
    fans_out: bool = True


CASES = (
    Case("unpartitioned"),
    Case("208 partitions", 208),
    Case("208 partitions, clustered", 208, is_clustered=True),
    # Iceberg's writer with a file open for each partition runs out of 3 GB of heap here.
    Case(MANY, 2_000, fans_out=False),
)


@dataclass(frozen=True, slots=True)
class Write:
    """One measured write. `peak_bytes`: the most memory of a Python worker, 0 without one."""

    case: str
    system: str
    wall_s: float
    cpu_s: float
    size_bytes: int
    peak_bytes: int = 0


def measure_writes(
    spark: Any, systems: Sequence[System], cases: Sequence[Case], rows: int, rounds: int
) -> Iterator[Write]:
    """Yield each write; the systems take turns, and the first round warms up."""
    for number, case in enumerate(cases):
        frame = _rows(spark, case, rows)
        frame.count()
        for turn in range(rounds + 1):
            first = turn % len(systems)
            for system in (*systems[first:], *systems[:first]):
                partition = "partition" if case.partitions else None
                target = Target(f"write_{number}_{turn}", partition, case.fans_out)
                system.create(frame, target)
                found = _measured(system, frame, target, case.title)
                if turn:
                    yield found
        frame.unpersist()


def _rows(spark: Any, case: Case, rows: int) -> Any:
    partition = f"cast(abs(hash(id, 7)) % {case.partitions} AS int)" if case.partitions else "0"
    frame = spark.range(0, rows, 1, 2).selectExpr(*_COLUMNS, f"{partition} AS partition")
    if case.is_clustered:
        frame = frame.repartition("partition").sortWithinPartitions("partition")
    return frame.cache()


def _measured(system: System, frame: Any, target: Target, case: str) -> Write:
    forget_worker_peaks()
    started_s, cpu_s = time.perf_counter(), tree_cpu_s()
    system.write(frame, target)
    wall_s, cpu_s = time.perf_counter() - started_s, tree_cpu_s() - cpu_s
    peak_bytes = worker_peak_bytes()
    return Write(case, system.name, wall_s, cpu_s, bytes_of(system, target), peak_bytes)
