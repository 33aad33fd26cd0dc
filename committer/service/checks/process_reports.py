"""Reports the ends of worker processes: in the log, as a metric, as a condition."""

from __future__ import annotations

from dataclasses import dataclass

from committer.plan.scheduling.backoff import retry_s
from committer.service.checks.check_process import NotStartedError, ProcessEndedError
from committer.service.telemetry.health import Health
from committer.service.telemetry.log import log
from committer.service.telemetry.metrics import Metrics

COMPONENT = "worker process"


@dataclass(eq=False)
class ProcessReports:
    """Reports of all worker processes. The condition stays until one of them answers again."""

    health: Health
    metrics: Metrics

    def __post_init__(self) -> None:
        self._failures = 0

    def ended(self, error: ProcessEndedError, key: str, *, is_apart: bool) -> None:
        """Report that the job of a request has ended a process. `is_apart`: for the second time."""
        self.metrics.worker_process_ended(error.limit or "other")
        log.warning(
            "worker_process.ended", cause=str(error), key=ascii(key[:500]), is_last=is_apart
        )
        self.health.degraded(
            COMPONENT,
            f"the check of `{key[:500]}` has ended it ({error}); another one takes its place",
        )

    async def not_started(self, error: NotStartedError) -> None:
        """Report that a process does not start, and wait until it is tried again."""
        self._failures += 1
        why = f"it does not start ({error}): requests that need it wait in the inbox"
        if self.health.degraded(COMPONENT, why):
            log.warning("worker_process.start_failed", error=str(error))
        world = self.health.world
        await world.sleep(retry_s(self._failures, world.jitter()))

    def answered(self) -> None:
        """Clear the condition, as a process has answered."""
        self._failures = 0
        if self.health.healthy(COMPONENT):
            log.warning("worker_process.recovered")
