"""Reports a commit that has landed: the canonical log line, and metrics."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass
from heapq import nsmallest

from committer.plan.commit.landed_commit import CONFLICT, LandedCommit
from committer.ports.world import World
from committer.request.commit_request import CommitRequest
from committer.request.table_identifier import TableIdentifier
from committer.service.telemetry.log import log
from committer.service.telemetry.metrics import Landing, Metrics

# One line names so many producers, and counts all.
PRODUCERS_NAMED_MAX = 8


@dataclass(eq=False)
class CommitReport:
    """Reports the commits of one table."""

    identifier: TableIdentifier
    metrics: Metrics
    world: World

    def landed(self, commit: LandedCommit) -> None:
        """Log the commit and count it."""
        now_ms = self.world.now_ms()
        landing = _landing(commit, now_ms, self.world.monotonic_s())
        self.metrics.committed(self.identifier, landing)
        requests = [one.request for one in commit.batch.requests]
        producers = {request.producer.id for request in requests}
        log.info(
            "commit.landed",
            table=str(self.identifier),
            snapshot_id=commit.plan.snapshot_id,
            attempt=commit.attempts,
            snapshots=len(commit.plan.snapshots),
            requests=len(requests),
            operations=dict(Counter(request.operation for request in requests)),
            producers=nsmallest(PRODUCERS_NAMED_MAX, producers),
            producer_count=len(producers),
            sequence_number=commit.state.metadata.last_sequence_number,
            files=landing.files,
            rows=landing.rows,
            bytes=landing.size_bytes,
            duration_s=round(landing.duration_s, 3),
            wait_s=round(max(_wait_s(commit, request) for request in requests), 3),
            conflicts=commit.failures.get(CONFLICT, 0),
            failures=dict(commit.failures),
        )
        if log.is_enabled_for(logging.DEBUG):
            self._log_requests(commit, landing.duration_s)

    def _log_requests(self, commit: LandedCommit, duration_s: float) -> None:
        """Log the latency of each request, at level debug."""
        for one in commit.batch.requests:
            log.debug(
                "request.landed",
                table=str(self.identifier),
                producer=one.request.producer.id,
                epoch=one.request.epoch,
                snapshot_id=commit.plan.landed[one.request.inbox_key].snapshot_id,
                latency_s=round(_latency_s(commit, one.request, duration_s), 3),
            )


def _landing(commit: LandedCommit, now_ms: int, now_s: float) -> Landing:
    duration_s = now_s - commit.started_s
    return Landing(
        files=_sum(commit, "added-data-files"),
        rows=_sum(commit, "added-records"),
        size_bytes=_sum(commit, "added-files-size"),
        duration_s=duration_s,
        waits_s=[_latency_s(commit, one.request, duration_s) for one in commit.batch.requests],
        now_ms=now_ms,
        metadata_bytes=commit.metadata_bytes,
    )


def _wait_s(commit: LandedCommit, request: CommitRequest) -> float:
    """Return how long a request waited for the commit's first attempt. The producer's clock may be
    fast.
    """
    return max(0, commit.started_ms - request.published_at_ms) / 1000


def _latency_s(commit: LandedCommit, request: CommitRequest, duration_s: float) -> float:
    """Return how long a request took to land. The wall clock may be set during the commit, so only
    the wait before it is read from that.
    """
    return _wait_s(commit, request) + duration_s


def _sum(commit: LandedCommit, key: str) -> int:
    """Return the sum of one count over the commit's snapshots."""
    return sum(int((one.summary or {}).get(key, 0)) for one in commit.plan.snapshots)
