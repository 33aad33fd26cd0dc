"""Reports a commit that has landed: the canonical log line, and metrics."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from committer.iceberg.metadata.snapshot import Snapshot
from committer.plan.batch import Batch
from committer.request.table_identifier import TableIdentifier
from committer.service.telemetry.log import log
from committer.service.telemetry.metrics import Landing, Metrics


@dataclass(frozen=True, slots=True)
class LandedBatch:
    """A batch, the snapshot it became, and what it took."""

    identifier: TableIdentifier
    batch: Batch
    snapshot: Snapshot
    attempts: int
    started_ms: int
    metadata_bytes: int | None


def report_commit(landed: LandedBatch, metrics: Metrics, *, now_ms: int) -> None:
    """Log the commit and count it."""
    landing = _landing(landed, now_ms)
    metrics.committed(landed.identifier, landing)
    requests = [one.request for one in landed.batch.requests]
    published_ms = min(request.published_at_ms for request in requests)
    log.info(
        "commit.landed",
        table=str(landed.identifier),
        snapshot_id=landed.snapshot.snapshot_id,
        attempt=landed.attempts,
        requests=len(requests),
        sequence_number=landed.snapshot.sequence_number,
        files=landing.files,
        rows=landing.rows,
        bytes=landing.size_bytes,
        duration_s=round(landing.duration_s, 3),
        wait_s=round(max(0, landed.started_ms - published_ms) / 1000, 3),
        conflicts=landed.attempts - 1,
    )
    if log.is_enabled_for(logging.DEBUG):
        _log_requests(landed, now_ms)


def _landing(landed: LandedBatch, now_ms: int) -> Landing:
    summary = landed.snapshot.summary or {}
    return Landing(
        files=int(summary.get("added-data-files", 0)),
        rows=int(summary.get("added-records", 0)),
        size_bytes=int(summary.get("added-files-size", 0)),
        duration_s=max(0, now_ms - landed.started_ms) / 1000,
        waits_s=[
            max(0, now_ms - one.request.published_at_ms) / 1000 for one in landed.batch.requests
        ],
        now_ms=now_ms,
        metadata_bytes=landed.metadata_bytes,
    )


def _log_requests(landed: LandedBatch, now_ms: int) -> None:
    """Log the latency of each request, at level debug."""
    for one in landed.batch.requests:
        log.debug(
            "request.landed",
            table=str(landed.identifier),
            producer=one.request.producer.id,
            epoch=one.request.epoch,
            snapshot_id=landed.snapshot.snapshot_id,
            latency_s=round(max(0, now_ms - one.request.published_at_ms) / 1000, 3),
        )
