"""The numbers that the demo shows while it runs: events in, totals out. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from committer.demo.writers.events import (
    ChangeLanded,
    CommitLanded,
    CommitterReady,
    Event,
    QueryEnded,
    RequestLanded,
    RequestQuarantined,
    RowsWritten,
    SparkStarted,
)


@dataclass(slots=True)
class Progress:
    """Totals of a run so far. Nothing in it is estimated.

    `…_reported`: as published, by Spark, which tells it a moment later than it happens.
    """

    rows_expected: int
    committer_ready: bool = False
    applications_started: int = 0
    batches_reported: int = 0
    rows_reported: int = 0
    batches_committed: int = 0
    rows_committed: int = 0
    commits: int = 0
    latencies_s: list[float] = field(default_factory=list)
    writer_errors: list[str] = field(default_factory=list)
    quarantined: list[str] = field(default_factory=list)
    changes: list[ChangeLanded] = field(default_factory=list)

    def take(self, events: Iterable[Event]) -> None:
        for event in events:
            self._take(event)

    def _take(self, event: Event) -> None:
        match event:
            case CommitterReady():
                self.committer_ready = True
            case SparkStarted():
                self.applications_started += 1
            case RowsWritten(rows=rows):
                # A micro-batch without rows publishes nothing.
                self.batches_reported += rows > 0
                self.rows_reported += max(0, rows)
            case RequestLanded(latency_s):
                self.latencies_s.append(latency_s)
            case CommitLanded(requests, rows):
                self.commits += 1
                self.batches_committed += requests
                self.rows_committed += rows
            case QueryEnded(error=error):
                self.writer_errors += [error] if error else []
            case ChangeLanded():
                self.changes.append(event)
            case RequestQuarantined(reason, message):
                self.quarantined.append(f"{reason}: {message}")

    @property
    def batches_published(self) -> int:
        """Micro-batches published: those in the table count even if Spark has not reported them."""
        return max(self.batches_reported, self.batches_committed)

    @property
    def rows_published(self) -> int:
        return max(self.rows_reported, self.rows_committed)

    @property
    def batches_per_commit(self) -> float:
        return self.batches_committed / self.commits if self.commits else 0.0

    @property
    def is_settled(self) -> bool:
        """Everything that Spark reported as published is in the table."""
        others = sum(change.requests for change in self.changes)
        return self.batches_committed >= self.batches_reported + others


def percentile(values: Sequence[float], percent: int) -> float | None:
    """Return the percentile by nearest rank; None without values."""
    if not values:
        return None
    rank = -(-len(values) * percent // 100)
    return sorted(values)[max(rank, 1) - 1]
