"""Makes a failing scenario smaller: leaves out actors, fates, committers, faults while it fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from tests.simulation.scenario import Scenario
from tests.simulation.simulation import Outcome, Simulation

T = TypeVar("T")

RUNS_MAX = 200


class Shrinker:
    """Keeps to the invariant that was violated first: another failure is another matter."""

    def __init__(self, outcome: Outcome) -> None:
        self._kind = outcome.kind
        self._smallest = outcome
        self.runs = 0

    def shrink(self) -> Outcome:
        """Try until nothing more can be left out, or for long enough."""
        size = -1
        while size != self._size() and self.runs < RUNS_MAX:
            size = self._size()
            self._fewer_roles()
            self._fewer_events()
            self._fewer_committers()
            self._fewer_faults()
        return self._smallest

    def _size(self) -> int:
        scenario, faults = self._smallest.scenario, self._smallest.faults.fired
        return len(scenario.roles) + len(scenario.events) + scenario.replicas + len(faults)

    def _fails(self, scenario: Scenario) -> bool:
        """Return whether the scenario still fails; if so, it is the smallest now."""
        if self.runs >= RUNS_MAX:
            return False
        self.runs += 1
        outcome = Simulation(scenario).run()
        if outcome.kind != self._kind:
            return False
        self._smallest = outcome
        return True

    def _fewer_roles(self) -> None:
        for roles in _without_parts(self._smallest.scenario.roles):
            if self._fails(replace(self._smallest.scenario, roles=roles)):
                return self._fewer_roles()
        return None

    def _fewer_events(self) -> None:
        for events in _without_parts(self._smallest.scenario.events):
            if self._fails(replace(self._smallest.scenario, events=events)):
                return self._fewer_events()
        return None

    def _fewer_committers(self) -> None:
        while self._smallest.scenario.replicas > 1:
            scenario = self._smallest.scenario
            if not self._fails(replace(scenario, replicas=scenario.replicas - 1)):
                return

    def _fewer_faults(self) -> None:
        """Spare calls that were met by a fault. Those behind them may meet others then."""
        scenario = self._smallest.scenario
        fired = tuple(call for call, _ in self._smallest.faults.fired)
        for kept in _without_parts(fired):
            spared = scenario.spared | (set(fired) - set(kept))
            if self._fails(replace(scenario, spared=spared)):
                return self._fewer_faults()
        return None


def _without_parts(parts: Sequence[T]) -> Iterator[tuple[T, ...]]:
    """Yield the parts without large groups first, then without each single one."""
    size = len(parts)
    while size:
        for start in range(0, len(parts), size):
            yield (*parts[:start], *parts[start + size :])
        size //= 2
