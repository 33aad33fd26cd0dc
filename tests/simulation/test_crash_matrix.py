"""The crash matrix, exhaustively: every call of every operation is met by every fault."""

from __future__ import annotations

from functools import cache

import pytest

from tests.simulation.crash_matrix import Position, operations, play, positions
from tests.simulation.faults import Fault, applicable

SLICES = 8
OPERATIONS = operations()


@cache
def cells(name: str) -> tuple[Position, ...]:
    return tuple(positions(OPERATIONS[name]))


@pytest.mark.simulation
@pytest.mark.parametrize("part", range(SLICES))
@pytest.mark.parametrize("name", OPERATIONS)
def test_no_single_fault_breaks_a_promise(name: str, part: int) -> None:
    operation = OPERATIONS[name]
    for position in cells(name)[part::SLICES]:
        outcome = play(operation, position)
        assert not outcome.violations, f"{position}: {outcome.violations[0]}"
        assert outcome.faults.fired == [(position.call, position.fault)], f"{position} did not fire"


@pytest.mark.simulation
def test_the_matrix_has_every_call_of_the_service() -> None:
    """A port's method that no operation calls is met by no fault."""
    met = {position.call.method for name in OPERATIONS for position in cells(name)}
    assert met >= {
        *(f"storage.{name}" for name in ("get", "head", "create", "replace", "delete", "list")),
        *(f"catalog.{name}" for name in ("current_location", "swap", "probe")),
        *(f"queue.{name}" for name in ("read", "reclaim", "acknowledge", "reply", "announce")),
        *(f"leases.{name}" for name in ("renew", "wait_for_change", "leave")),
    }


def test_a_swap_meets_every_fault_but_those_of_several_items() -> None:
    assert set(Fault) - set(applicable("catalog.swap")) == {Fault.PARTIAL, Fault.STALE_LIST}
