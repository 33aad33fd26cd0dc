"""Recovery: very many requests wait while no committer runs, and then one starts."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.commits import LandedCommit
from bench.frazil import Frazil, shares
from bench.statistics import median
from tests.soak.samples import Sample, sample

# The promise of "For memory" in docs/how-to/tune.md.
RESIDENT_MIB_MAX = 2_048
_MIB = 1024 * 1024
_PRODUCERS = 200
_GRACE_S = 1_800.0
_SAMPLE_S = 0.25


@dataclass(slots=True)
class Recovery:
    """The recovery of a committer from the backlog. `violations` is empty where all went well."""

    requests: int
    tables: int
    took_s: float
    filled_s: float
    commits: Sequence[LandedCommit]
    samples: list[Sample]
    peak_mib: float
    violations: list[str] = field(default_factory=list)

    @property
    def batches(self) -> list[int]:
        return [one.requests for one in sorted(self.commits, key=lambda one: one.at_s)]

    def summary(self) -> str:
        return (
            f"{self.requests:,} requests (tables: {self.tables}) landed in {self.took_s:.1f} s"
            f" ({self.requests / self.took_s:,.0f} a second) by {len(self.commits):,} commits of"
            f" {median([float(each) for each in self.batches]):,.0f} requests in the median,"
            f" {max(self.batches):,} at most; at most {self.peak_mib:,.0f} MiB resident"
        )


def run(requests: int, tables: int) -> Recovery:
    """Measure a recovery. Errors: `TimeoutError` after half an hour."""
    frazil = Frazil("frazil-default", interval_ms=None)
    try:
        return _recover(frazil, requests, tables)
    finally:
        frazil.close()


def _recover(frazil: Frazil, requests: int, tables: int) -> Recovery:
    names = [frazil.fresh_table() for _ in range(tables)]
    frazil.stop_committer()
    started_s = time.monotonic()
    writers, each = shares(_PRODUCERS), requests // tables
    for name in names:
        frazil.prepare(name, [each // len(writers)] * len(writers))
        frazil.fill(writers, grace_s=_GRACE_S)
    filled_s = time.monotonic() - started_s
    total = each // len(writers) * len(writers) * tables
    watch = _Watch(frazil)
    commits, took_s = frazil.catch_up(names, total, grace_s=_GRACE_S, watch=watch.look)
    found = Recovery(total, tables, took_s, filled_s, commits, watch.samples, watch.peak_mib(), [])
    for name in names:
        if not frazil.tables.count(name).proves(total // tables):
            found.violations.append(f"{name}: PyIceberg does not find each file once")
    if found.peak_mib > RESIDENT_MIB_MAX:
        found.violations.append(f"{found.peak_mib:,.0f} MiB resident, more than a pod has")
    return found


class _Watch:
    """Samples the committer, not too often."""

    def __init__(self, frazil: Frazil) -> None:
        self._frazil = frazil
        self._started_s = time.monotonic()
        self._next_s = 0.0
        self.samples: list[Sample] = []

    def look(self) -> None:
        at_s = time.monotonic() - self._started_s
        if at_s >= self._next_s:
            self._next_s = at_s + _SAMPLE_S
            if found := sample("committer", self._pid(), at_s):
                self.samples.append(found)

    def peak_mib(self) -> float:
        """Return the peak that the kernel has recorded, between samples too."""
        status = Path(f"/proc/{self._pid()}/status").read_text()
        [line] = [line for line in status.splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) / 1024

    def _pid(self) -> int:
        assert self._frazil.harness.committer is not None
        return self._frazil.harness.committer.pid


def print_page(found: Recovery, environment: Mapping[str, str], picture: str) -> str:
    batches = found.batches
    tenth = max(1, len(batches) // 10)
    by_tenths = [batches[start : start + tenth] for start in range(0, len(batches), tenth)]
    return "\n".join(
        [
            "# Recovery from a backlog",
            "",
            f"{_PRODUCERS} producers published while no committer ran (it took"
            f" {found.filled_s:.0f} s, with the making of the files). Then one started, with the"
            " default interval of 1 s.",
            "",
            f"**{found.summary()}.**",
            "",
            *(f"* BROKEN: {one}" for one in found.violations),
            "PyIceberg found each file once in every table." if not found.violations else "",
            "",
            f"![memory and batches]({picture})",
            "",
            "| commits | smallest batch | median | largest |",
            "|---|---|---|---|",
            *(
                f"| {number * tenth + 1} … {number * tenth + len(some)} | {min(some):,} |"
                f" {median([float(one) for one in some]):,.0f} | {max(some):,} |"
                for number, some in enumerate(by_tenths)
            ),
            "",
            "## Environment",
            "",
            *(f"* {name}: {value}" for name, value in environment.items()),
            "",
        ]
    )


def draw(found: Recovery, path: Path) -> None:
    """Draw memory over time, and the size of each batch. Needs matplotlib."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, (upper, lower) = pyplot.subplots(2, 1, figsize=(8, 7), layout="constrained")
    upper.plot(
        [one.at_s for one in found.samples],
        [one.resident_bytes / _MIB for one in found.samples],
    )
    upper.set(xlabel="seconds since the committer was started", ylabel="resident, MiB")
    lower.plot(range(1, len(found.batches) + 1), found.batches, marker=".")
    lower.set(xlabel="commit", ylabel="requests in its batch")
    for panel in (upper, lower):
        panel.grid(visible=True, alpha=0.3)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
