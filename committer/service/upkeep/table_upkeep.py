"""The upkeep of one table: adds the results of its maintenance tasks to the table's commits.

The tasks work while commits go on, and offer their finished results; the next commit includes them
in its swap.
"""

from __future__ import annotations

from committer.plan.cleanup.maintenance import Upkeep
from committer.plan.commit.attempt_log import AttemptLog
from committer.plan.commit.landed_commit import LandedCommit
from committer.service.upkeep.attempt_garbage_collector import AttemptGarbageCollector
from committer.service.upkeep.ledger_upkeep import LedgerUpkeep
from committer.service.upkeep.maintenance_tasks import MaintenanceTasks
from committer.service.upkeep.merger import Merger


class TableUpkeep:
    """The upkeep of one table. The table committer's task owns and closes it."""

    def __init__(
        self,
        ledger: LedgerUpkeep,
        attempts: AttemptLog,
        tasks: MaintenanceTasks,
        merger: Merger,
        garbage_collector: AttemptGarbageCollector | None,
    ) -> None:
        """Maintain a table. `merger` and `garbage_collector`: of the tasks, those that are told
        more. `garbage_collector`: None where the garbage of attempts is left alone."""
        self.ledger = ledger
        self._attempts = attempts
        self._tasks = tasks
        self._merger = merger
        self._garbage_collector = garbage_collector

    def offer(self) -> Upkeep:
        """Return the finished results that are not known to have landed."""
        return self._tasks.offer()

    def loaded(self) -> None:
        """Pass on the attempts that loading the table has resolved,
        after their answers were lost."""
        resolved = self._attempts.take_resolved()
        for plan in resolved.landed:
            self._tasks.landed(plan)
        for plan in resolved.absent:
            self._merger.may_have_gone(plan)

    def landed(self, commit: LandedCommit) -> None:
        """Note what a commit included, and begin what is due now."""
        self.loaded()
        self._tasks.landed(commit.plan)
        self.ledger.landed(commit)
        offered = {path for one in self.offer().merged for path in one.paths}
        if self._garbage_collector is not None:
            self._garbage_collector.judge(offered)
        else:
            self._attempts.take_garbage(offered)
        self._tasks.begin(commit.state, commit.batch.branch)

    async def close(self) -> None:
        """Cancel the running task after its current step. Finished results stay on offer."""
        await self._tasks.close()
