"""What other engines and operators do beside a committer, without faults: nothing is lost by it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from committer.ports import LoadedTable
from tests.simulation.actor import Actor
from tests.simulation.foreign import HARMLESS, SETTING_BACK, Deed, Foreign, ForeignPlan
from tests.simulation.operators import LedgerOperator, OperatorPlan, QuarantineOperator
from tests.simulation.ports import Ports
from tests.simulation.producers import OneShots, ProducerPlan, SparkProducer
from tests.simulation.scenario import Event, Fate, Role, Scenario, build_sim_table
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


class Onlooker:
    """Sees how many requests wait, at most."""

    name = "onlooker"

    def __init__(self) -> None:
        self.most = 0

    async def run(self, ports: Ports) -> None:
        for _ in range(60):
            self.most = max(self.most, len([found async for found in ports.inbox.list()]))
            await ports.world.sleep(0.1)


@pytest.mark.parametrize("backlog_max", [None, 4])
def test_publishers_are_slowed_while_a_committer_is_behind_and_nothing_is_dropped(
    backlog_max: int | None,
) -> None:
    table = build_sim_table(7)
    plan = ProducerPlan(epochs=24, trigger_s=0.05, files_max=1, backlog_max=backlog_max)
    queries = [SparkProducer(f"query-{n}", table.identifier, plan, seed=7) for n in range(3)]
    onlooker = Onlooker()
    actors: list[Actor] = [*queries, onlooker]
    roles = tuple(Role(actor.name, _always(actor)) for actor in actors)
    pause = Event(0.3, Fate.COMMITTER_PAUSES, 0.0)  # for 6 s
    outcome = Simulation(Scenario(seed=7, tables=(table,), roles=roles, events=(pause,))).run()
    assert outcome.violations == ()
    assert outcome.requests == 3 * plan.epochs
    # A publisher hears of the backlog once its own request waits; and what has just landed leaves
    # the inbox a moment later.
    is_bounded = onlooker.most <= (backlog_max or 0) + 2 * len(queries)
    assert is_bounded == (backlog_max is not None)
    assert all((query.slowed > 0) == (backlog_max is not None) for query in queries)


def _always(actor: Actor) -> Callable[[int, Sequence[LoadedTable]], Actor]:
    return lambda seed, tables: actor
