"""Measurements during a soak, and whether they stay flat."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

from bench.statistics import median, percentile

_MIB = 1024 * 1024
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# Of all pairs of a long run these are enough.
_POINTS_MAX = 200


@dataclass(frozen=True, slots=True)
class Sample:
    """A process at a moment: resident bytes, open file handles."""

    at_s: float
    process: str
    resident_bytes: int
    handles: int


@dataclass(frozen=True, slots=True)
class Depth:
    """Doorbells in the queue at a moment; None while it does not answer."""

    at_s: float
    waiting: int | None


@dataclass(slots=True)
class Standstills:
    """How long each request has been in the inbox, by looks at it.

    `oldest_s`: the longest of all. A request is seen to begin at the first look that finds it.
    """

    oldest_s: float = 0.0
    oldest: str = ""
    _since_s: dict[str, float] = field(default_factory=dict)

    def look(self, at_s: float, keys: Iterable[str]) -> None:
        """Note what is in the inbox at a moment."""
        self._since_s = {key: self._since_s.get(key, at_s) for key in keys}
        for key, since_s in self._since_s.items():
            if at_s - since_s > self.oldest_s:
                self.oldest_s, self.oldest = at_s - since_s, key


def sample(process: str, pid: int, at_s: float) -> Sample | None:
    """Sample a process; None where it is gone."""
    folder = Path(f"/proc/{pid}")
    with suppress(OSError):
        pages = int((folder / "statm").read_text().split()[1])
        return Sample(at_s, process, pages * _PAGE_BYTES, len(list((folder / "fd").iterdir())))
    return None


@dataclass(frozen=True, slots=True)
class Window:
    """Latencies of the requests that ended in some seconds from `at_s` on."""

    at_s: float
    count: int
    p50_s: float
    p99_s: float


def windows(ends: Iterable[tuple[float, float]], width_s: float) -> list[Window]:
    """Summarize `ends`, (when, how long it took), by windows of time."""
    by_window: defaultdict[int, list[float]] = defaultdict(list)
    for at_s, took_s in ends:
        by_window[int(at_s // width_s)].append(took_s)
    return [
        Window(number * width_s, len(each), percentile(each, 0.5), percentile(each, 0.99))
        for number, each in sorted(by_window.items())
    ]


# --- Flatness ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Trend:
    """How something moves after the warm-up: the median, and by how much it grows from there to
    the end, by the median of the slopes between all pairs of points (Theil and Sen), which some
    outliers do not move.
    """

    what: str
    median: float
    growth: float
    growth_max: float
    points: int

    @property
    def is_flat(self) -> bool:
        return self.growth <= self.growth_max

    def __str__(self) -> str:
        return (
            f"{self.what}: median {self.median:,.1f}, growth after warm-up {self.growth:+,.1f}"
            f" (at most {self.growth_max:,.1f})"
        )


def trend(what: str, points: Sequence[tuple[float, float]], *, growth_max: float) -> Trend:
    """Return the trend of points (seconds, value), without the first third."""
    late = sorted(points)[len(points) // 3 :]
    values = [value for _, value in late]
    span_s = late[-1][0] - late[0][0] if late else 0.0
    return Trend(what, median(values), slope(late) * span_s, growth_max, len(late))


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the median slope per second; 0 of fewer than two points."""
    step = len(points) // _POINTS_MAX + 1
    pairs = combinations(points[::step], 2)
    slopes = [(v - u) / (t - s) for (s, u), (t, v) in pairs if t > s]
    return median(slopes) if slopes else 0.0


def trends_of(process: str, samples: Iterable[Sample]) -> list[Trend]:
    """Return the trends. Memory may grow by a tenth and 16 MiB, handles by 12: open ones vary."""
    mine = [one for one in samples if one.process == process]
    resident = [(one.at_s, one.resident_bytes / _MIB) for one in mine]
    allowed = 16 + 0.1 * median([value for _, value in resident]) if mine else 0.0
    return [
        trend(f"MiB resident of {process}", resident, growth_max=allowed),
        trend(
            f"file handles of {process}",
            [(one.at_s, float(one.handles)) for one in mine],
            growth_max=12,
        ),
    ]
