"""Reports a commit that has landed: the canonical log line, and metrics."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from committer.plan.commit.landed_commit import LandedCommit
from committer.ports.world import World
from committer.request.table_identifier import TableIdentifier
from committer.service.telemetry.log import log
from committer.service.telemetry.metrics import Landing, Metrics


@dataclass(eq=False)
class CommitReport:
    """Reports the commits of one table."""

    identifier: TableIdentifier
    metrics: Metrics
    world: World

    def landed(self, commit: LandedCommit) -> None:
        """Log the commit and count it."""
        now_ms = self.world.now_ms()
        landing = _landing(commit, now_ms)
        self.metrics.committed(self.identifier, landing)
        requests = [one.request for one in commit.batch.requests]
        published_ms = min(request.published_at_ms for request in requests)
        log.info(
            "commit.landed",
            table=str(self.identifier),
            snapshot_id=commit.plan.snapshot_id,
            attempt=commit.attempts,
            snapshots=len(commit.plan.snapshots),
            requests=len(requests),
            sequence_number=commit.state.metadata.last_sequence_number,
            files=landing.files,
            rows=landing.rows,
            bytes=landing.size_bytes,
            duration_s=round(landing.duration_s, 3),
            wait_s=round(max(0, commit.started_ms - published_ms) / 1000, 3),
            conflicts=commit.attempts - 1,
        )
        if log.is_enabled_for(logging.DEBUG):
            self._log_requests(commit, now_ms)

    def _log_requests(self, commit: LandedCommit, now_ms: int) -> None:
        """Log the latency of each request, at level debug."""
        for one in commit.batch.requests:
            log.debug(
                "request.landed",
                table=str(self.identifier),
                producer=one.request.producer.id,
                epoch=one.request.epoch,
                snapshot_id=commit.plan.landed[one.request.inbox_key].snapshot_id,
                latency_s=round(max(0, now_ms - one.request.published_at_ms) / 1000, 3),
            )


def _landing(commit: LandedCommit, now_ms: int) -> Landing:
    return Landing(
        files=_sum(commit, "added-data-files"),
        rows=_sum(commit, "added-records"),
        size_bytes=_sum(commit, "added-files-size"),
        duration_s=max(0, now_ms - commit.started_ms) / 1000,
        waits_s=[
            max(0, now_ms - one.request.published_at_ms) / 1000 for one in commit.batch.requests
        ],
        now_ms=now_ms,
        metadata_bytes=commit.metadata_bytes,
    )


def _sum(commit: LandedCommit, key: str) -> int:
    """Return the sum of one count over the commit's snapshots."""
    return sum(int((one.summary or {}).get(key, 0)) for one in commit.plan.snapshots)
