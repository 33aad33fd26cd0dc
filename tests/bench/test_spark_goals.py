"""Goals for writes of Spark: what was found, and whether that is enough."""

from __future__ import annotations

import math

import pytest

from bench.spark.goals import AT_ONCE, Found, goals
from bench.spark.imports import Imports
from bench.spark.micro_batches import Batches, Streams
from bench.spark.writes import Write
from bench.targets import Target


def found(measured: Found, beginning: str) -> Target:
    [target] = [
        one for one in goals(measured) if f"{one.scenario}, {one.text}".startswith(beginning)
    ]
    return target


def write(system: str, wall_s: float, cpu_s: float, size_bytes: int) -> Write:
    return Write("unpartitioned", system, wall_s, cpu_s, size_bytes)


def streams(system: str, landed: int, failed: int, *latencies_ms: float) -> Streams:
    return Streams(system, landed, failed, 40.0, latencies_ms)


def test_what_was_not_measured_is_neither_reached_nor_missed() -> None:
    assert {target.verdict for target in goals(Found())} == {"not measured"}


def test_a_write_is_as_fast_as_its_worst_comparison() -> None:
    writes = [write("frazil", 2.0, 4.0, 102), write("iceberg", 3.0, 5.0, 101)]
    assert found(Found(writes), "writes, unpartitioned: speed").verdict == "not measured"
    writes.append(write("parquet", 2.5, 3.6, 100))
    assert found(Found(writes), "writes, unpartitioned: speed").found == 0.9
    assert found(Found(writes), "writes, unpartitioned: bytes").found == 1.02


def test_many_partitions_take_bounded_memory_in_each_round() -> None:
    peaks = [Write("2,000 partitions", "frazil", 1.0, 1.0, 1, mib << 20) for mib in (300, 700)]
    peaks.append(Write("2,000 partitions", "parquet", 1.0, 1.0, 1, 900 << 20))
    assert found(Found(peaks), "writes, 2,000 partitions").found == 700.0
    assert found(Found(peaks[:1]), "writes, 2,000 partitions").verdict == "reached"


def test_freshness_is_that_of_tables_without_an_interval_and_cost_that_of_the_default() -> None:
    batches = [
        Batches("frazil", 40, 80.0, 130.0, 600.0),
        Batches(AT_ONCE, 40, 95.0, 190.0, 150.0),
        Batches("iceberg", 40, 100.0, 130.0, 100.0),
    ]
    assert found(Found(batches=batches), "batches, freshness").found == 1.5
    assert found(Found(batches=batches), "batches, addBatch").found == 0.8
    assert found(Found(batches=batches), "batches, CPU").found == 1.0


def test_micro_batches_that_a_failed_query_never_landed_count_in_one_p99_not_in_the_other() -> None:
    ours = streams("frazil", 3, 0, 100.0, 200.0, 300.0)
    theirs = streams("iceberg", 3, 1, 100.0, 200.0, 400.0)
    assert (theirs.latency_ms(0.99), theirs.p99_ms) == (400.0, math.inf)
    measured = Found(delayed=[ours, theirs])
    assert found(measured, "delay, p99 with").verdict == "reached"
    assert found(measured, "delay, p99 of what landed").verdict == "missed"


def test_a_query_of_ours_that_failed_misses_the_goal_and_so_does_one_micro_batch_less() -> None:
    measured = Found(streams=[streams("frazil", 9, 1), streams("iceberg", 10, 13)])
    assert found(measured, "streams, failed").verdict == "missed"
    assert found(measured, "streams, landed").verdict == "missed"


@pytest.mark.parametrize(("all_s", "verdict"), [(0.5, "reached"), (0.7, "missed")])
def test_imports_count_without_those_of_spark(all_s: float, verdict: str) -> None:
    measured = Found(imports=[Imports("planner", 0.3, all_s), Imports("commit", 0.3, 0.4)])
    assert found(measured, "imports, CPU seconds of a cold planner").verdict == verdict
    assert found(measured, "imports, CPU seconds of a cold commit").verdict == "reached"
