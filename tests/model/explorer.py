"""Visits every state that a small model can reach, breadth first: counterexamples are short.

A model says of a state what may happen next and what is wrong with it. States are hashable values;
whatever is equal is visited once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

State = TypeVar("State")

Steps = Callable[[State], Iterable[tuple[str, State]]]
Judge = Callable[[State], str | None]


class TooManyStatesError(Exception):
    """The model is larger than it was meant to be."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation in some reachable state, and a shortest way there."""

    what: str
    trace: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join((self.what, *(f"  {n}. {step}" for n, step in enumerate(self.trace, 1))))


@dataclass(frozen=True, slots=True)
class Explored(Generic[State]):
    """The result of a whole exploration. `violation` ended it early."""

    states: int
    violation: Violation | None = None


def explore(
    start: State,
    *,
    steps: Steps[State],
    faults: Steps[State],
    is_wrong: Judge[State],
    is_stuck: Judge[State],
    states_max: int,
) -> Explored[State]:
    """Visit all states; judge each by `is_wrong`, and by `is_stuck` where no step is left.

    `faults` happen as well, but are not progress: where only a fault could follow, the system is at
    rest. Errors: `TooManyStatesError`.
    """
    came_from: dict[State, tuple[str, State] | None] = {start: None}
    frontier = [start]
    while frontier:
        found: list[State] = []
        for state in frontier:
            honest = list(steps(state))
            wrong = is_wrong(state) or (None if honest else is_stuck(state))
            if wrong:
                return Explored(len(came_from), Violation(wrong, _trace(state, came_from)))
            for name, following in (*honest, *faults(state)):
                known = len(came_from)
                came_from.setdefault(following, (name, state))
                if len(came_from) > known:
                    found.append(following)
        if len(came_from) > states_max:
            raise TooManyStatesError(f"more than {states_max} states")
        frontier = found
    return Explored(len(came_from))


def _trace(state: State, came_from: dict[State, tuple[str, State] | None]) -> tuple[str, ...]:
    names: list[str] = []
    step = came_from[state]
    while step is not None:
        names.append(step[0])
        step = came_from[step[1]]
    return tuple(reversed(names))
