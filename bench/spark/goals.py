"""The goals of Spark's writes beside Iceberg's runtime and Spark's Parquet writer. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from bench.spark.imports import Imports
from bench.spark.micro_batches import Batches, Streams
from bench.spark.writes import MANY, Write
from bench.statistics import Spread, ratio
from bench.targets import Target

OURS = "frazil"
PEERS = ("iceberg", "parquet")
# Its tables have an interval of 0 between commits; all others have the default.
AT_ONCE = "frazil at interval 0"
_SPEEDS = (
    ("unpartitioned", 1.0),
    ("208 partitions", 2.0),
    ("208 partitions, clustered", 1.3),
)
# Libraries take 120 MiB, and rows that wait 256 MiB, with what allocators keep for them.
_PEAK_MIB = 640


@dataclass(frozen=True, slots=True)
class Found:
    """All that was measured; `delayed`: streams on a storage that answers later."""

    writes: list[Write] = field(default_factory=list)
    batches: list[Batches] = field(default_factory=list)
    streams: list[Streams] = field(default_factory=list)
    delayed: list[Streams] = field(default_factory=list)
    imports: list[Imports] = field(default_factory=list)


def goals(found: Found) -> Iterator[Target]:
    """Yield each goal, and what was found."""
    yield from _imports(found.imports)
    yield from _writes(found.writes)
    yield from _batches(found.batches)
    yield from _streams(found.streams)
    yield from _delayed(found.delayed)


def speed(writes: Iterable[Write], case: str, peer: str, name: str) -> float:
    """Return how many times as fast as a peer's ours is, by the medians of wall or CPU."""
    of = [one for one in writes if one.case == case]
    return ratio(median_of(of, peer, name), median_of(of, "frazil", name))


def median_of(runs: Iterable[Write | Batches], system: str, name: str) -> float:
    """Return the median of a system's rounds."""
    return Spread.of([float(getattr(one, name)) for one in runs if one.system == system]).median


def _imports(imports: Sequence[Imports]) -> Iterator[Target]:
    for process in ("planner", "commit"):
        ours = [one.ours_s for one in imports if one.process == process]
        text = f"CPU seconds of a cold {process}'s imports, beyond Spark's"
        yield Target("imports", text, "≤", 0.3, _least(ours) if ours else math.nan)


def _writes(writes: Sequence[Write]) -> Iterator[Target]:
    for case, wanted in _SPEEDS:
        speeds = [speed(writes, case, peer, name) for peer in PEERS for name in ("wall_s", "cpu_s")]
        text = f"{case}: speed ÷ the better peer's, the lesser of wall and CPU"
        yield Target("writes", text, "≥", wanted, _least(speeds))
    sizes = [speed(writes, "unpartitioned", peer, "size_bytes") for peer in PEERS]
    text = "unpartitioned: bytes ÷ those of the peer with fewer"
    yield Target("writes", text, "≤", 1.03, 1 / _least(sizes))
    ours = [one.peak_bytes for one in writes if (one.case, one.system) == (MANY, OURS)]
    peak_mib = max(ours) / 2**20 if ours else math.nan
    yield Target("writes", f"{MANY}: MiB of the largest Python worker", "≤", _PEAK_MIB, peak_mib)


def _batches(batches: Sequence[Batches]) -> Iterator[Target]:
    for ours, name, text, wanted in (
        ("frazil", "add_batch_p50_ms", "addBatch p50 ÷ Iceberg's", 0.9),
        ("frazil", "cpu_ms", "CPU of a micro-batch ÷ Iceberg's", 1.2),
        (AT_ONCE, "freshness_p50_ms", "freshness p50 at interval 0 ÷ Iceberg's", 2.0),
    ):
        share = ratio(median_of(batches, ours, name), median_of(batches, "iceberg", name))
        yield Target("batches", text, "≤", wanted, share)


def _streams(streams: Sequence[Streams]) -> Iterator[Target]:
    ours, theirs = _pair(streams)
    failed, landed = math.nan, math.nan
    if ours is not None:
        failed = ours.failed
    if ours is not None and theirs is not None:
        landed = ratio(ours.landed, theirs.landed)
    yield Target("streams", "failed queries", "≤", 0, failed)
    yield Target("streams", "landed micro-batches ÷ Iceberg's", "≥", 1.0, landed)


def _delayed(streams: Sequence[Streams]) -> Iterator[Target]:
    ours, theirs = _pair(streams)
    failed, of_all, of_landed = math.nan, math.nan, math.nan
    if ours is not None:
        failed = ours.failed
    if ours is not None and theirs is not None:
        of_all = ratio(ours.p99_ms, theirs.p99_ms)
        of_landed = ratio(ours.latency_ms(0.99), theirs.latency_ms(0.99))
    yield Target("delay", "failed queries", "≤", 0, failed)
    yield Target("delay", "p99 with what failed queries never landed ÷ Iceberg's", "≤", 0.5, of_all)
    yield Target("delay", "p99 of what landed ÷ Iceberg's", "≤", 0.5, of_landed)


def _pair(streams: Sequence[Streams]) -> tuple[Streams | None, Streams | None]:
    by_name = {one.system: one for one in streams}
    return by_name.get("frazil"), by_name.get("iceberg")


def _least(values: Sequence[float]) -> float:
    return math.nan if any(map(math.isnan, values)) else min(values)
