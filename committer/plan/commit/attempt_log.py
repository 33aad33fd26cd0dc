"""The attempts of one table: sent, refused, lost, landed; and the state they are based on. Pure.

The one owner of this knowledge: the cached table, the next batch, upkeep and garbage collection ask
it. An attempt is conditional on its base. Once its answer is lost, it may have landed, and may land
as long as its base is current (or, by the catalog's condition, as long as its requirements hold);
metadata that is read afterwards decides.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

from committer.plan.commit.attempt_garbage import GarbageFiles, SentAttempt, judge, sent_attempt
from committer.plan.commit.commit import CommitPlan
from committer.plan.commit.swap import may_land
from committer.plan.ledger.state import TableState
from committer.ports.catalog_capabilities import Condition
from committer.ports.pointer_swap import Swap

# Beyond these the oldest attempts are not judged: their files stay.
ATTEMPTS_MAX = 1_000
# Beyond these, only the conditions of the oldest are kept: they differ in no more than the heads of
# branches, however often a catalog that never answers is asked.
LOST_MAX = 100


@dataclass(frozen=True, slots=True)
class Resolved:
    """Attempts whose answers were lost, and which cannot land any more. Those that are not in the
    table (`absent`) may have landed and been rolled back; or they are too many to be followed.
    """

    landed: tuple[CommitPlan, ...] = ()
    absent: tuple[CommitPlan, ...] = ()


class AttemptLog:
    """The attempts since the table's last commit by this committer.

    `state`: the table as last loaded or committed, None before. `resolved_count`: how many attempts
    with a lost answer were resolved by a load, or given up, so far.
    """

    def __init__(self, condition: Condition = "pointer") -> None:
        self._condition: Condition = condition
        self.state: TableState | None = None
        self.resolved_count = 0
        # By the name of the metadata file: no two attempts share one.
        self._sent: dict[str, SentAttempt] = {}
        self._lost: list[CommitPlan] = []
        # Of attempts beyond those: one swap for each condition, by which it may land.
        self._doubts: dict[Hashable, Swap] = {}
        self._resolved = Resolved()
        # Merged manifests that no attempt after those that were sent includes.
        self._superseded: set[str] = set()
        self._stay: set[str] = set()

    # --- Events ---

    def sending(self, plan: CommitPlan, before: Iterable[str]) -> None:
        """Note an attempt that is about to be written and sent, the files in `before` with it."""
        attempt = sent_attempt(plan, before)
        self._sent[attempt.metadata_location] = attempt
        if len(self._sent) > ATTEMPTS_MAX:
            oldest = self._sent.pop(next(iter(self._sent)))
            self._stay |= oldest.manifests

    def refused(self, plan: CommitPlan) -> None:
        """Note the answer that the attempt never lands."""
        location = plan.swap.metadata_location
        if location in self._sent:
            self._sent[location] = replace(self._sent[location], may_land=False)

    def lost(self, plan: CommitPlan) -> None:
        """Note that the answer is lost."""
        # Its objects are written, and nothing asks for them any more.
        self._lost.append(replace(plan, objects=()))
        if len(self._lost) > LOST_MAX:
            self._forget(self._lost[: LOST_MAX // 2])
            self._lost = self._lost[LOST_MAX // 2 :]

    def _forget(self, oldest: Sequence[CommitPlan]) -> None:
        """Keep the conditions of attempts only. Which of them lands will not be found out, so the
        batch is written anew, and what they took along is not offered again.
        """
        self._doubts.update({self._condition_of(plan.swap): plan.swap for plan in oldest})
        self._resolved = replace(self._resolved, absent=(*self._resolved.absent, *oldest))
        self.resolved_count += len(oldest)

    def loaded(self, state: TableState) -> None:
        """Resolve, by freshly read metadata, the attempts whose base it has replaced."""
        self.state = state
        landed, absent, lost = list(self._resolved.landed), list(self._resolved.absent), []
        for plan in self._lost:
            if may_land(plan.swap, state.table, self._condition):
                lost.append(plan)
            else:
                self.resolved_count += 1
                (landed if _has_landed(plan, state) else absent).append(plan)
        self._lost, self._resolved = lost, Resolved(tuple(landed), tuple(absent))
        in_doubt = len(self._doubts)
        self._doubts = self._still_in_doubt(state)
        self.resolved_count += in_doubt - len(self._doubts)

    def landed(self, state: TableState) -> None:
        """Note a commit of this committer that has led to this state.
        It has replaced the base of every other attempt, though not the head of another branch.
        """
        self.state = state
        self._lost = [one for one in self._lost if may_land(one.swap, state.table, self._condition)]
        self._doubts = self._still_in_doubt(state)

    def supersede(self, merged: str) -> None:
        """Note that no attempt after those that were sent includes this merged manifest."""
        self._superseded.add(merged)

    # --- Answers ---

    @property
    def has_lost(self) -> bool:
        """Whether an attempt whose answer was lost may land yet, on the state as last loaded."""
        return bool(self._lost or self._doubts)

    def _condition_of(self, swap: Swap) -> Hashable:
        is_of_pointer = self._condition == "pointer"
        return swap.base.metadata_location if is_of_pointer else swap.requirements

    def _still_in_doubt(self, state: TableState) -> dict[Hashable, Swap]:
        return {
            known: swap
            for known, swap in self._doubts.items()
            if may_land(swap, state.table, self._condition)
        }

    def take_resolved(self) -> Resolved:
        """Return the attempts that loads have resolved since the last call."""
        resolved, self._resolved = self._resolved, Resolved()
        return resolved

    def take_garbage(self, offered: Collection[str]) -> tuple[GarbageFiles, ...]:
        """Judge all attempts up to a commit that has landed, and forget them: no batch is in
        flight. `offered`: merged manifests that later attempts may include, perhaps although one
        has landed with them unseen.
        """
        if self.state is None:
            return ()
        attempts, superseded = list(self._sent.values()), self._superseded
        in_use: Collection[str] = attempts[0].manifests if attempts else ()
        garbage: tuple[GarbageFiles, ...] = ()
        if len(attempts) > 1 or superseded:
            stay = self._stay.union(offered)
            judged = judge(attempts, superseded, self.state.table, stay=stay)
            garbage, in_use = judged.garbage, judged.in_use
        self._stay = self._stay.union(in_use).intersection(offered)
        self._sent, self._superseded = {}, set()
        return garbage


def _has_landed(plan: CommitPlan, state: TableState) -> bool:
    """Return whether the plan landed: attempts of one batch share snapshot ids,
    never the names of manifest lists."""
    found = map(state.metadata.snapshot_by_id, (one.snapshot_id for one in plan.snapshots))
    lists = {snapshot.manifest_list for snapshot in found if snapshot is not None}
    return not lists.isdisjoint(plan.manifest_lists)
