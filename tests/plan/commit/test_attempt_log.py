"""The attempts of a table: lost answers are resolved by a load, and by a commit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from uuid import UUID

import pytest

from committer.iceberg.updates.metadata_update import SetProperties
from committer.iceberg.updates.requirement import AssertCurrentSchemaId
from committer.plan.batch.batch import Batch, Step, prepare_manifests
from committer.plan.batch.request_check import CheckBasis, CheckedRequest, Checker
from committer.plan.commit.attempt_log import LOST_MAX, AttemptLog
from committer.plan.commit.commit import CommitPlan, Planning, plan_commit
from committer.plan.commit.ledger_changes import LedgerCleanup
from committer.plan.commit.step_plan import Attempt
from committer.plan.ledger.state import TableState
from committer.ports.catalog_capabilities import Condition
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
    batch = Batch((Step((checked,), 17),), UUID(int=18))
    prepared = prepare_manifests(batch, BASE.metadata)
    attempt = Attempt(number, UUID(int=100 + number), 1_000, "1")
    plan = plan_commit(Planning(state, batch, prepared, attempt, LedgerCleanup()))
    assert isinstance(plan, CommitPlan)
    return plan


def log_with_lost(*plans: CommitPlan) -> AttemptLog:
    attempts = AttemptLog()
    attempts.loaded(TableState.of(BASE))
    for plan in plans:
        attempts.sending(plan, ())
        attempts.lost(plan)
    return attempts


def lists_of(plans: Iterable[CommitPlan]) -> list[str | None]:
    return [plan.snapshot.manifest_list for plan in plans]


def in_doubt(attempts: AttemptLog) -> bool:
    return attempts.has_lost


@pytest.mark.parametrize("condition", ["pointer", "requirements"])
def test_attempts_that_are_lost_for_ever_are_forgotten_but_for_their_condition(
    condition: Condition,
) -> None:
    """A catalog that never answers is asked for days, and its table stays in doubt all the time."""
    attempts = AttemptLog(condition)
    attempts.loaded(TableState.of(BASE))
    plan, given_up = plan_of(1), 0
    for _ in range(10 * LOST_MAX):
        attempts.sending(plan, ())
        attempts.lost(plan)
        attempts.loaded(TableState.of(BASE))
        given_up += len(attempts.take_resolved().absent)
        assert in_doubt(attempts)
    assert attempts.resolved_count == given_up >= 9 * LOST_MAX
    attempts.loaded(plan_of(2).state)
    assert not in_doubt(attempts)
    resolved = attempts.take_resolved()
    assert len(resolved.absent) <= LOST_MAX
    assert not any(kept.objects for kept in resolved.absent)


def test_doubt_stays_with_the_condition_when_all_that_had_it_are_forgotten() -> None:
    """The head of another branch has moved, so that nothing else is in doubt any more."""
    attempts = AttemptLog("requirements")
    first = plan_of(1)
    attempts.loaded(TableState.of(BASE))
    attempts.lost(first)
    later = replace(first, swap=replace(first.swap, requirements=(AssertCurrentSchemaId(7),)))
    for _ in range(2 * LOST_MAX):
        attempts.lost(later)
    attempts.loaded(TableState.of(BASE))
    assert in_doubt(attempts)
    count = attempts.resolved_count
    attempts.loaded(plan_of(2).state)
    assert not in_doubt(attempts)
    assert attempts.resolved_count == count + 1


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
    assert lists_of(attempts.take_resolved().absent) == lists_of([plan])
    assert attempts.take_resolved().absent == ()


def test_of_two_attempts_of_one_batch_the_manifest_list_tells_which_has_landed() -> None:
    first, second = plan_of(1), plan_of(2)
    assert first.snapshot.snapshot_id == second.snapshot.snapshot_id
    attempts = log_with_lost(first, second)
    attempts.loaded(second.state)
    resolved = attempts.take_resolved()
    assert lists_of(resolved.landed) == lists_of([second])
    assert lists_of(resolved.absent) == lists_of([first])


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
        (garbage,) = attempts.take_garbage(())
        assert set(garbage.bases) == bases
        assert plan.snapshot.manifest_list in garbage.own_files
        assert attempts.take_garbage(()) == ()
