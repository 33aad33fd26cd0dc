"""Many seeds on all cores: sums, what fired where, and the seeds that failed."""

from __future__ import annotations

import gc
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from tests.simulation.catalogs import SimCatalog
from tests.simulation.faults import Fault
from tests.simulation.scenario import draw_scenario
from tests.simulation.simulation import Outcome, Simulation

PROGRESS_S = 5.0
FAILURES_MAX = 10


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of a run."""

    seed: int
    digest: str
    commits: int
    requests: int
    virtual_s: float
    fired: Counter[tuple[str, Fault]]
    calls: Counter[str]
    events: Counter[str]
    violations: tuple[str, ...]
    landed: Counter[str] = field(default_factory=Counter)
    conflicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    cpu_s: float = 0.0


@dataclass(slots=True)
class Totals:
    """Totals of all runs."""

    seeds: int = 0
    commits: int = 0
    requests: int = 0
    cpu_s: float = 0.0
    virtual_s: float = 0.0
    fired: Counter[tuple[str, Fault]] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    landed: Counter[str] = field(default_factory=Counter)
    conflicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    failed: list[Summary] = field(default_factory=list)

    def add(self, run: Summary) -> None:
        self.seeds += 1
        self.commits += run.commits
        self.requests += run.requests
        self.cpu_s += run.cpu_s
        self.virtual_s += run.virtual_s
        self.fired.update(run.fired)
        self.calls.update(run.calls)
        self.events.update(run.events)
        self.landed.update(run.landed)
        self.conflicts.update(run.conflicts)
        if run.violations:
            self.failed.append(run)

    @property
    def commits_per_s(self) -> float:
        """Simulated commits for each second of one core."""
        return self.commits / self.cpu_s if self.cpu_s else 0.0

    def line(self) -> str:
        """Return the progress in a line."""
        return (
            f"{self.seeds:,} seeds, {self.commits:,} commits of {self.requests:,} requests,"
            f" {self.fired.total():,} faults and {self.events.total():,} fates,"
            f" {self.virtual_s / 3600:,.1f} h simulated,"
            f" {self.commits_per_s:.0f} commits/s of a core, {len(self.failed)} failed"
        )

    def table(self) -> str:
        """Return a table of how often which fault has hit which method."""
        faults = [fault for fault in Fault if any(fired[1] is fault for fired in self.fired)]
        lines = [
            "fired of calls: "
            + ", ".join(f"{number}={fault.value}" for number, fault in enumerate(faults, 1)),
            f"{'method':<24}{'calls':>10}" + "".join(f"{n:>7}" for n in range(1, len(faults) + 1)),
        ]
        for method in sorted(self.calls):
            counts = "".join(f"{self.fired[method, fault] or '.':>7}" for fault in faults)
            lines.append(f"{method:<24}{self.calls[method]:>10}{counts}")
        lines += [f"{count:>7} × {event}" for event, count in sorted(self.events.items())]
        lines += [self._outcomes(operation) for operation in sorted(self.operations)]
        return "\n".join(lines)

    @property
    def operations(self) -> set[str]:
        """The operations that have landed, or have met a conflict."""
        return {*self.landed, *(operation for operation, _ in self.conflicts)}

    def _outcomes(self, operation: str) -> str:
        codes = sorted(
            (code, count) for (one, code), count in self.conflicts.items() if one == operation
        )
        told = ", ".join(f"{count} {code}" for code, count in codes)
        return f"{self.landed[operation]:>7} × {operation} landed; conflicts: {told or 'none'}"


def summarize(outcome: Outcome) -> Summary:
    """Return the summary of an outcome."""
    return Summary(
        seed=outcome.scenario.seed,
        digest=outcome.trace.digest,
        commits=outcome.commits,
        requests=outcome.requests,
        virtual_s=outcome.virtual_s,
        fired=outcome.faults.coverage,
        calls=outcome.faults.calls,
        events=Counter(event.fate.value for event in outcome.events),
        violations=tuple(map(str, outcome.violations)),
        landed=outcome.landed,
        conflicts=outcome.conflicts,
    )


def play_seed(seed: int, catalog: SimCatalog = SimCatalog.DYNAMODB) -> Summary:
    """Run the scenario of a seed on a kind of catalog."""
    started_s = time.process_time()
    run = summarize(Simulation(draw_scenario(seed, catalog=catalog)).run())
    if not gc.isenabled():
        gc.collect()
    return replace(run, cpu_s=time.process_time() - started_s)


def play_seeds(
    seeds: Iterable[int], *, jobs: int, catalog: SimCatalog = SimCatalog.DYNAMODB
) -> Iterator[Summary]:
    """Run many, in the order in which they end."""
    collect_between_runs()
    play = partial(play_seed, catalog=catalog)
    if jobs == 1:
        yield from map(play, seeds)
        return
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        yield from pool.imap_unordered(play, seeds, chunksize=4)


def collect_between_runs() -> None:
    """Restrict the garbage collector to the objects of one run, collected after it: a run leaves
    megabytes in cycles, and collecting all the time takes a tenth of it.
    """
    gc.collect()
    gc.freeze()
    gc.disable()


def simulate(
    seeds: Iterable[int],
    *,
    jobs: int,
    is_quiet: bool = False,
    failures_max: int = FAILURES_MAX,
    catalog: SimCatalog = SimCatalog.DYNAMODB,
) -> Totals:
    """Run many with a line of progress now and then. Ends early where many seeds fail."""
    totals, told_s = Totals(), time.monotonic()
    for run in play_seeds(seeds, jobs=jobs, catalog=catalog):
        totals.add(run)
        if run.violations:
            print(f"seed {run.seed} fails: {run.violations[0][:300]}", flush=True)
            if len(totals.failed) >= failures_max:
                break
        if not is_quiet and time.monotonic() - told_s > PROGRESS_S:
            told_s = time.monotonic()
            print(totals.line(), file=sys.stderr, flush=True)
    return totals
