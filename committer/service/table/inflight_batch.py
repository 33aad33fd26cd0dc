"""The next batch of a table, kept apart from the attempts at it.

Over conflicts and lost answers an in-flight batch stays the same, so that its written files are
used again and its snapshot keeps its id. A batch that fails is halved until the request at fault
stands alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from committer.plan.batch.batch import Batch, PreparedManifest
from committer.plan.batch.batch_policy import BatchPolicy, next_batch
from committer.plan.batch.request_check import CheckBasis, CheckedRequest
from committer.plan.cleanup.maintenance import Upkeep
from committer.plan.commit.attempt_log import AttemptLog
from committer.plan.commit.commit import CommitPlan
from committer.plan.commit.landed_commit import LandedCommit
from committer.plan.commit.operation_step import InConflict
from committer.plan.ledger.state import TableState
from committer.plan.operations.batch_steps import Requests, by_epoch, cut, of_one_swap
from committer.ports.catalog_capabilities import CatalogCapabilities
from committer.ports.world import World
from committer.reason import Reason
from committer.service.requests.pending import Refusal, Waiting
from committer.service.table.commit_pacer import CommitPacer
from committer.service.table.commit_planner import CommitPlanner, PlanCrashedError
from committer.service.upkeep.table_upkeep import TableUpkeep

# Nothing names what was written for a batch before it lands: an engine's orphan clean-up takes it,
# though not so soon.
INFLIGHT_S_MAX = 3_600.0


@dataclass(slots=True)
class InflightBatch:
    """A batch that is being committed, kept over attempts, with the files written for it.

    `resolved_count`: that of the attempt log when the batch was selected. `failures`: the attempts
    that did not land, by cause.
    """

    batch: Batch
    basis: CheckBasis
    prepared: tuple[PreparedManifest, ...]
    upkeep: Upkeep
    since_s: float
    resolved_count: int
    attempts: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    started_ms: int = 0
    started_s: float = 0.0
    written: set[str] = field(default_factory=set)
    metadata_bytes: int | None = None
    _unknown: tuple[str, str] = ("", "")
    _unknown_count: int = 0

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(one.sealed.key for one in self.batch.requests)

    def unanswered(self, cause: str, plan: CommitPlan) -> int:
        """Count the answers in a row that were lost for this cause, on this base."""
        known = (cause, plan.swap.base.metadata_location)
        self._unknown_count = self._unknown_count + 1 if known == self._unknown else 1
        self._unknown = known
        return self._unknown_count


@dataclass(eq=False)
class BatchSelector:
    """Selects the batches of one table, one at a time, and keeps the one in flight."""

    waiting: Waiting
    attempts: AttemptLog
    planner: CommitPlanner
    pacer: CommitPacer
    upkeep: TableUpkeep
    world: World
    capabilities: CatalogCapabilities

    def __post_init__(self) -> None:
        self._current: InflightBatch | None = None
        self._batch_max: int | None = None
        # Requests that conflict with others of their batch: they go after these have landed.
        self._behind: frozenset[str] = frozenset()
        self._goes_on = False
        # The branch of the last batch, and of the last one that landed.
        self._branch: str | None = None
        self._landed_branch: str | None = None

    @property
    def are_urgent(self) -> bool:
        """Whether to attempt at once: a retry, half of a batch that failed, or what is left of one
        whose other requests were in conflict, or could not land by the same swap.
        """
        return self._current is not None or self._batch_max is not None or self._goes_on

    @property
    def keys_in_flight(self) -> tuple[str, ...]:
        """The requests of the batch in flight."""
        return () if self._current is None else self._current.keys

    async def next(
        self, candidates: Sequence[CheckedRequest], basis: CheckBasis, state: TableState
    ) -> InflightBatch | None:
        """Return the batch in flight if all of it may still land, else a new one. None: there is
        nothing to commit, or a new batch could not be prepared.
        """
        inflight = self._current
        if inflight is None or not self._may_go_again(inflight, candidates, basis, state):
            self.drop()
            steps = self._steps(candidates, state)
            inflight = await self._prepared(steps, basis, state) if steps else None
        if inflight is not None:
            self.waiting.launch(inflight.keys)
        self._current = inflight
        return inflight

    def drop(self) -> None:
        """Drop the batch in flight; the next round selects anew."""
        if self._current is not None:
            self.waiting.withdraw(self._current.keys)
        self._current = None

    def landed(self, _: LandedCommit) -> None:
        """Forget the batch in flight: it is in the table."""
        self._current = None
        self._batch_max = None
        self._behind = frozenset()
        self._landed_branch = self._branch

    def plan_again(self) -> None:
        """Drop the batch for the same requests, at once."""
        self.drop()
        self._goes_on = True

    def in_conflict(self, found: InConflict, moves: int) -> None:
        """Drop the batch for one without the requests in conflict. Those that conflict with what
        has landed are suspected: the next round asks the ledger whether they have landed by an
        earlier attempt. The others wait for the batch to land.
        """
        self.plan_again()
        self._behind |= found.waiting
        for key, conflict in found.landed.items():
            refusal = (Reason.CONFLICT, f"{conflict.code}: {conflict.message}")
            self.waiting.suspect(key, refusal, conflict.code, moves)

    def isolate(self, requests: Sequence[CheckedRequest], refusal: Refusal) -> None:
        """Halve the batches until the request at fault stands alone, then suspect it: the next
        round asks the ledger, in freshly read metadata, whether it has landed after all.
        """
        self._halve(requests)
        if len(requests) == 1:
            self.waiting.suspect(requests[0].sealed.key, refusal)

    def _halve(self, requests: Sequence[CheckedRequest]) -> None:
        """Halve the size of the next batch."""
        self.drop()
        self._batch_max = max(1, len(requests) // 2)

    def set_apart(self, inflight: InflightBatch, error: Exception) -> None:
        """Halve a batch whose answers are lost alike, so that others land without the request that
        may be the cause. It is deferred and never quarantined: each attempt at it may land yet.
        """
        self._halve(inflight.batch.requests)
        if len(inflight.keys) == 1:
            pending = self.waiting.find(inflight.keys[0])
            if pending is not None:
                self.waiting.defer(pending, error)

    def crashed(self, inflight: InflightBatch, error: PlanCrashedError) -> None:
        """Halve the batch. Whether the table or the last request alone is at fault is not known, so
        nothing is quarantined: the request is deferred, and the others go on.
        """
        self.set_apart(inflight, error.cause)

    def _steps(
        self, candidates: Sequence[CheckedRequest], state: TableState
    ) -> tuple[Requests, ...]:
        """Return the steps of the next batch. Those that have to be swaps of their own follow at
        once.
        """
        first = _without(candidates, self._behind)
        if not first:
            # The requests that these waited for have ended in another way: they wait for none.
            self._behind, first = frozenset(), list(candidates)
        self._branch = _branch_in_turn(first, self._landed_branch)
        of_branch = [one for one in first if one.request.branch == self._branch]
        steps = cut(next_batch(by_epoch(of_branch), self._policy(state)))
        several = self.capabilities.has_several_snapshots
        chosen = of_one_swap(steps, has_several_snapshots=several)
        self._goes_on = len(chosen) < len(steps)
        return chosen

    async def _prepared(
        self, steps: Sequence[Requests], basis: CheckBasis, state: TableState
    ) -> InflightBatch | None:
        try:
            batch, prepared = await self.planner.prepare(steps, state)
        except PlanCrashedError as error:
            requests = [one for step in steps for one in step]
            self.isolate(requests, (Reason.PLAN_FAILED, str(error)))
            return None
        now_s, resolved_count = self.world.monotonic_s(), self.attempts.resolved_count
        return InflightBatch(batch, basis, prepared, self.upkeep.offer(), now_s, resolved_count)

    def _may_go_again(
        self,
        inflight: InflightBatch,
        candidates: Sequence[CheckedRequest],
        basis: CheckBasis,
        state: TableState,
    ) -> bool:
        if basis != inflight.basis or not self._is_fresh(inflight, state):
            return False
        still = {candidate.sealed.key for candidate in candidates}
        return still.issuperset(inflight.keys)

    def _is_fresh(self, inflight: InflightBatch, state: TableState) -> bool:
        """Return whether a batch may be sent again. Not if one of its snapshots is in the table:
        its ledger was removed, and that was accepted. Nor if the table has moved since the answer
        to an attempt was lost: its snapshots may have been in the table, rolled back and expired,
        and its manifests deleted with them.
        """
        age_s = self.world.monotonic_s() - inflight.since_s
        known = state.metadata.snapshots_by_id
        is_there = any(one in known for one in inflight.batch.snapshot_ids)
        may_have_gone = inflight.resolved_count != self.attempts.resolved_count
        return age_s <= INFLIGHT_S_MAX and not is_there and not may_have_gone

    def _policy(self, state: TableState) -> BatchPolicy:
        """Return the table's policy, with the limit while bisecting."""
        policy = self.pacer.policy(state)
        limit = min(self._batch_max or policy.requests_max, policy.requests_max)
        return replace(policy, requests_max=limit)


def _without(candidates: Sequence[CheckedRequest], behind: Collection[str]) -> list[CheckedRequest]:
    """Return the others; none of a producer overtakes a lower epoch of its own that has to wait."""
    waits: dict[str, int] = {}
    for one in candidates if behind else ():
        if one.sealed.key in behind:
            producer, epoch = one.request.producer.id, one.request.epoch
            waits[producer] = min(epoch, waits.get(producer, epoch))
    return [
        one
        for one in candidates
        if one.request.producer.id not in waits
        or one.request.epoch < waits[one.request.producer.id]
    ]


def _branch_in_turn(requests: Sequence[CheckedRequest], last: str | None) -> str | None:
    """Return the branch of the next batch, as a batch moves one head: that of the oldest request;
    the branches take turns while requests for several wait. If one of them changes the table, the
    others of its branch before it go first.
    """
    branches = dict.fromkeys(one.request.branch for one in requests)
    if len(branches) > 1 and all(one.request.operation != "alter" for one in requests):
        branches.pop(last or "", None)
    return next(iter(branches), None)
