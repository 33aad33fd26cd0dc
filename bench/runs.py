"""One run of one system, and what came of it: the words that all scenarios and systems share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

from bench.profiles import Profile
from bench.statistics import median, percentile
from bench.tables import Counted, Live


@dataclass(frozen=True, slots=True)
class Contention:
    """So many writers on one table for a while; each waits for its commit before the next."""

    writers: int
    window_s: float
    delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class Operating:
    """So many writers that change rows of their own on one table; `kind`: `operating.KINDS`."""

    kind: str
    writers: int
    window_s: float

    @property
    def format_version(self) -> int:
        """Only the third version has deletion vectors."""
        return 3 if self.kind == "vectors" else 2


@dataclass(frozen=True, slots=True)
class Compacting:
    """A stream that publishes a row delta each `period_s`, each `hit_every`th one on a file that is
    to be compacted; and a compaction of so many groups of so many files, by so many commits, that
    works for `work_s` before the last of them. `compacts`: False for the stream alone.
    """

    groups: int
    files: int
    parts: int
    work_s: float
    period_s: float
    hit_every: int
    window_s: float
    compacts: bool = True


@dataclass(frozen=True, slots=True)
class Compacted:
    """The outcome of a compaction, and of the stream beside it.

    `landed`: the groups; `lost`: how often one was, and `retried`: how often it was tried again.
    `took_s`: until the last group had landed, or the window ended. `commits_ms`: of those that
    landed. `own`: the stream's deltas on files of its own that landed; `hits`: on each group.
    """

    landed: tuple[int, ...] = ()
    lost: int = 0
    retried: int = 0
    took_s: float = 0.0
    commits_ms: tuple[float, ...] = ()
    own: int = 0
    hits: Mapping[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class Outcome:
    """The observations of a run's writers.

    Times are in seconds on one clock. `requests`: (called, durable, ended) of those that landed;
    a system that knows no such state leaves durable out. `stopped` says why a run was ended
    before its writers had finished; then `landed` is what the table shows.
    """

    started_s: float
    requests: list[tuple[float, float | None, float]] = field(default_factory=list)
    failed: dict[str, int] = field(default_factory=dict)
    counted: Counted | None = None
    stopped: str | None = None
    attempts: int | None = None
    ended_s: float | None = None
    more: dict[str, float] = field(default_factory=dict)
    compacted: Compacted = Compacted()

    @property
    def landed(self) -> int:
        if self.stopped and self.counted:
            return self.counted.files
        return len(self.requests)

    @property
    def failures(self) -> int:
        return sum(self.failed.values())

    @property
    def is_proven(self) -> bool:
        """Whether the foreign reader found exactly what the writers were told."""
        return self.counted is not None and self.counted.proves(self.landed)

    def rate(self, window_s: float) -> float:
        """Return landed requests a second inside the window; stragglers after it do not count."""
        if self.stopped and self.ended_s is not None:
            return self.landed / (self.ended_s - self.started_s)
        inside = sum(ended <= self.started_s + window_s for _, _, ended in self.requests)
        return inside / window_s

    def latencies_ms(self) -> Mapping[str, float]:
        """Return percentiles from the call, and from when the request was durable."""
        called = [(ended - called) * 1_000 for called, _, ended in self.requests]
        known = [(called, at, ended) for called, at, ended in self.requests if at is not None]
        durable = [(ended - at) * 1_000 for _, at, ended in known]
        publish = [(at - called) * 1_000 for called, at, _ in known]
        return {
            "p50_ms": percentile(called, 0.5),
            "p99_ms": percentile(called, 0.99),
            "max_ms": max(called, default=float("nan")),
            "p50_durable_ms": percentile(durable, 0.5),
            "p99_durable_ms": percentile(durable, 0.99),
            "median_publish_ms": median(publish),
        }


def compacted_of(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an answer says of a compaction or of the stream beside it."""
    found: dict[str, Any] = {
        one.name: answer[one.name] for one in fields(Compacted) if one.name in answer
    }
    if "hits" in found:
        found["hits"] = {int(group): count for group, count in found["hits"]}
    for name in ("landed", "commits_ms"):
        if name in found:
            found[name] = tuple(found[name])
    return found


class Contender(Protocol):
    """A system that writers contend in. `profiles`: of its last run, if that was asked for."""

    name: str
    profiles: dict[str, Profile]

    def contend(self, load: Contention) -> Outcome:
        """Run it on a fresh table and count what landed."""

    def close(self) -> None:
        """End its processes."""


class Operator(Protocol):
    """A system whose writers change rows. `profiles`: of its last run, if that was asked for."""

    name: str
    profiles: dict[str, Profile]

    def operate(self, load: Operating) -> tuple[Outcome, Live]:
        """Run it on a fresh table, and count what is live afterwards."""


class Compactor(Protocol):
    """A system that compacts. `profiles`: of its last run, if that was asked for."""

    name: str
    profiles: dict[str, Profile]

    def compact(self, load: Compacting) -> tuple[Outcome, Live]:
        """Run it on a fresh table, and count what is live afterwards. The outcome is the stream's,
        with what became of the compaction."""
