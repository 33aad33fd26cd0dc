"""The table of a case: each batch of requests is planned by the committer's own code, and lands."""

from __future__ import annotations

from uuid import UUID

from committer.errors import InvariantError
from committer.plan.batch.batch import Batch, PreparedManifest, Step, prepare_manifests
from committer.plan.batch.request_check import CheckBasis, CheckedRequest, Checker
from committer.plan.commit.alter_commit import plan_alter_commit, table_to_write
from committer.plan.commit.commit import CommitPlan, NeedsObjects, Planning, plan_commit
from committer.plan.commit.operation_step import InConflict
from committer.plan.commit.staged_commit import plan_staged_commit
from committer.plan.commit.step_plan import Attempt
from committer.plan.operations.batch_steps import cut, of_one_swap
from committer.plan.operations.conflict import Conflict
from committer.plan.operations.head import ObjectRange, Objects
from committer.request.request_format import EncodedRequest
from tests.support.plan.committing import NO_CHORES, Table


class CaseTable(Table):
    """What is in conflict is told, and leaves the batch."""

    def land_one(self, request: EncodedRequest) -> Conflict | None:
        """Land a request, or return why it cannot. Errors: `InvalidRequestError`."""
        return self.land_together([request])[0]

    def land_together(self, requests: list[EncodedRequest]) -> list[Conflict | None]:
        """Land these in one swap, but for those that conflict; those that wait for others of the
        batch land after it. Errors: `InvalidRequestError`.
        """
        found: dict[str, Conflict | None] = {}
        while len(found) < len(requests):
            left = [one for one in requests if one.key not in found]
            planned = self._plan(left)
            while isinstance(planned, InConflict):
                found |= planned.landed
                left = [
                    one for one in left if one.key not in found and one.key not in planned.waiting
                ]
                if not left:
                    break
                planned = self._plan(left)
            else:
                self.land(planned)
                landed = planned.landed
                found |= {one.key: None for one in left if one.request.inbox_key in landed}
        return [found[one.key] for one in requests]

    def _plan(self, requests: list[EncodedRequest]) -> CommitPlan | InConflict:
        metadata = self.state.metadata
        checker = Checker(CheckBasis.of("frazil", metadata), metadata.current_schema)
        checked = tuple(_checked(checker, one) for one in requests)
        steps = of_one_swap(cut(checked), has_several_snapshots=True)
        number = next(self._ids)
        numbered = (Step(step, 1_000 * number + place) for place, step in enumerate(steps, 1))
        batch = Batch(tuple(numbered), UUID(int=number))
        self.now_ms += 1_000
        prepared = prepare_manifests(batch, table_to_write(batch, metadata, now_ms=self.now_ms))
        attempt = Attempt(1, UUID(int=10_000 + number), self.now_ms)
        objects: dict[ObjectRange, bytes] = {}
        while True:
            plan = self._plan_once(batch, prepared, attempt, Objects(objects))
            if not isinstance(plan, NeedsObjects):
                return plan
            objects |= {one: self._read(one) for one in plan.ranges}

    def _plan_once(
        self,
        batch: Batch,
        prepared: tuple[PreparedManifest, ...],
        attempt: Attempt,
        objects: Objects,
    ) -> CommitPlan | InConflict | NeedsObjects:
        """Plan as `CommitPlanner` does."""
        planning = Planning(self.state, batch, prepared, attempt, NO_CHORES, objects=objects)
        if batch.changes_table:
            plan = plan_alter_commit(planning, moves_head=False)
            if plan is not None:
                return plan
        if batch.is_staged:
            return plan_staged_commit(planning)
        return plan_commit(planning)

    def _read(self, wanted: ObjectRange) -> bytes:
        content = self.objects.get(wanted.location)
        if content is None and wanted.length is not None:
            return b""  # a vector that a request names, and the table has no more
        if content is None:
            raise InvariantError(f"no object {wanted.location}")
        end = len(content) if wanted.length is None else wanted.offset + wanted.length
        return content[wanted.offset : end]


def _checked(checker: Checker, sealed: EncodedRequest) -> CheckedRequest:
    found = checker.check(sealed)
    assert isinstance(found, CheckedRequest)
    return found
