"""Runs the maintenance tasks of one table, and adds their results to the table's commits.

A task works while commits go on, never two at once, and offers its finished results; the next
commit includes them in its swap. No task delays a commit: one that fails is logged, and retried
after a minute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from committer.errors import FrazilError
from committer.plan.cleanup.maintenance import Upkeep
from committer.plan.commit.commit import CommitPlan
from committer.plan.commit.landed_commit import LandedCommit
from committer.plan.ledger.state import TableState
from committer.service.requests.pending import Waiting
from committer.service.telemetry.log import log
from committer.service.telemetry.metrics import UpkeepKind
from committer.service.upkeep.attempt_garbage_collector import AttemptGarbageCollector
from committer.service.upkeep.dangling_remover import DanglingRemover
from committer.service.upkeep.expirer import Expirer
from committer.service.upkeep.ledger_upkeep import LedgerUpkeep
from committer.service.upkeep.merger import Merger
from committer.service.upkeep.own_requests import OwnRequests
from committer.service.upkeep.table_files import TableFiles
from committer.service.upkeep.vector_converter import VectorConverter

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


class TableUpkeep:
    """The maintenance tasks of one table. The table committer's task owns and closes it."""

    def __init__(
        self, files: TableFiles, waiting: Waiting, ledger: LedgerUpkeep, requests: OwnRequests
    ) -> None:
        self.ledger = ledger
        self._table = files.table
        self._world = files.parts.world
        self._metrics = files.parts.metrics
        self._garbage_collector = AttemptGarbageCollector(files)
        # Metadata files that fall off the log are deleted before the garbage collector asks for
        # them.
        self._merger = Merger(files)
        # Another service that expires and deletes would meet ours in the same files. Merging only
        # adds, and keeps commits small.
        self._deletes = not files.parts.catalog.capabilities.maintains_tables
        self._maintenance_tasks: tuple[MaintenanceTask, ...] = (
            (
                self._merger,
                Expirer(files, waiting),
                self._garbage_collector,
                DanglingRemover(files, requests),
                VectorConverter(files, requests),
            )
            if self._deletes
            else (self._merger,)
        )
        self._task: asyncio.Task[None] | None = None
        self._attempts = files.attempts
        self._not_before_s = 0.0

    def offer(self) -> Upkeep:
        """Return the finished results that are not known to have landed."""
        upkeep = Upkeep()
        for task in self._maintenance_tasks:
            upkeep = task.offer(upkeep)
        return upkeep

    def loaded(self) -> None:
        """Pass on the attempts that loading the table has resolved,
        after their answers were lost."""
        resolved = self._attempts.take_resolved()
        for plan in resolved.landed:
            self._note_landed(plan)
        for plan in resolved.absent:
            self._merger.may_have_gone(plan)

    def landed(self, commit: LandedCommit) -> None:
        """Note what a commit included, and begin what is due now."""
        self.loaded()
        self._note_landed(commit.plan)
        self.ledger.landed(commit)
        state, branch = commit.state, commit.batch.branch
        offered = {path for one in self.offer().merged for path in one.paths}
        if self._deletes:
            self._garbage_collector.judge(offered)
        else:
            self._attempts.take_garbage(offered)
        if self._task is None and self._world.monotonic_s() >= self._not_before_s:
            due = [task for task in self._maintenance_tasks if task.is_due(state, branch)]
            if due:
                self._task = asyncio.create_task(
                    self._work(due, state, branch), name=f"upkeep {self._table}"
                )

    async def close(self) -> None:
        """Cancel the running task after its current step. Finished results stay on offer."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait((task,))

    def _note_landed(self, plan: CommitPlan) -> None:
        for task in self._maintenance_tasks:
            task.landed(plan)

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
        self._task = None

    def _failed(self, task: MaintenanceTask) -> None:
        self._metrics.upkeep_failed(self._table, task.kind)
        self._not_before_s = self._world.monotonic_s() + FAULT_PAUSE_S

    def _about(self, task: MaintenanceTask) -> dict[str, str]:
        return {"table": str(self._table), "kind": task.kind}
