"""The simulation itself: the same seed gives the same run, and faults fire where they are told."""

from __future__ import annotations

from tests.simulation.faults import Call, Fault, Faults
from tests.simulation.producers import ProducerPlan, SparkProducer
from tests.simulation.servers import WAREHOUSE
from tests.simulation.simulation import Cast, Outcome, Simulation
from tests.table_builders import build_table


def play(seed: int, faults: Faults, *, epochs: int = 3) -> Outcome:
    table = build_table(warehouse=WAREHOUSE)
    plan = ProducerPlan(epochs=epochs)
    actors = [
        SparkProducer(f"producer-{number}", table.identifier, plan, seed=seed)
        for number in range(2)
    ]
    return Simulation(seed, faults, Cast([table], actors, replicas=2)).run()


def test_what_is_published_lands_without_faults() -> None:
    outcome = play(1, Faults(1))
    assert not outcome.violations
    assert outcome.commits > 0


def test_a_committer_that_crashes_after_its_swap_lands_nothing_twice() -> None:
    calls = [Call(f"committer-{number}", "catalog.swap", 0) for number in range(2)]
    faults = Faults(1, script=dict.fromkeys(calls, Fault.CRASH_AFTER))
    outcome = play(1, faults)
    assert not outcome.violations
    assert outcome.faults.coverage["catalog.swap", Fault.CRASH_AFTER] > 0
