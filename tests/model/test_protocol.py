"""The protocol, explored exhaustively: every promise holds in every state, and needs every rule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.model.explorer import Explored, TooManyStatesError, explore
from tests.model.properties import is_stuck, is_wrong
from tests.model.protocol import Protocol, Scenario
from tests.model.rules import Rules
from tests.model.state import Budget, State
from tests.model.table import Request

# One micro-batch, its replay by another attempt, and a write of other content under its epoch.
FIRST, REPLAY, OTHER = Request(0, 0, 0), Request(0, 1, 0), Request(0, 2, 1)
SECOND = Request(1, 0, 0)

SCENARIOS = {
    "a replay, lost answers and a foreign append": Scenario(
        (FIRST, REPLAY), Budget(unknown=1, append=1)
    ),
    "two epochs and lost answers": Scenario((FIRST, SECOND), Budget(unknown=1)),
    "answers lost twice": Scenario((FIRST,), Budget(unknown=2)),
    "a replay, a crash and old doorbells": Scenario((FIRST, REPLAY), Budget(crash=1, rewind=1)),
    "a crash and lost doorbells": Scenario((FIRST,), Budget(crash=1, lost_bells=1, late_copy=1)),
    "expired markers and old doorbells": Scenario((FIRST,), Budget(rewind=1, append=1, expiry=1)),
    "expired markers and a replay": Scenario((FIRST, REPLAY), Budget(append=1, expiry=1)),
    "expired markers and a crash, one committer": Scenario(
        (FIRST, SECOND), Budget(append=1, expiry=1, crash=1), committers=1
    ),
    "other content under one epoch": Scenario((FIRST, OTHER), Budget(unknown=1)),
    "refused content that is replayed, and a crash": Scenario(
        (FIRST, OTHER), Budget(replay=2, crash=1)
    ),
    "one-shot producers": Scenario(
        (FIRST,), Budget(rewind=1, crash=1, unknown=1), is_one_shot=True
    ),
    "one-shot producers, a crash and lost answers": Scenario(
        (FIRST,), Budget(crash=1, unknown=1), is_one_shot=True
    ),
    "one-shot producers, a crash and old doorbells": Scenario(
        (FIRST,), Budget(rewind=1, crash=1), is_one_shot=True
    ),
    "one-shot producers, lost answers and old doorbells": Scenario(
        (FIRST,), Budget(rewind=1, unknown=1), is_one_shot=True
    ),
    "one-shot producers that come again": Scenario(
        (FIRST,), Budget(late_copy=1, expiry=1, rewind=1), is_one_shot=True
    ),
    "two one-shot producers, one comes again": Scenario(
        (FIRST, SECOND), Budget(late_copy=1, expiry=1), committers=1, is_one_shot=True
    ),
    "a rollback": Scenario((FIRST, SECOND), Budget(rollback=1)),
    "a rollback, lost answers, one committer": Scenario(
        (FIRST, SECOND), Budget(rollback=1, unknown=1, append=1), committers=1
    ),
    "a rollback, and what it took may land again": Scenario(
        (FIRST,), Budget(rollback=1, thaw=1, purge=1, crash=1)
    ),
    "a rollback of one of two, which may land again": Scenario(
        (SECOND,), Budget(rollback=1, thaw=1, purge=1, crash=1), before=frozenset((FIRST,))
    ),
    "older metadata restored": Scenario((FIRST, SECOND), Budget(restore=1)),
    "older metadata restored, a crash, one committer": Scenario(
        (FIRST, SECOND), Budget(restore=1, crash=1), committers=1
    ),
    "a ledger unset, and a crash": Scenario((FIRST,), Budget(unset=1, crash=1, rewind=1)),
}
# Which scenario shows what a rule is for.
SHOWN_BY = {
    "swap_is_conditional": "two epochs and lost answers",
    "ledger_is_asked": "a replay, a crash and old doorbells",
    "ledger_is_asked_on_every_attempt": "expired markers and a replay",
    "ledger_survives_expiry": "expired markers and a replay",
    "what_is_in_the_inbox_is_remembered": "expired markers and a crash, one committer",
    "the_edge_of_history_is_no_beginning": "expired markers and a crash, one committer",
    "ledger_remembers_which_epochs": "two epochs and lost answers",
    "fingerprints_are_compared": "other content under one epoch",
    "manifest_lists_are_asked": "a ledger unset, and a crash",
    "receipts_follow_the_commit": "answers lost twice",
    "inbox_is_left_after_the_commit": "answers lost twice",
    "unknown_is_not_failed": "answers lost twice",
    "unknown_is_not_committed": "answers lost twice",
    "conflict_is_not_final": "a replay, lost answers and a foreign append",
    "unknown_producers_are_looked_up": "one-shot producers that come again",
    "looked_up_after_the_base_was_read": "one-shot producers that come again",
    "entries_go_after_their_object": "one-shot producers that come again",
    "forgotten_producers_leave_tombstones": "one-shot producers that come again",
    "tombstones_go_behind_a_horizon": "one-shot producers that come again",
    "horizon_never_falls": "two one-shot producers, one comes again",
    "files_go_with_a_proof": "answers lost twice",
    "inbox_is_listed": "a crash and lost doorbells",
    "rolled_back_producers_freeze": "a rollback",
    "high_water_mark_is_heeded": "older metadata restored",
    "high_water_mark_comes_before_deletion": "older metadata restored, a crash, one committer",
    "one_attempt_of_an_epoch": "expired markers and a replay",
    "who_waits_is_looked_up_after_a_thaw": "a rollback of one of two, which may land again",
    "older_proofs_are_void_after_a_thaw": "a rollback, and what it took may land again",
    "expiry_spares_what_may_land_again": "a rollback, and what it took may land again",
    "replays_have_fresh_keys": "refused content that is replayed, and a crash",
}


def explored(scenario: Scenario, rules: Rules) -> Explored[State]:
    protocol = Protocol(scenario, rules)
    return explore(
        protocol.start(),
        steps=protocol.steps,
        faults=protocol.faults,
        is_wrong=is_wrong,
        is_stuck=is_stuck,
        states_max=1_000_000,
    )


# Each has so many states that it takes about ten seconds: `make test-servers` explores them.
_LARGE = {
    "one-shot producers",  # each two of its faults are in a smaller one
    "two epochs and lost answers",
    "one-shot producers that come again",
    "expired markers and a replay",
    "a rollback, and what it took may land again",
    "a replay, a crash and old doorbells",
    "refused content that is replayed, and a crash",
    "a replay, lost answers and a foreign append",
    "a rollback of one of two, which may land again",
}


@pytest.mark.simulation
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.heavy if name in _LARGE else ()) for name in SCENARIOS],
)
def test_every_promise_holds_in_every_state(name: str) -> None:
    found = explored(SCENARIOS[name], Rules())
    print(f"{found.states} states")
    assert found.violation is None, str(found.violation)


@pytest.mark.simulation
@pytest.mark.parametrize("rule", Rules.names())
def test_no_rule_can_be_left_out(rule: str) -> None:
    found = explored(SCENARIOS[SHOWN_BY[rule]], replace(Rules(), **{rule: False}))
    assert found.violation is not None, f"{found.states} states, and nothing is wrong without it"
    print(found.violation)


def test_an_exploration_that_grows_too_large_says_so() -> None:
    protocol = Protocol(SCENARIOS["a rollback"], Rules())
    with pytest.raises(TooManyStatesError, match="more than 10 states"):
        explore(
            protocol.start(),
            steps=protocol.steps,
            faults=protocol.faults,
            is_wrong=is_wrong,
            is_stuck=is_stuck,
            states_max=10,
        )


def test_a_counterexample_is_a_shortest_way() -> None:
    found = explore(
        0,
        steps=lambda state: [("one more", state + 1), ("two more", state + 2)],
        faults=lambda state: [],
        is_wrong=lambda state: "five" if state == 5 else None,
        is_stuck=lambda state: None,
        states_max=100,
    )
    assert found.violation is not None
    assert str(found.violation).splitlines()[0] == "five"
    assert len(found.violation.trace) == 3
