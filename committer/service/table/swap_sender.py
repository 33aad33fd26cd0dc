"""Writes and sends the attempts of one table, and logs each with its answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from committer.plan.commit.attempt_log import AttemptLog
from committer.plan.commit.commit import CommitPlan
from committer.ports.pointer_swap import Committed, Conflict, Rejected, SwapAnswer, Unknown
from committer.ports.storage import Storage
from committer.request.table_identifier import TableIdentifier
from committer.service.table.inflight_batch import InflightBatch
from committer.service.tasks.recent_objects import TableObjects
from committer.service.tasks.steps import create_all
from committer.service.telemetry.log import log
from committer.service.telemetry.metrics import Metrics
from committer.service.telemetry.table_condition import TableCondition
from committer.service.transactions.table_transactions import TableTransactions

# An answer that is lost now and then is no condition to report; a catalog that never answers is.
UNKNOWN_SHOWN_AFTER = 3


@dataclass(eq=False)
class SwapSender:
    """Sends for one table, and tells the attempt log."""

    identifier: TableIdentifier
    transactions: TableTransactions
    storage: Storage
    attempts: AttemptLog
    condition: TableCondition
    metrics: Metrics
    objects: TableObjects

    async def send(self, inflight: InflightBatch, plan: CommitPlan) -> SwapAnswer:
        """Write what is not there yet, then swap.
        Errors: those of the ports, where nothing was swapped.
        """
        await self._write(inflight, plan)
        answer = await self.transactions.swap(inflight.batch.requests, plan.swap)
        self.metrics.swap_answered(self.identifier, answer)
        self._note(answer, inflight, plan)
        return answer

    async def _write(self, inflight: InflightBatch, plan: CommitPlan) -> None:
        """Write manifests that are not there yet,
        the list and the metadata file in one parallel round."""
        before = self.transactions.catalog.objects_before(plan.swap)
        self.attempts.sending(plan, [created.location for created in before])
        fresh = [one for one in plan.objects if one.location not in inflight.written]
        await create_all(self.storage, (*fresh, *before))
        self.objects.written(fresh)
        inflight.written.update(one.location for one in fresh)
        inflight.metadata_bytes = sum(len(one.content) for one in before) or None

    def _note(self, answer: SwapAnswer, inflight: InflightBatch, plan: CommitPlan) -> None:
        about: dict[str, object] = {
            "table": str(self.identifier),
            "snapshot_id": plan.snapshot_id,
            "attempt": inflight.attempts,
            "requests": len(inflight.batch.requests),
        }
        match answer:
            case Committed():
                pass
            case Conflict():
                self.attempts.refused(plan)
                log.info("commit.conflicted", **about)
            case Unknown(cause, crash):
                self.attempts.lost(plan)
                if crash is not None:
                    log.exception("swap.crashed", table=str(self.identifier), exc_info=crash)
                    self.metrics.crashed("swap")
                log.warning("commit.unknown", cause=cause, **about)
                if inflight.attempts >= UNKNOWN_SHOWN_AFTER:
                    self.condition.unanswered(cause)
            case Rejected(reason):
                self.attempts.refused(plan)
                log.warning("commit.rejected", reason=reason, **about)
            case _:
                assert_never(answer)
