"""The next batch of a table, kept apart from the attempts at it.

Over conflicts and lost answers an in-flight batch stays the same, so that its written files are
used again and its snapshot keeps its id. A batch that fails is halved until the request at fault
stands alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from committer.plan.attempt_log import AttemptLog
from committer.plan.batch import Batch, PreparedManifest, prepare_manifests, snapshot_id_from
from committer.plan.batch_policy import BatchPolicy, next_batch
from committer.plan.maintenance import Upkeep
from committer.plan.request_check import CheckBasis, CheckedRequest
from committer.plan.state import TableState
from committer.reason import Reason
from committer.request.table_identifier import TableIdentifier
from committer.service.requests.pending import Waiting
from committer.service.table.cached_table import CachedTable
from committer.service.table.commit_pacer import CommitPacer
from committer.service.table.shop import Shop
from committer.service.tasks.steps import off_loop_if_large
from committer.service.telemetry.log import log
from committer.service.upkeep.table_upkeep import TableUpkeep

# Nothing names what was written for a batch before it lands: an engine's orphan clean-up takes it,
# though not so soon.
INFLIGHT_S_MAX = 3_600.0


@dataclass(slots=True)
class InflightBatch:
    """A batch that is being committed, kept over attempts, with the files written for it.

    `resolved_count`: that of the attempt log when the batch was selected.
    """

    batch: Batch
    basis: CheckBasis
    prepared: tuple[PreparedManifest, ...]
    upkeep: Upkeep
    since_s: float
    resolved_count: int
    attempts: int = 0
    started_ms: int = 0
    written: set[str] = field(default_factory=set)
    metadata_bytes: int | None = None


class BatchSelector:
    """Selects the batches of one table, one at a time, and keeps the one in flight."""

    def __init__(
        self,
        identifier: TableIdentifier,
        shop: Shop,
        *,
        waiting: Waiting,
        cached_table: CachedTable,
        attempts: AttemptLog,
        pacer: CommitPacer,
        upkeep: TableUpkeep,
    ) -> None:
        self._identifier = identifier
        self._shop = shop
        self._waiting = waiting
        self._cached_table = cached_table
        self._attempts = attempts
        self._pacer = pacer
        self._upkeep = upkeep
        self._current: InflightBatch | None = None
        self._batch_max: int | None = None

    @property
    def sent_keys(self) -> frozenset[str]:
        """The keys of the batch in flight: its requests may have landed."""
        sent = self._current.batch.requests if self._current else ()
        return frozenset(one.sealed.key for one in sent)

    @property
    def are_urgent(self) -> bool:
        """Whether to attempt at once: a retry, or half of a batch that failed."""
        return self._current is not None or self._batch_max is not None

    async def next(
        self, candidates: Sequence[CheckedRequest], basis: CheckBasis, state: TableState
    ) -> InflightBatch | None:
        """Return the batch in flight if all of it may still land, else a new one. None: there is
        nothing to commit.
        """
        inflight = self._current
        if inflight is not None and basis == inflight.basis and self._is_fresh(inflight, state):
            still = {candidate.sealed.key for candidate in candidates}
            if all(one.sealed.key in still for one in inflight.batch.requests):
                return inflight
        self._current = None
        requests = _one_branch(next_batch(candidates, self._policy(state)))
        if requests:
            self._current = await self._prepared(requests, basis, state)
        return self._current

    def drop(self) -> None:
        """Drop the batch in flight; the next round selects anew."""
        self._current = None

    def landed(self) -> None:
        """Note that the batch in flight is in the table."""
        self._current = None
        self._batch_max = None

    def isolate(self, requests: Sequence[CheckedRequest], reason: Reason, message: str) -> None:
        """Halve the batches until the request at fault stands alone, then suspect it: the next
        round asks the ledger, in freshly read metadata, whether it has landed after all.
        """
        self._cached_table.forget()
        self.halve(requests)
        if len(requests) == 1:
            self._waiting[requests[0].sealed.key].suspicion = (reason, message)

    def halve(self, requests: Sequence[CheckedRequest]) -> None:
        """Halve the size of the next batch."""
        self._current = None
        self._batch_max = max(1, len(requests) // 2)

    async def _prepared(
        self, requests: tuple[CheckedRequest, ...], basis: CheckBasis, state: TableState
    ) -> InflightBatch | None:
        batch = Batch(requests, self._new_snapshot_id(state), self._shop.world.uuid())
        try:
            prepared = await off_loop_if_large(
                sum(one.size_bytes for one in requests), prepare_manifests, batch, state.metadata
            )
        except Exception as error:  # noqa: BLE001  # isolates the request that our own bug trips over
            log.exception("plan.crashed", table=str(self._identifier), requests=len(requests))
            self._shop.metrics.crashed("plan")
            self.isolate(requests, Reason.PLAN_FAILED, repr(error))
            return None
        now_s = self._shop.world.monotonic_s()
        offered, resolved_count = self._upkeep.offer(), self._attempts.resolved_count
        return InflightBatch(batch, basis, prepared, offered, now_s, resolved_count)

    def _is_fresh(self, inflight: InflightBatch, state: TableState) -> bool:
        """Not if its snapshot is in the table: its ledger was removed, and that was accepted. Nor
        if the table has moved since the answer to an attempt was lost: its snapshot may have been
        in the table, rolled back and expired, and its manifests deleted with it.
        """
        age_s = self._shop.world.monotonic_s() - inflight.since_s
        is_there = state.metadata.snapshot_by_id(inflight.batch.snapshot_id) is not None
        may_have_gone = inflight.resolved_count != self._attempts.resolved_count
        return age_s <= INFLIGHT_S_MAX and not is_there and not may_have_gone

    def _policy(self, state: TableState) -> BatchPolicy:
        """The table's policy, with the limit while bisecting."""
        policy = self._pacer.policy(state)
        limit = min(self._batch_max or policy.requests_max, policy.requests_max)
        return replace(policy, requests_max=limit)

    def _new_snapshot_id(self, state: TableState) -> int:
        while True:
            snapshot_id = snapshot_id_from(self._shop.world.uuid(), state.metadata)
            if snapshot_id is not None:
                return snapshot_id


def _one_branch(requests: Sequence[CheckedRequest]) -> tuple[CheckedRequest, ...]:
    """The requests of the first one's branch: a batch makes one snapshot."""
    if not requests:
        return ()
    branch = requests[0].request.branch
    return tuple(one for one in requests if one.request.branch == branch)
