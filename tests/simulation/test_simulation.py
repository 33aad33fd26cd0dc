"""The simulation itself: the same seed gives the same run, and faults fire where they are told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulation.faults import Call, Fault
from tests.simulation.producers import ProducerPlan
from tests.simulation.scenario import Scenario, build_sim_table, draw_scenario, producer_role
from tests.simulation.simulation import Simulation


def small(seed: int = 1, *, replicas: int = 2) -> Scenario:
    """Return a scenario of two queries of a few epochs, without faults."""
    plan = ProducerPlan(epochs=3)
    roles = tuple(producer_role(f"query-{number}", plan) for number in range(2))
    return Scenario(seed, (build_sim_table(seed),), roles, replicas=replicas)


def test_what_is_published_lands_without_faults() -> None:
    outcome = Simulation(small()).run()
    assert not outcome.violations
    assert outcome.requests == 6
    assert outcome.commits > 0


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [3, 5])
def test_the_same_seed_gives_the_same_run(seed: int) -> None:
    runs = [Simulation(draw_scenario(seed)).run() for _ in range(2)]
    assert runs[0].trace.lines == runs[1].trace.lines
    assert runs[0].trace.digest == runs[1].trace.digest
    assert runs[0].faults.fired == runs[1].faults.fired


def test_another_seed_gives_another_run() -> None:
    assert Simulation(small(1)).run().trace.digest != Simulation(small(2)).run().trace.digest


def test_a_committer_that_crashes_after_its_swap_lands_nothing_twice() -> None:
    calls = [Call(f"committer-{number}", "catalog.swap", 0) for number in range(2)]
    scenario = replace(small(), script=dict.fromkeys(calls, Fault.CRASH_AFTER))
    outcome = Simulation(scenario).run()
    assert not outcome.violations
    # Depending on who owns the table it hits one of them or both.
    assert outcome.faults.coverage["catalog.swap", Fault.CRASH_AFTER]
