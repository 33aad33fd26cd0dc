"""The phases of a transaction: each event leads where the table of transitions says."""

from __future__ import annotations

import pytest

from committer.errors import InvariantError
from committer.service.transactions.pending_transaction import (
    TRANSITIONS,
    Event,
    PendingTransaction,
    Phase,
)
from tests.support.builders.table_builders import build_table
from tests.support.builders.transactions import build_transaction

TABLES = [build_table(f"db.{name}", warehouse="memory://warehouse") for name in ("a", "b")]


def pending(phase: Phase = Phase.GATHERING) -> PendingTransaction:
    return PendingTransaction(build_transaction(TABLES), phase)


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("event", Event)
def test_an_event_leads_where_the_table_says_or_is_refused(phase: Phase, event: Event) -> None:
    transaction = pending(phase)
    if event in TRANSITIONS[phase]:
        transaction.on(event)
        assert transaction.phase is TRANSITIONS[phase][event]
    else:
        with pytest.raises(InvariantError, match=f"is {phase.value}: no {event.name} now"):
            transaction.on(event)
        assert transaction.phase is phase


def test_every_phase_is_reached_and_every_event_has_a_row() -> None:
    assert {after for row in TRANSITIONS.values() for after in row.values()} == set(Phase)
    assert {event for row in TRANSITIONS.values() for event in row} == set(Event)


def test_every_phase_but_the_end_leads_to_the_end() -> None:
    for phase in set(Phase) - {Phase.ENDED}:
        reached, before = {phase}, set[Phase]()
        while reached != before:
            before = set(reached)
            reached |= {after for each in before for after in TRANSITIONS[each].values()}
        assert Phase.ENDED in reached


def test_only_a_transaction_that_has_all_turns_lands_or_fails() -> None:
    assert [phase for phase in Phase if Event.LANDED in TRANSITIONS[phase]] == [Phase.COMMITTING]
    assert [phase for phase in Phase if Event.NOT_LANDED in TRANSITIONS[phase]] == [
        Phase.COMMITTING
    ]
    assert Event.EMPTIED not in TRANSITIONS[Phase.COMMITTING]


def test_an_attempt_that_has_not_landed_is_counted_with_its_cause() -> None:
    transaction = pending(Phase.COMMITTING)
    transaction.not_landed("conflict on db.a")
    assert transaction.phase is Phase.BACKING_OFF
    assert (transaction.attempts, transaction.cause) == (1, "conflict on db.a")
