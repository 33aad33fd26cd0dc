"""Runs the maintenance tasks of one table.

A task works while commits go on, never two at once, and offers its finished results. No task delays
a commit: one that fails is logged, and retried after a minute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from committer.errors import FrazilError
from committer.plan.cleanup.maintenance import Upkeep
from committer.plan.commit.commit import CommitPlan
from committer.plan.ledger.state import TableState
from committer.ports.world import World
from committer.request.table_identifier import TableIdentifier
from committer.service.telemetry.log import log
from committer.service.telemetry.metrics import Metrics, UpkeepKind

FAULT_PAUSE_S = 60.0


class MaintenanceTask(Protocol):
    """One kind of background work on one table.

    * `is_due`, `offer` and `landed` answer at once: the rounds call them.
    * `work` may raise or be canceled at any await, and loses nothing but work then. Its long
      computations leave the event loop.
    * A result is offered again until a call of `landed` settles it: an attempt may have failed, or
      its answer may be lost.
    """

    kind: UpkeepKind

    def is_due(self, state: TableState, branch: str) -> bool:
        """Return whether there is something to do for a branch that was just committed to."""

    async def work(self, state: TableState, branch: str) -> None:
        """Do it, and keep the results for `offer`."""

    def offer(self, upkeep: Upkeep) -> Upkeep:
        """Add what is finished to what the next attempt may take along."""

    def landed(self, plan: CommitPlan) -> None:
        """Note that a commit has surely landed. Forget what it took along (`plan.upkeep`), and what
        it left out because it no longer applies."""


class MaintenanceTasks:
    """The tasks of one table, in the order in which they work."""

    def __init__(
        self,
        table: TableIdentifier,
        tasks: Sequence[MaintenanceTask],
        world: World,
        metrics: Metrics,
    ) -> None:
        self._table = table
        self._tasks = tasks
        self._world = world
        self._metrics = metrics
        self._running: asyncio.Task[None] | None = None
        self._not_before_s = 0.0

    def offer(self) -> Upkeep:
        """Return the finished results that are not known to have landed."""
        upkeep = Upkeep()
        for task in self._tasks:
            upkeep = task.offer(upkeep)
        return upkeep

    def landed(self, plan: CommitPlan) -> None:
        """Note that a commit has surely landed."""
        for task in self._tasks:
            task.landed(plan)

    def begin(self, state: TableState, branch: str) -> None:
        """Begin what is due for a branch that was just committed to, unless one works still."""
        if self._running is None and self._world.monotonic_s() >= self._not_before_s:
            due = [task for task in self._tasks if task.is_due(state, branch)]
            if due:
                self._running = asyncio.create_task(
                    self._work(due, state, branch), name=f"upkeep {self._table}"
                )

    async def close(self) -> None:
        """Cancel the running task after its current step. Finished results stay on offer."""
        running, self._running = self._running, None
        if running is not None:
            running.cancel()
            await asyncio.wait((running,))

    async def _work(self, due: Sequence[MaintenanceTask], state: TableState, branch: str) -> None:
        for task in due:
            try:
                await task.work(state, branch)
            except FrazilError as error:
                self._failed(task)
                log.warning("upkeep.failed", **self._about(task), error=str(error))
            except Exception:  # noqa: BLE001  # our bug: commits go on without the task
                self._failed(task)
                self._metrics.crashed("upkeep")
                log.exception("upkeep.crashed", **self._about(task))
        self._running = None

    def _failed(self, task: MaintenanceTask) -> None:
        self._metrics.upkeep_failed(self._table, task.kind)
        self._not_before_s = self._world.monotonic_s() + FAULT_PAUSE_S

    def _about(self, task: MaintenanceTask) -> dict[str, str]:
        return {"table": str(self._table), "kind": task.kind}
