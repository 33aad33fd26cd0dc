"""Other engines and operators beside a committer, without faults: no request is lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from committer.ledger_entry import MAIN
from committer.plan.ledger.one_shots import read_one_shots
from committer.ports.pointer_swap import LoadedTable
from committer.reason import Reason
from committer.storage.inbox.inbox import Quarantine, QuarantineRecord
from tests.simulation.actor import Actor
from tests.simulation.doublers import POOL, Adopter, Again, Claim, Claimant, Repeater
from tests.simulation.foreign import HARMLESS, SETTING_BACK, Deed, Foreign, ForeignPlan
from tests.simulation.invariants import at_once
from tests.simulation.operators import LedgerOperator, OperatorPlan, QuarantineOperator
from tests.simulation.ports import Ports
from tests.simulation.producers import OneShots, ProducerPlan, SparkProducer
from tests.simulation.replica import base_settings
from tests.simulation.scenario import Event, Fate, Role, Scenario, build_sim_table
from tests.simulation.servers import INBOX
from tests.simulation.simulation import Simulation


@pytest.mark.thorough
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


def test_who_claims_the_files_of_others_is_refused_for_that_and_lands_its_own_once() -> None:
    table = build_sim_table(7)
    name = table.identifier
    claimant = Claimant("claimant", name, count=24, pause_s=0.3, seed=7)
    query = SparkProducer("query", name, ProducerPlan(epochs=6, trigger_s=0.5), seed=7)
    roles = tuple(Role(actor.name, _always(actor)) for actor in (query, claimant))
    simulation = Simulation(Scenario(seed=7, tables=(table,), roles=roles, play_s=60.0))
    outcome = simulation.run()
    assert outcome.violations == ()
    claims = simulation.history.claims
    assert set(claimant.sent) == set(Claim)
    assert len(claims) == len(claimant.sent)
    quarantine = Quarantine(simulation.servers.storage, INBOX)
    assert {key: at_once(quarantine.record(key)).reason for key in claims} == claims
    # Of each pair of twins the one whose attempt stands last.
    landed = simulation.invariants.view(name).ledger.attempts.values()
    twins = [one for one in landed if one.request.producer.id.startswith("claimant")]
    assert len(twins) == claimant.sent.count(Claim.TWINS)


def test_of_requests_that_adopt_the_same_files_each_file_is_live_once() -> None:
    table = build_sim_table(7)
    name = table.identifier
    actors: list[Actor] = [
        SparkProducer("query", name, ProducerPlan(epochs=6, trigger_s=0.5), seed=7),
        *(Adopter(f"adopter-{one}", name, count=12, pause_s=0.2, seed=7) for one in "ab"),
    ]
    roles = tuple(Role(actor.name, _always(actor)) for actor in actors)
    simulation = Simulation(Scenario(seed=7, tables=(table,), roles=roles, play_s=60.0))
    assert simulation.run().violations == ()
    view = simulation.invariants.view(name)
    pool = [path for path in view.live(view.metadata) if "/pool-" in path]
    landed = [one.request for one in view.ledger.attempts.values() if one.request.adopt_existing]
    quarantine = Quarantine(simulation.servers.storage, INBOX)
    keys = at_once(_keys(quarantine))
    reasons = {at_once(quarantine.record(key)).reason for key in keys}
    assert len(pool) == POOL and len(landed) >= POOL // 2
    assert len(landed) + len(keys) == 24 and reasons == {Reason.CONFLICT.value}


async def _keys(quarantine: Quarantine) -> list[str]:
    return [one.key async for one in quarantine.list()]


def test_one_shot_requests_land_once_whatever_of_them_is_forgotten() -> None:
    """Entries go within seconds here, tombstones too, and another engine takes the proofs away."""
    table = build_sim_table(7)
    name = table.identifier
    repeater = Repeater("repeater", name, count=60, pause_s=0.3, seed=7)
    expiries = ForeignPlan(deeds=12 * (Deed.APPEND, Deed.EXPIRE), pause_s=0.5, think_s=0.1)
    engine = Foreign("engine", name, expiries, seed=7)
    roles = (
        Role("repeater", _always(repeater)),
        Role("engine", _always(engine), is_foreign=True),
    )
    service = base_settings().service.model_copy(update={"reconcile_interval_s": 1.0})
    scenario = Scenario(
        seed=7,
        tables=(table,),
        roles=roles,
        settings=base_settings().model_copy(update={"service": service}),
        play_s=60.0,
        forgets_soon=True,
    )
    simulation = Simulation(scenario)
    assert simulation.run().violations == ()
    assert set(repeater.again) == set(Again)
    view = simulation.invariants.view(name)
    assert len(view.ledger.forgotten) > 10
    assert read_one_shots(view.metadata)[MAIN].horizon_ms > 0
    reasons = {record.reason for record in quarantined(simulation)}
    assert reasons == {Reason.EPOCH_LANDED_UNPROVEN.value}


def quarantined(simulation: Simulation) -> list[QuarantineRecord]:
    """Return the records in quarantine at the end."""
    quarantine = Quarantine(simulation.servers.storage, INBOX)
    published = simulation.invariants.published
    held = [key for key in published if at_once(quarantine.contains(key))]
    return [at_once(quarantine.record(key)) for key in held]


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
