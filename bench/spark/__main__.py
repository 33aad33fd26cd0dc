"""Runs the writers in turn and prints ratios to Iceberg's and Spark's: `make bench-spark`."""

from __future__ import annotations

import argparse
import asyncio
import math
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from bench.frazil import USUAL_VARIABLES
from bench.spark.delayed_s3 import DELAY_MS, measure_delayed
from bench.spark.goals import AT_ONCE, OURS, PEERS, Found, goals, median_of, speed
from bench.spark.imports import Imports, measure_imports
from bench.spark.micro_batches import Batches, Streams, measure_alone, measure_together
from bench.spark.systems import Frazil, open_systems
from bench.spark.writes import CASES, Write, measure_writes
from bench.statistics import ratio
from bench.targets import Target
from tests.support.integration.real_harness import real_harness

_LOCAL_PARTS = ("writes", "batches", "streams")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    found = Found()
    if "imports" in options.parts:
        for imports in measure_imports(3 * options.rounds):
            _print_imports(imports)
            found.imports.append(imports)
    if set(_LOCAL_PARTS) & set(options.parts):
        _measure_here(options, found)
    if "delay" in options.parts:
        # A JVM has the jars and the environment that it started with: this needs one of its own.
        with ProcessPoolExecutor(1, get_context("spawn")) as child:
            found.delayed.extend(
                child.submit(measure_delayed, options.streams, options.window_s).result()
            )
        for one in found.delayed:
            _print_streams(one, f"streams with {DELAY_MS} ms added to each call of the storage")
    for goal in goals(found):
        if goal.scenario in options.parts:
            _print_goal(goal)
    return 0


def _measure_here(options: argparse.Namespace, found: Found) -> None:
    """Measure all parts that need local files only."""
    with real_harness(**USUAL_VARIABLES) as harness:
        asyncio.run(harness.start())
        with open_systems(harness) as (spark, systems):
            frazil, iceberg, parquet = systems
            checkpoints = harness.folder / "checkpoints"
            if "writes" in options.parts:
                cases = [case for case in CASES if options.case in case.title]
                writes = measure_writes(spark, systems, cases, options.rows, options.rounds)
                for write in writes:
                    _print_write(write)
                    found.writes.append(write)
                _compare_writes(found.writes)
            if "batches" in options.parts:
                at_once = Frazil(harness, AT_ONCE, {"frazil.commit.min-interval-ms": "0"})
                each = (frazil, at_once, iceberg, parquet)
                for batches in measure_alone(
                    spark, each, checkpoints, options.batches, options.rounds
                ):
                    _print_batches(batches)
                    found.batches.append(batches)
                _compare_batches(found.batches)
            if "streams" in options.parts:
                for streams in measure_together(
                    spark, (frazil, iceberg), checkpoints, options.streams, options.window_s
                ):
                    _print_streams(streams, "streams on one table")
                    found.streams.append(streams)


def _print_imports(one: Imports) -> None:
    print(
        f"imports of a cold {one.process}: {one.ours_s:.2f} s of CPU,"
        f" beside {one.spark_s:.2f} s of Spark's own",
        flush=True,
    )


def _print_write(one: Write) -> None:
    print(
        f"{one.case}, {one.system}: {one.wall_s:.2f} s, {one.cpu_s:.2f} s of CPU,"
        f" {one.size_bytes:,} bytes"
        + (f", a Python worker had {one.peak_bytes >> 20} MiB" if one.system == OURS else ""),
        flush=True,
    )


def _compare_writes(writes: Sequence[Write]) -> None:
    for case in dict.fromkeys(one.case for one in writes):
        for peer in PEERS:
            wall, cpu, size = (
                speed(writes, case, peer, name) for name in ("wall_s", "cpu_s", "size_bytes")
            )
            print(
                f"{case}: {wall:.2f} times the speed of {peer}, {cpu:.2f} times by CPU,"
                f" {1 / size:.3f} of its bytes"
            )


def _print_batches(one: Batches) -> None:
    fresh = one.freshness_p50_ms
    print(
        f"micro-batches, {one.system}: addBatch p50 {one.add_batch_p50_ms:.0f} ms,"
        f" {one.cpu_ms:.0f} ms of CPU each"
        + ("" if math.isnan(fresh) else f", in the table {fresh:.0f} ms after the trigger (p50)")
        + f" ({one.count})",
        flush=True,
    )


def _compare_batches(batches: Sequence[Batches]) -> None:
    for peer in PEERS:
        add_batch, cpu = (
            ratio(median_of(batches, "frazil", name), median_of(batches, peer, name))
            for name in ("add_batch_p50_ms", "cpu_ms")
        )
        print(f"micro-batches: addBatch {add_batch:.2f} of {peer}'s, CPU {cpu:.2f} of {peer}'s")
    for ours in ("frazil", AT_ONCE):
        theirs = median_of(batches, "iceberg", "freshness_p50_ms")
        fresh = ratio(median_of(batches, ours, "freshness_p50_ms"), theirs)
        print(f"micro-batches: in the table after {fresh:.2f} of iceberg's time, {ours}")


def _print_streams(one: Streams, title: str) -> None:
    p50, p99 = one.latency_ms(0.5), one.latency_ms(0.99)
    print(
        f"{title}, {one.system}: {one.landed} micro-batches landed in {one.window_s:.0f} s,"
        f" {p50:,.0f} ms (p50) and {p99:,.0f} ms (p99) after the trigger;"
        f" {one.failed} queries failed, p99 with them {one.p99_ms:,.0f} ms",
        flush=True,
    )


def _print_goal(goal: Target) -> None:
    print(
        f"goal, {goal.scenario}: {goal.text}: {goal.relation} {goal.wanted:g},"
        f" found {goal.found:.2f}: {goal.verdict}"
    )


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.spark", description=__doc__)
    parser.add_argument("--parts", nargs="+", default=["imports", *_LOCAL_PARTS, "delay"])
    parser.add_argument("--case", default="", help="only writes whose title has this text")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--streams", type=int, default=16)
    parser.add_argument("--window-s", type=float, default=40.0)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
