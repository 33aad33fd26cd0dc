"""Runs the writers in turn and prints ratios to Iceberg's and Spark's: `make bench-spark`."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from bench.spark.micro_batches import Batches, Streams, measure_alone, measure_together
from bench.spark.systems import open_systems
from bench.spark.writes import CASES, Write, measure_writes
from bench.statistics import Spread, ratio
from tests.integration.real_harness import real_harness

_PEERS = ("iceberg", "parquet")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with real_harness() as harness:
        asyncio.run(harness.start())
        with open_systems(harness) as (spark, systems):
            checkpoints = harness.folder / "checkpoints"
            if "writes" in options.parts:
                cases = [case for case in CASES if options.case in case.title]
                _print_writes(measure_writes(spark, systems, cases, options.rows, options.rounds))
            if "batches" in options.parts:
                _print_batches(
                    measure_alone(spark, systems, checkpoints, options.batches, options.rounds)
                )
            if "streams" in options.parts:
                peers = [system for system in systems if system.name != "parquet"]
                _print_streams(
                    measure_together(spark, peers, checkpoints, options.streams, options.window_s)
                )
    return 0


def _print_writes(writes: Iterable[Write]) -> None:
    by_case: defaultdict[str, defaultdict[str, list[Write]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for one in writes:
        print(
            f"{one.case}, {one.system}: {one.wall_s:.2f} s, {one.cpu_s:.2f} s of CPU,"
            f" {one.size_bytes:,} bytes",
            flush=True,
        )
        by_case[one.case][one.system].append(one)
    for case, found in by_case.items():
        for peer in _PEERS:
            wall, cpu, size = (
                _times(found, peer, name) for name in ("wall_s", "cpu_s", "size_bytes")
            )
            print(
                f"{case}: {wall} times the speed of {peer}, {cpu} times by CPU,"
                f" {ratio(1.0, size):.3f} of its bytes"
            )


def _times(found: Mapping[str, Sequence[Write]], peer: str, name: str) -> float:
    ours, theirs = (
        Spread.of([float(getattr(one, name)) for one in found[each]]).median
        for each in ("frazil", peer)
    )
    return round(ratio(theirs, ours), 2)


def _print_batches(batches: Iterable[Batches]) -> None:
    found: defaultdict[str, list[Batches]] = defaultdict(list)
    for one in batches:
        print(
            f"micro-batches, {one.system}: addBatch p50 {one.add_batch_p50_ms:.0f} ms,"
            f" {one.cpu_ms:.0f} ms of CPU each ({one.count})",
            flush=True,
        )
        found[one.system].append(one)
    for peer in _PEERS:
        add_batch, cpu = (
            ratio(
                Spread.of([getattr(one, name) for one in found["frazil"]]).median,
                Spread.of([getattr(one, name) for one in found[peer]]).median,
            )
            for name in ("add_batch_p50_ms", "cpu_ms")
        )
        print(f"micro-batches: addBatch {add_batch:.2f} of {peer}'s, CPU {cpu:.2f} of {peer}'s")


def _print_streams(streams: Iterable[Streams]) -> None:
    for one in streams:
        print(
            f"streams on one table, {one.system}: {one.micro_batches} micro-batches in"
            f" {one.window_s:.0f} s, {one.failed} queries failed",
            flush=True,
        )


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.spark", description=__doc__)
    parser.add_argument("--parts", nargs="+", default=["writes", "batches", "streams"])
    parser.add_argument("--case", default="", help="only writes whose title has this text")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--streams", type=int, default=16)
    parser.add_argument("--window-s", type=float, default=40.0)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
