"""What other engines and operators do beside a committer, without faults: nothing is lost by it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from committer.ports import LoadedTable
from tests.simulation.actor import Actor
from tests.simulation.foreign import HARMLESS, SETTING_BACK, Deed, Foreign, ForeignPlan
from tests.simulation.operators import LedgerOperator, OperatorPlan, QuarantineOperator
from tests.simulation.producers import OneShots, ProducerPlan, SparkProducer
from tests.simulation.scenario import Role, Scenario, build_sim_table
from tests.simulation.simulation import Simulation


@pytest.mark.parametrize(
    "deeds",
    [HARMLESS, *((deed, Deed.APPEND, deed) for deed in SETTING_BACK), (Deed.DROP_AND_CREATE,)],
    ids=lambda deeds: deeds[0].name.lower(),
)
def test_what_others_do_to_a_table_loses_and_doubles_nothing(deeds: tuple[Deed, ...]) -> None:
    table = build_sim_table(7)
    name = table.identifier
    engine = Foreign("engine", name, ForeignPlan(deeds=deeds, pause_s=2.0, think_s=0.1), seed=7)
    looks = OperatorPlan(looks=6, pause_s=5.0)
    actors: list[Actor] = [
        SparkProducer("query", name, ProducerPlan(epochs=12, dies=0.1, zombie=0.5), seed=7),
        OneShots("jobs", name, count=6, seed=7),
        engine,
        QuarantineOperator("keeper", looks, seed=7),
        LedgerOperator("boss", name, looks, seed=7),
    ]
    roles = tuple(Role(actor.name, _always(actor), actor is engine) for actor in actors)
    outcome = Simulation(Scenario(seed=7, tables=(table,), roles=roles)).run()
    assert outcome.violations == ()
    assert outcome.commits > 0
    assert set(engine.landed) & set(deeds)


def _always(actor: Actor) -> Callable[[int, Sequence[LoadedTable]], Actor]:
    return lambda seed, tables: actor
