"""Measures one case of one system, in a process of its own: time of each round, and memory."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_MEASURED_S_MIN = 0.5
_ROUNDS_MAX = 200


@dataclass(frozen=True, slots=True)
class Work:
    """`run` is what is measured; it returns how many of the case's units it did. `before` makes
    what it gets, anew for each round, outside the clock."""

    run: Callable[[Any], int]
    before: Callable[[], Any] = lambda: None


@dataclass(frozen=True, slots=True)
class Measured:
    """`best_s`: the fastest round, since the others were disturbed. `peak_bytes`: how much the
    process grew at most in its first round, above what the input takes."""

    units: int
    best_s: float
    rounds: int
    peak_bytes: int

    def as_json(self) -> dict[str, float]:
        return asdict(self)


def measure(work: Work, rounds: int) -> Measured:
    """Measure so many rounds; more of them where they are short."""
    peak_bytes, units, first_s = _measure_memory(work)
    times = [first_s]
    while len(times) < rounds or (sum(times) < _MEASURED_S_MIN and len(times) < _ROUNDS_MAX):
        found, took_s = _timed(work)
        times.append(took_s)
        if found != units:
            raise ValueError(f"{found} units in one round, {units} in another")
    return Measured(units, min(times), len(times), peak_bytes)


def _timed(work: Work) -> tuple[int, float]:
    prepared = work.before()
    gc.collect()
    gc.freeze()
    start_s = time.perf_counter()
    units = work.run(prepared)
    took_s = time.perf_counter() - start_s
    gc.unfreeze()
    return units, took_s


def _measure_memory(work: Work) -> tuple[int, int, float]:
    prepared = work.before()
    gc.collect()
    gc.freeze()
    # Linux: the greatest size so far is forgotten.
    Path("/proc/self/clear_refs").write_text("5")
    before_bytes = _status_bytes("VmRSS")
    start_s = time.perf_counter()
    units = work.run(prepared)
    took_s = time.perf_counter() - start_s
    peak_bytes = _status_bytes("VmHWM") - before_bytes
    gc.unfreeze()
    return max(peak_bytes, 0), units, took_s


def _status_bytes(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return int(value.split()[0]) * 1024
    raise ValueError(f"the kernel does not say `{name}`")
