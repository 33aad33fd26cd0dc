"""Removes the delete files of a table's main branch that apply to no live data file any more.

`plan/cleanup/dangling_deletes.py` finds them in the background. A request removes them; it lands
although the head has moved, and not if data has come that one of them may apply to.
"""

from __future__ import annotations

from committer.iceberg.metadata.snapshot import MAIN
from committer.plan.cleanup.dangling_deletes import DanglingDeletes, removes_dangling
from committer.plan.ledger.state import TableState
from committer.ports.world import World
from committer.service.tasks.steps import OFF_LOOP_BYTES, selecting_bytes
from committer.service.telemetry.metrics import Metrics, UpkeepKind
from committer.service.upkeep.own_requests import OwnRequests
from committer.service.upkeep.rewriting_task import RewritingTask
from committer.service.upkeep.table_files import TableFiles

LOOK_INTERVAL_S = 60.0
# A commit reads and writes anew the manifests of what it removes.
_FILES_MAX = 5_000


class DanglingRemover(RewritingTask):
    """The maintenance task that removes dangling deletes; one for each table committer."""

    kind = UpkeepKind.REMOVE_DANGLING_DELETES

    def __init__(
        self, files: TableFiles, requests: OwnRequests, world: World, metrics: Metrics
    ) -> None:
        super().__init__(files, requests, world, metrics)
        self._dangling = DanglingDeletes()
        self._look_at_s = 0.0

    def is_due(self, state: TableState, branch: str) -> bool:
        """Return whether the last look is a while ago, and something has changed since. A long list
        is not looked through in each round.
        """
        if branch != MAIN or not removes_dangling(state.metadata.properties):
            return False
        now_s = self._world.monotonic_s()
        if now_s < self._look_at_s:
            return False
        if self._dangling.is_due(state.head_rows(branch)):
            return True
        if selecting_bytes(state, branch) >= OFF_LOOP_BYTES:
            self._look_at_s = now_s + LOOK_INTERVAL_S
        return False

    async def work(self, state: TableState, branch: str) -> None:
        """Look, and ask for the removal of what is found."""
        self._look_at_s = self._world.monotonic_s() + LOOK_INTERVAL_S
        head = state.metadata.branch_head(branch)
        if head is None or await self._is_outstanding():
            return
        found = await self._files.answer(
            self._dangling.find(state.metadata, state.head_rows(branch))
        )
        if found:
            await self._publish(self._draft(state, branch, head, found[:_FILES_MAX]))
