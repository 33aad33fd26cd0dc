"""The attempts of a table: lost answers are resolved by a load, and by a commit."""

from __future__ import annotations

from uuid import UUID

from committer.iceberg.updates.metadata_update import SetProperties
from committer.plan.attempt_log import AttemptLog
from committer.plan.batch import Batch, prepare_manifests
from committer.plan.commit import Attempt, CommitPlan, LedgerCleanup, NeedsManifestList, plan_commit
from committer.plan.request_check import CheckBasis, CheckedRequest, Checker
from committer.plan.state import TableState
from tests.support.builders.flights import changed
from tests.support.builders.request_builders import build_request
from tests.support.builders.table_builders import build_table

BASE = build_table(warehouse="memory://warehouse")


def plan_of(number: int) -> CommitPlan:
    """Plan an attempt on the base, for the same batch as every other."""
    state = TableState.of(BASE)
    checker = Checker(CheckBasis.of("frazil", BASE.metadata), BASE.metadata.current_schema)
    checked = checker.check(build_request(BASE))
    assert isinstance(checked, CheckedRequest)
    batch = Batch((checked,), 17, UUID(int=18))
    prepared = prepare_manifests(batch, BASE.metadata)
    attempt = Attempt(number, UUID(int=100 + number), 1_000, "1")
    plan = plan_commit(state, batch, prepared, attempt, LedgerCleanup())
    assert not isinstance(plan, NeedsManifestList)
    return plan


def log_with_lost(*plans: CommitPlan) -> AttemptLog:
    attempts = AttemptLog()
    attempts.loaded(TableState.of(BASE))
    for plan in plans:
        attempts.sending(plan, ())
        attempts.lost(plan)
    return attempts


def test_an_attempt_whose_answer_is_lost_may_land_while_its_base_is_current() -> None:
    attempts = log_with_lost(plan_of(1))
    attempts.loaded(TableState.of(BASE))
    assert attempts.has_lost
    assert attempts.resolved_count == 0
    assert attempts.take_resolved().absent == ()


def test_an_attempt_whose_base_was_replaced_by_another_is_absent() -> None:
    plan = plan_of(1)
    attempts = log_with_lost(plan)
    moved = TableState.of(changed(BASE, SetProperties({"n": "1"})))
    attempts.loaded(moved)
    assert not attempts.has_lost
    assert attempts.resolved_count == 1
    assert attempts.take_resolved().absent == (plan,)
    assert attempts.take_resolved().absent == ()


def test_of_two_attempts_of_one_batch_the_manifest_list_tells_which_has_landed() -> None:
    first, second = plan_of(1), plan_of(2)
    assert first.snapshot.snapshot_id == second.snapshot.snapshot_id
    attempts = log_with_lost(first, second)
    attempts.loaded(second.state)
    resolved = attempts.take_resolved()
    assert (resolved.landed, resolved.absent) == ((second,), (first,))


def test_a_commit_leaves_no_attempt_in_doubt() -> None:
    attempts = log_with_lost(plan_of(1))
    landed = plan_of(2)
    attempts.landed(landed.state)
    assert not attempts.has_lost
    assert attempts.state is landed.state


def test_a_refused_attempt_leaves_files_without_a_base_to_wait_for() -> None:
    lost, refused, landed = plan_of(1), plan_of(2), plan_of(3)
    for answer, bases in ((AttemptLog.lost, {BASE.metadata_location}), (AttemptLog.refused, set())):
        attempts = AttemptLog()
        plan = lost if bases else refused
        attempts.sending(plan, [plan.swap.metadata_location])
        answer(attempts, plan)
        attempts.sending(landed, [landed.swap.metadata_location])
        attempts.landed(landed.state)
        (left_over,) = attempts.take_left_over(())
        assert set(left_over.bases) == bases
        assert plan.snapshot.manifest_list in left_over.own_files
        assert attempts.take_left_over(()) == ()
