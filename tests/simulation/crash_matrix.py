"""The crash matrix: each call of each operation meets each fault, one at a time.

A reference run without faults tells which calls there are. Then each of them, at its position, is
met by every fault that may befall it, in a run of its own, and nothing else befalls that run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tests.simulation.administrators import Act, AdministratorPlan
from tests.simulation.catalogs import SimCatalog
from tests.simulation.changers import ChangerPlan
from tests.simulation.faults import PROCESS_FAULTS, Call, Fault, applicable
from tests.simulation.foreign import Deed, ForeignPlan
from tests.simulation.jobs import Job
from tests.simulation.operators import OperatorPlan
from tests.simulation.producers import ProducerPlan
from tests.simulation.replica import base_settings
from tests.simulation.scenario import (
    Event,
    Fate,
    Role,
    Scenario,
    administrator_role,
    build_sim_table,
    changer_role,
    foreign_role,
    ledger_operator_role,
    malformed_role,
    operator_role,
    producer_role,
    transfer_role,
)
from tests.simulation.simulation import Outcome, Simulation

SEED = 7


@dataclass(frozen=True, slots=True)
class Operation:
    """Something that the service does, and whose calls are met by faults."""

    name: str
    scenario: Scenario
    processes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Position:
    """One cell of the matrix."""

    operation: str
    call: Call
    fault: Fault

    def __str__(self) -> str:
        return f"{self.operation}: {self.call}: {self.fault.value}"


def operations() -> dict[str, Operation]:
    """Return all operations, each as short as it can be."""
    quick = ProducerPlan(epochs=2, trigger_s=0.2, files_max=1)
    one = (producer_role("query", quick),)
    waiting = (producer_role("query", replace(quick, waits=True)),)
    steady = ProducerPlan(epochs=5, trigger_s=1.0, files_max=1)
    few = (producer_role("query", steady),)
    restored = replace(quick, epochs=3, restored_at=2, restored_by=2)
    other = ForeignPlan(deeds=(Deed.APPEND, Deed.APPEND), pause_s=0.1, think_s=0.05)
    # Behind the refusal of the restored query, which needs seconds to start again.
    looks = OperatorPlan(looks=1, pause_s=6.0, replays=1.0, discards=0.0)
    burst = replace(quick, epochs=5, trigger_s=0.05)
    cutter = ForeignPlan(deeds=3 * (Deed.APPEND, Deed.EXPIRE), pause_s=0.3, think_s=0.05)
    changing = (
        producer_role("query", replace(quick, epochs=4)),
        changer_role("job", _CHANGES),
    )
    deleting = tuple(changer_role(f"rows-{name}", _DELETES) for name in "ab")
    committer, both = ("committer-0",), ("committer-0", "committer-1")
    made = (
        Operation("publish", _scenario(one), ("query",)),
        Operation("commit", _scenario(waiting), committer),
        Operation("conflict", _scenario((*one, foreign_role("spark", other))), committer),
        Operation(
            "expired by others",
            _scenario((producer_role("query", burst), foreign_role("cutter", cutter))),
            committer,
        ),
        Operation(
            "quarantine",
            _scenario((producer_role("query", restored), malformed_role("hostile", 1))),
            committer,
        ),
        Operation(
            "replay",
            _scenario((producer_role("query", restored), operator_role("operator", looks))),
            (*committer, "operator"),
        ),
        Operation("transaction", over_two_tables(), committer),
        Operation("several snapshots", _gathered(_scenario(changing)), committer),
        Operation("row delta", _gathered(_scenario(deleting, version=3)), committer),
        Operation("alter", _scenario((*one, _administrator(_ALTERS))), committer),
        Operation("staged and picked", _scenario((*one, _administrator(_PUBLISHES))), committer),
        Operation("merge", _scenario(few, _MERGING), committer),
        Operation("expiry", _scenario(few, _EXPIRING), committer),
        Operation("without a queue", replace(_scenario(one), with_queue=False), committer),
        Operation(
            "hand-over",
            replace(_scenario(one), replicas=2, events=(Event(0.3, Fate.COMMITTER_DRAINS, 0.0),)),
            both,
        ),
        Operation(
            "drain",
            replace(_scenario(one), events=(Event(0.25, Fate.COMMITTER_DRAINS, 0.0),)),
            committer,
        ),
    )
    return {operation.name: operation for operation in made}


def on_catalog(operation: Operation, kind: SimCatalog) -> Operation:
    """Return the operation on a catalog of another kind."""
    return replace(operation, scenario=replace(operation.scenario, catalog=kind))


def forced_replay() -> Operation:
    """Return an operation of an operator that lets two requests land against the ledger: long, so
    only some of its calls are worth a run for each fault.
    """
    restored = ProducerPlan(epochs=3, trigger_s=0.2, files_max=1, restored_at=2, restored_by=2)
    # Behind every restart: no request is in the inbox as well that is forced out of quarantine.
    forces = OperatorPlan(looks=2, pause_s=20.0, accepts=1.0, freezes=0.0, forgets=0.0)
    roles = (producer_role("query", restored), ledger_operator_role("owner", forces))
    return Operation("forced replay", _scenario(roles), ("committer-0", "owner"))


def over_two_tables() -> Scenario:
    """Return two transactions over two tables, one of which another producer writes to, too."""
    lone = producer_role("query", ProducerPlan(epochs=2, trigger_s=0.2, files_max=1))
    scenario = _scenario((transfer_role("transfers", 2, 0.1), lone))
    tables = (build_sim_table(SEED), build_sim_table(SEED, "trains"))
    return replace(scenario, tables=tables)


_CHANGES = ChangerPlan(
    epochs=4, pause_s=0.2, think_s_max=0.1, waits=False, jobs=(Job.OVERWRITE, Job.REWRITE)
)
# Behind the first append; a second branch of one name is refused.
_ALTERS = (Act.SET_PROPERTY, Act.CREATE_BRANCH, Act.CREATE_BRANCH)
# The first pick moves the head, another makes its snapshot again; one of them was picked before.
_PUBLISHES = (Act.STAGE, Act.STAGE, Act.PICK, Act.PICK, Act.PICK)
# The first finds no rows, and appends; of the others two meet on one file.
_DELETES = ChangerPlan(epochs=2, pause_s=0.4, think_s_max=0.1, waits=False, jobs=(Job.DELETE_ROWS,))
_MERGING = {"commit.manifest.min-count-to-merge": "2"}
_EXPIRING = {
    "frazil.expire.enabled": "true",
    "history.expire.max-snapshot-age-ms": "1",
    "history.expire.min-snapshots-to-keep": "1",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "1",
}


def _gathered(scenario: Scenario) -> Scenario:
    """Return it with commits so far apart that requests of several producers meet in a batch."""
    commit = scenario.settings.commit.model_copy(update={"min_interval_ms": 700})
    return replace(scenario, settings=scenario.settings.model_copy(update={"commit": commit}))


def _administrator(acts: Sequence[Act]) -> Role:
    return administrator_role("admin", AdministratorPlan(acts=acts, pause_s=0.4))


def _scenario(
    roles: tuple[Role, ...], properties: dict[str, str] | None = None, *, version: int = 2
) -> Scenario:
    settings = base_settings()
    commit = settings.commit.model_copy(update={"min_interval_ms": 0, "yield_to_others_ms": 0})
    return Scenario(
        seed=SEED,
        tables=(build_sim_table(SEED, properties=properties, version=version),),
        roles=roles,
        settings=settings.model_copy(update={"commit": commit}),
        script={},
    )


def positions(operation: Operation) -> Iterator[Position]:
    """Yield all cells of an operation, by its reference run. Errors: `AssertionError`."""
    reference = Simulation(operation.scenario).run()
    assert not reference.violations, f"{operation.name}: {reference.violations[0]}"
    for call in reference.faults.met:
        if call.process in operation.processes:
            is_orphaned = call in reference.faults.orphaned
            for fault in applicable(call.method):
                if not (is_orphaned and fault in PROCESS_FAULTS):
                    yield Position(operation.name, call, fault)


def play(operation: Operation, position: Position) -> Outcome:
    """Run one cell."""
    script = {position.call: position.fault}
    return Simulation(replace(operation.scenario, script=script)).run()
