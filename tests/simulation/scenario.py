"""From a seed to a scenario: who takes part, with what settings, and what befalls the servers.

A scenario is a value: shrinking leaves out actors, fates and faults, and the rest stays as it is.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from uuid import UUID

from committer.iceberg.metadata.new_table import new_table_metadata
from committer.iceberg.schema.partition_spec import UNPARTITIONED
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.sort_order import UNSORTED
from committer.iceberg.values.locations import metadata_file_location, metadata_folder
from committer.iceberg.values.types import LongType, NestedField, StringType
from committer.ports.pointer_swap import LoadedTable
from committer.request.table_identifier import TableIdentifier
from committer.settings.service_settings import Settings
from tests.simulation.actor import Actor
from tests.simulation.administrators import FORWARD, Act, Administrator, AdministratorPlan
from tests.simulation.catalogs import WAREHOUSE, SimCatalog
from tests.simulation.chance import rng
from tests.simulation.changers import Changer, ChangerPlan
from tests.simulation.doublers import Adopter, Claimant, Repeater
from tests.simulation.faults import Call, Fault
from tests.simulation.foreign import HARMLESS, TO_REFS, TO_ROWS, Deed, Foreign, ForeignPlan
from tests.simulation.groups import GroupPlan, GroupWriter
from tests.simulation.jobs import OF_ROWS
from tests.simulation.operators import LedgerOperator, OperatorPlan, QuarantineOperator
from tests.simulation.pace import PACES, SPARSE, CommitPacer
from tests.simulation.producers import Malformed, OneShots, ProducerPlan, SparkProducer
from tests.simulation.replica import base_settings
from tests.simulation.transfers import Transfers
from tests.simulation.world import START_MS

NAMESPACE = ("db",)
# One seed in two has most of its faults at one of these.
FOCI = (
    *(None, None, None, None),
    *("catalog.swap", "catalog.swap"),
    *("storage.create", "storage.delete"),
)


class Fate(Enum):
    """A fault of a server, rather than of a call."""

    QUEUE_LOST = "the queue loses everything"
    QUEUE_FAILS_OVER = "an old replica of the queue takes over"
    QUEUE_TRIMMED = "the queue is trimmed"
    QUEUE_AWAY = "the queue is away"
    STORAGE_AWAY = "the storage is away"
    CATALOG_AWAY = "the catalog is away"
    TABLE_AWAY = "one table is away"
    COMMITTER_CRASHES = "a committer crashes"
    COMMITTER_PAUSES = "a committer stands still"
    COMMITTER_DRAINS = "a committer is told to end"


@dataclass(frozen=True, slots=True)
class Event:
    """A fate at its time. `chance` in [0, 1) decides how long, or whom."""

    at_s: float
    fate: Fate
    chance: float


@dataclass(frozen=True, slots=True)
class Role:
    """An actor of a scenario, made anew for each run. `is_foreign`: another engine."""

    name: str
    make: Callable[[int, Sequence[LoadedTable]], Actor]
    is_foreign: bool = False


@dataclass(frozen=True, slots=True)
class Scenario:
    """Everything that a run depends on.

    `rate`, `focus`, `weights`, `script`, `spared`: see `Faults`. `slowness` stretches each way on
    the wire. `play_s`: after this time every actor is stopped. `forgets_soon`: see `forgetting`.
    """

    seed: int
    tables: tuple[LoadedTable, ...]
    roles: tuple[Role, ...]
    catalog: SimCatalog = SimCatalog.DYNAMODB
    replicas: int = 1
    with_queue: bool = True
    settings: Settings = field(default_factory=base_settings)
    slowness: float = 1.0
    rate: float = 0.0
    focus: str | None = None
    weights: Mapping[Fault, float] = field(default_factory=dict)
    script: Mapping[Call, Fault] | None = None
    spared: frozenset[Call] = frozenset()
    events: tuple[Event, ...] = ()
    skews_ms: tuple[int, ...] = (0,)
    play_s: float = 600.0
    forgets_soon: bool = False


def build_sim_table(
    seed: int,
    name: str = "flights",
    *,
    properties: Mapping[str, str] | None = None,
    version: int = 2,
    warehouse: str = WAREHOUSE,
) -> LoadedTable:
    """Build a table of two columns, the same for the same seed and name."""
    chance = rng(seed, f"table {name}")
    location = "/".join((warehouse, *NAMESPACE, name))
    fields = (
        NestedField(1, "id", LongType(), required=False),
        NestedField(2, "name", StringType(), required=False),
    )
    metadata = new_table_metadata(
        table_uuid=UUID(int=chance.getrandbits(128), version=4),
        location=location,
        schema=Schema(fields),
        partition_spec=UNPARTITIONED,
        sort_order=UNSORTED,
        properties=properties or {},
        format_version=version,
        now_ms=START_MS - 60_000,
    )
    first = metadata_file_location(
        metadata_folder(location, metadata.properties),
        0,
        UUID(int=chance.getrandbits(128), version=4),
        gzip=False,
    )
    return LoadedTable(TableIdentifier(NAMESPACE, name), metadata, first)


def draw_scenario(
    seed: int, pace: CommitPacer | None = None, catalog: SimCatalog = SimCatalog.DYNAMODB
) -> Scenario:
    """Draw the scenario of a seed, at a pace that is drawn if it is not given. The catalog changes
    nothing else of it, but that only one that can has transactions in a third of the seeds.
    """
    return _with_groups(draw_without_groups(seed, pace, catalog))


def draw_without_groups(
    seed: int, pace: CommitPacer | None = None, catalog: SimCatalog = SimCatalog.DYNAMODB
) -> Scenario:
    """Draw the scenario that a seed has had before `groups`: what was found by it means that."""
    if pace is None:
        pace = rng(seed, "pace").choice(PACES)
    chance = rng(seed, "scenario")
    tables = tuple(
        build_sim_table(
            seed,
            f"flights{number}",
            properties=_table_properties(chance, pace) | _upkeep_properties(seed, number),
            version=chance.choice((1, 2, 2, 2, 3)),
        )
        for number in range(chance.choice((1, 1, 1, 2, 3)))
    )
    replicas = chance.choice((1, 1, 2, 2, 3))
    drawn = Scenario(
        seed=seed,
        tables=tables,
        roles=_roles(seed, chance, tables, pace),
        catalog=catalog,
        replicas=replicas,
        with_queue=chance.random() > 0.1,
        settings=_settings(chance, pace),
        slowness=chance.choice(pace.slownesses),
        rate=chance.choice((0.0, 0.005, 0.02, 0.02, 0.05, 0.1)),
        focus=rng(seed, "where").choice(FOCI),
        weights=_weights(seed, chance),
        events=_events(chance, pace) + _crashes(seed, replicas),
        skews_ms=tuple(int(chance.gauss(0, 1_500)) for _ in range(replicas)),
        play_s=chance.choice(pace.plays_s),
    )
    changed = _with_row_changers(_with_changers(_with_transfers(_with_doublers(drawn))))
    return _with_administrators(changed)


# Of all seeds: those with jobs that overwrite, delete and rewrite.
_CHANGES = 0.3


def _with_changers(scenario: Scenario) -> Scenario:
    """Add, in some seeds, jobs that change what they have read; all others stay as they are."""
    chance = rng(scenario.seed, "changers")
    if chance.random() >= _CHANGES:
        return scenario
    table = chance.randrange(len(scenario.tables))
    plans = [
        ChangerPlan(
            epochs=chance.randint(3, 12),
            pause_s=chance.choice((0.05, 0.5, 2.0)),
            waits=chance.random() < 0.5,
            is_sequential=chance.random() < 0.7,
            is_ordered=chance.random() < 0.3,
        )
        for _ in range(chance.randint(1, 3))
    ]
    roles = (changer_role(f"job-{number}", plan, table) for number, plan in enumerate(plans))
    return replace(scenario, roles=(*scenario.roles, *roles))


# Of all seeds: those with operators that change the table by requests. Where nothing else sets a
# table back, some of them roll it back, and another decides about the producers.
_ADMINISTRATES = 0.25
_ROLLS_BACK = 0.2


def _with_administrators(scenario: Scenario) -> Scenario:
    """Add, in some seeds, administrators of a table; all other seeds stay as they are."""
    chance = rng(scenario.seed, "administrators")
    if chance.random() >= _ADMINISTRATES:
        return scenario
    table = chance.randrange(len(scenario.tables))
    is_whole = all(role.name != "vandal" for role in scenario.roles)
    rolls_back = is_whole and chance.random() < _ROLLS_BACK
    acts = (*FORWARD, Act.ROLL_BACK) if rolls_back else FORWARD
    plans = [
        AdministratorPlan(
            acts=chance.choices(acts, k=chance.randint(5, 20)),
            pause_s=chance.choice((0.05, 0.3, 1.0)),
        )
        for _ in range(chance.randint(1, 2))
    ]
    roles = [administrator_role(f"admin-{n}", plan, table) for n, plan in enumerate(plans)]
    if chance.random() < 0.5:
        roles.append(foreign_role("refs-spark", _beside(chance, TO_REFS), table))
    if Act.ROLL_BACK in acts:
        looks = OperatorPlan(looks=2, pause_s=chance.choice((2.0, 8.0)))
        roles.append(ledger_operator_role("owner", looks, table))
    return replace(scenario, roles=(*scenario.roles, *roles))


def _beside(chance: random.Random, deeds: Sequence[Deed]) -> ForeignPlan:
    """Return the plan of another engine that does the same kind of changes."""
    pause_s, think_s = chance.choice((0.2, 1.0)), chance.choice((0.05, 0.5))
    return ForeignPlan(
        deeds=tuple(chance.choices(deeds, k=chance.randint(2, 8))),
        pause_s=pause_s,
        think_s=think_s,
    )


# Of all seeds: those with jobs that change rows.
_ROW_CHANGES = 0.4


def _with_row_changers(scenario: Scenario) -> Scenario:
    """Add, in some seeds, jobs that change rows of a table which has them; all other seeds stay
    as they are."""
    chance = rng(scenario.seed, "row changers")
    if chance.random() >= _ROW_CHANGES:
        return scenario
    table = chance.randrange(len(scenario.tables))
    known = scenario.tables[table]
    # Version 1 has no deletes, and only version 3 has vectors.
    changed = build_sim_table(
        scenario.seed,
        known.identifier.name,
        properties=known.metadata.properties,
        version=chance.choice((2, 3)),
    )
    tables = (*scenario.tables[:table], changed, *scenario.tables[table + 1 :])
    plans = [
        ChangerPlan(
            epochs=chance.randint(10, 25),
            pause_s=chance.choice((0.02, 0.1, 0.4)),
            think_s_max=chance.choice((0.5, 3.0)),
            waits=chance.random() < 0.2,
            is_sequential=chance.random() < 0.7,
            is_ordered=chance.random() < 0.2,
            jobs=OF_ROWS,
        )
        for _ in range(chance.randint(2, 4))
    ]
    roles = [changer_role(f"rows-{number}", plan, table) for number, plan in enumerate(plans)]
    if chance.random() < 0.5:
        roles.append(foreign_role("rows-spark", _beside(chance, TO_ROWS), table))
    return replace(scenario, tables=tables, roles=(*scenario.roles, *roles))


# Of all seeds: those with a client that claims others' files, with two that adopt the same files,
# and with one that sends again what has been forgotten, which takes so long.
_CLAIMS = 0.05
_ADOPTS = 0.06
_REPEATS = 0.04
_REPEATS_S = 20.0


def _with_doublers(scenario: Scenario) -> Scenario:
    """Add, in some seeds, clients that would have rows twice; all other seeds stay as they are."""
    chance = rng(scenario.seed, "doublers")
    roles, drawn = scenario.roles, chance.random()
    table, pause_s = chance.randrange(len(scenario.tables)), chance.choice((0.1, 0.5, 1.0))
    if drawn < _CLAIMS:
        return replace(scenario, roles=(*roles, claimant_role("claimant", 10, pause_s, table)))
    if drawn < _CLAIMS + _ADOPTS:
        roles = (*roles, *(adopter_role(f"adopter-{one}", 8, pause_s, table) for one in "ab"))
        return replace(scenario, roles=roles)
    if drawn < 1.0 - _REPEATS:
        return scenario
    service = scenario.settings.service.model_copy(update={"reconcile_interval_s": 1.0})
    return replace(
        scenario,
        roles=(*roles, repeater_role("repeater", 40, pause_s / 2, table)),
        settings=scenario.settings.model_copy(update={"service": service}),
        play_s=max(scenario.play_s, _REPEATS_S),
        forgets_soon=True,
    )


# Of seeds with several tables: those with a client that writes to all of them at once.
_TRANSFERS = 0.5


def _with_transfers(scenario: Scenario) -> Scenario:
    """Add, in some seeds, transactions over all tables; all other seeds stay as they are."""
    chance = rng(scenario.seed, "transfers")
    if len(scenario.tables) < 2 or chance.random() >= _TRANSFERS:
        return scenario
    if scenario.catalog is not SimCatalog.DYNAMODB:
        return scenario
    forgets = chance.choice((0.0, 0.0, 0.2))
    role = transfer_role("transfers", chance.randint(2, 10), chance.choice((0.1, 1.0)), forgets)
    return replace(scenario, roles=(*scenario.roles, role))


# Of all seeds: those with clients whose transactions meet, and most of what may befall them.
_GROUPS = 1 / 3
_OF_GROUPS = (
    *(Fate.TABLE_AWAY, Fate.TABLE_AWAY, Fate.TABLE_AWAY),
    *(Fate.COMMITTER_DRAINS, Fate.COMMITTER_DRAINS, Fate.COMMITTER_CRASHES),
    *(Fate.COMMITTER_PAUSES, Fate.QUEUE_TRIMMED),
)


def _with_groups(scenario: Scenario) -> Scenario:
    """Add, in a third of the seeds, transactions with second attempts of an epoch, and in the same
    seeds outages of one table and shards that move; all other seeds stay as they are."""
    chance = rng(scenario.seed, "groups")
    if chance.random() >= _GROUPS or scenario.catalog is not SimCatalog.DYNAMODB:
        return scenario
    missing = range(len(scenario.tables), chance.choice((2, 2, 3)))
    added = (build_sim_table(scenario.seed, f"flights{number}") for number in missing)
    tables = (*scenario.tables, *added)
    roles = [
        _drawn_group(chance, f"group-{one}", len(tables)) for one in range(chance.choice((1, 2, 3)))
    ]
    until_s = min(scenario.play_s, 20.0)
    events = tuple(
        Event(chance.uniform(0.0, until_s), chance.choice(_OF_GROUPS), chance.random())
        for _ in range(chance.choice((0, 1, 2, 3, 5)))
    )
    replicas = max(scenario.replicas, chance.choice((1, 2, 2, 3)))
    return replace(
        scenario,
        tables=tables,
        roles=(*scenario.roles, *roles),
        events=scenario.events + events,
        replicas=replicas,
    )


def _drawn_group(chance: random.Random, name: str, tables: int) -> Role:
    """Return a client on two tables or more, in an order of its own."""
    plan = GroupPlan(
        epochs=chance.randint(3, 15),
        pause_s=chance.choice((0.02, 0.1, 0.5)),
        repeats=chance.choice((0.0, 0.3, 0.6)),
        conflicts=chance.choice((0.0, 0.3, 0.5)),
        forgets=chance.choice((0.0, 0.0, 0.15)),
        holds=chance.choice((0.0, 0.2, 0.5)),
    )
    return group_role(name, plan, chance.sample(range(tables), chance.randint(2, tables)))


def _weights(seed: int, chance: random.Random) -> dict[Fault, float]:
    """Draw the weights; `HELD` has its own source and is often 0, so older seeds stay the same."""
    weights = {
        fault: chance.choice((0.0, 0.3, 1.0, 1.0, 4.0))
        for fault in Fault
        if fault is not Fault.HELD
    }
    return weights | {Fault.HELD: rng(seed, "held").choice((0.0, 0.0, 4.0))}


def _table_properties(chance: random.Random, pace: CommitPacer) -> dict[str, str]:
    properties: dict[str, str] = {}
    if chance.random() < 0.4:
        properties |= {
            "frazil.expire.enabled": "true",
            "history.expire.max-snapshot-age-ms": "1",
            "history.expire.min-snapshots-to-keep": chance.choice(("1", "3")),
        }
    if chance.random() < 0.4:
        properties["commit.manifest.min-count-to-merge"] = chance.choice(("2", "4"))
    if chance.random() < 0.4:
        properties |= {
            "write.metadata.delete-after-commit.enabled": "true",
            "write.metadata.previous-versions-max": chance.choice(("1", "3")),
        }
    if chance.random() < 0.5:
        properties["frazil.commit.min-interval-ms"] = chance.choice(pace.table_intervals_ms)
    return properties


def _upkeep_properties(seed: int, number: int) -> dict[str, str]:
    """Draw the upkeep that publishes requests, by a source of its own: it moves no other draw."""
    chance = rng(seed, f"upkeep {number}")
    return {"frazil.deletes.remove-dangling": "true"} if chance.random() < 0.4 else {}


def _settings(chance: random.Random, pace: CommitPacer) -> Settings:
    settings = base_settings()
    commit = settings.commit.model_copy(
        update={
            "min_interval_ms": pace.min_interval_ms,
            "batch_requests_max": chance.choice(pace.batches_max),
            "yield_to_others_ms": chance.choice(pace.yields_to_others_ms),
        }
    )
    service = settings.service.model_copy(update={"breaker_threshold": pace.breaker_threshold})
    return settings.model_copy(update={"commit": commit, "service": service})


def _roles(
    seed: int, chance: random.Random, tables: Sequence[LoadedTable], pace: CommitPacer
) -> tuple[Role, ...]:
    roles = [
        producer_role(
            f"query-{number}", _producer_plan(chance, pace), chance.randrange(len(tables))
        )
        for number in range(chance.choice(pace.queries))
    ]
    if chance.random() < 0.3:
        roles.append(_one_shots("jobs", chance.randint(2, 8), chance.randrange(len(tables))))
    if chance.random() < 0.1:
        roles.append(malformed_role("hostile", chance.randint(1, 3), chance.randrange(len(tables))))
    if chance.random() < 0.5:
        roles.append(
            foreign_role("spark", _foreign_plan(chance, pace), chance.randrange(len(tables)))
        )
    if chance.random() < 0.25:
        plan = OperatorPlan(looks=chance.randint(1, 3), pause_s=chance.choice((2.0, 8.0)))
        roles.append(operator_role("operator", plan))
    if chance.random() < 0.2:
        table = chance.randrange(len(tables))
        harm = rng(seed, "unset").choice((None, None, Deed.UNSET))
        roles += _set_back(chance, table, tables[table].metadata.properties, harm)
    if rng(seed, "flood").random() < 0.05 and pace is not SPARSE:
        roles.append(producer_role("flood", _FLOOD, 0))
    if _is_cut(seed):
        roles += [producer_role("burst", _BURST, 0), foreign_role("cutter", _CUTTER, 0)]
    return tuple(roles)


def _is_cut(seed: int) -> bool:
    """Return whether committers crash behind their swaps, and their snapshots expire before they
    are back: then only the ledger knows which requests in the inbox have landed.
    """
    return rng(seed, "cut").random() < 0.08


_BURST = ProducerPlan(epochs=60, trigger_s=0.05, files_max=1)
_CUTTER = ForeignPlan(deeds=8 * (Deed.APPEND, Deed.EXPIRE), pause_s=0.3, think_s=0.05)
_CUT_CRASHES = 6


# A query that is faster than its committer, and is slowed down.
_FLOOD = ProducerPlan(epochs=100, trigger_s=0.02, files_max=1, backlog_max=3)


def _set_back(
    chance: random.Random, table: int, properties: Mapping[str, str], harm: Deed | None
) -> list[Role]:
    """Restore a table, or remove its ledger, and let an operator decide about that.

    Not to older metadata where files are deleted with commits: between the question whether they
    are needed and the deletion there is always a moment.
    """
    harms = (Deed.ROLL_BACK,) if properties else (Deed.ROLL_BACK, Deed.RESTORE)
    first = chance.choice(harms)
    deeds = (harm or first, *chance.choices(HARMLESS, k=chance.randint(0, 2)))
    plan = ForeignPlan(deeds=deeds, pause_s=chance.choice((2.0, 8.0)))
    looks = OperatorPlan(looks=chance.randint(1, 3), pause_s=chance.choice((2.0, 8.0)))
    return [foreign_role("vandal", plan, table), ledger_operator_role("owner", looks, table)]


def _producer_plan(chance: random.Random, pace: CommitPacer) -> ProducerPlan:
    return ProducerPlan(
        epochs=chance.randint(*pace.epochs),
        trigger_s=chance.choice(pace.triggers_s),
        sinks=chance.choice((("",), ("",), ("",), ("a", "b"))),
        dies=chance.choice((0.0, 0.0, 0.1, 0.3)),
        zombie=chance.choice((0.0, 0.5)),
        empty=chance.choice((0.0, 0.0, 0.3)),
        doubles=chance.choice((0.0, 0.0, 0.0, 0.1)),
        waits=chance.random() < 0.3,
        restored_at=chance.choice((None, None, None, None, 4)),
        is_sequential=chance.random() < 0.8,
    )


def _foreign_plan(chance: random.Random, pace: CommitPacer) -> ForeignPlan:
    return ForeignPlan(
        deeds=tuple(chance.choice(HARMLESS) for _ in range(chance.randint(1, 6))),
        pause_s=chance.choice(pace.foreign_pauses_s),
        think_s=chance.choice((0.05, 0.5, 3.0)),
    )


def _events(chance: random.Random, pace: CommitPacer) -> tuple[Event, ...]:
    count = chance.choice((0, 0, 1, 2, 4))
    fates = tuple(fate for fate in Fate if fate is not Fate.TABLE_AWAY)
    return tuple(
        Event(chance.uniform(0.0, pace.fates_s), chance.choice(fates), chance.random())
        for _ in range(count)
    )


def _crashes(seed: int, replicas: int) -> tuple[Event, ...]:
    """Return crashes of all committers, followed by an expiry: none settles another's landing."""
    if not _is_cut(seed):
        return ()
    chance = rng(seed, "crashes")
    times_s = [chance.uniform(0.5, 8.0) for _ in range(_CUT_CRASHES)]
    return tuple(
        Event(at_s, Fate.COMMITTER_CRASHES, (number + 0.5) / replicas)
        for at_s in times_s
        for number in range(replicas)
    )


def producer_role(name: str, plan: ProducerPlan, table: int = 0) -> Role:
    """Return a streaming query on one of the tables."""
    return Role(
        name,
        lambda seed, tables: SparkProducer(name, tables[table].identifier, plan, seed=seed),
    )


def transfer_role(name: str, epochs: int, pause_s: float, forgets: float = 0.0) -> Role:
    """Return a client that writes to all tables at once."""
    return Role(
        name,
        lambda seed, tables: Transfers(
            name,
            [table.identifier for table in tables],
            epochs=epochs,
            pause_s=pause_s,
            forgets=forgets,
            seed=seed,
        ),
    )


def group_role(name: str, plan: GroupPlan, numbers: Sequence[int]) -> Role:
    """Return a client whose transactions are over the tables of these numbers."""
    return Role(
        name,
        lambda seed, tables: GroupWriter(
            name, [tables[number].identifier for number in numbers], plan, seed=seed
        ),
    )


def _one_shots(name: str, count: int, table: int) -> Role:
    return Role(
        name,
        lambda seed, tables: OneShots(name, tables[table].identifier, count=count, seed=seed),
    )


def operator_role(name: str, plan: OperatorPlan) -> Role:
    """Return an operator that decides about the quarantine."""
    return Role(name, lambda seed, tables: QuarantineOperator(name, plan, seed=seed))


def ledger_operator_role(name: str, plan: OperatorPlan, table: int = 0) -> Role:
    """Return an operator that decides about one of the tables, and about its producers."""
    return Role(
        name,
        lambda seed, tables: LedgerOperator(name, tables[table].identifier, plan, seed=seed),
    )


def malformed_role(name: str, count: int, table: int = 0) -> Role:
    """Return a client that sends nonsense for one of the tables."""
    return Role(name, lambda seed, tables: Malformed(name, tables[table], count=count, seed=seed))


def changer_role(name: str, plan: ChangerPlan, table: int = 0) -> Role:
    """Return a query of jobs that change one of the tables."""
    return Role(name, lambda seed, tables: Changer(name, tables[table].identifier, plan, seed=seed))


def administrator_role(name: str, plan: AdministratorPlan, table: int = 0) -> Role:
    """Return an operator that changes one of the tables by requests."""
    return Role(
        name, lambda seed, tables: Administrator(name, tables[table].identifier, plan, seed=seed)
    )


def claimant_role(name: str, count: int, pause_s: float, table: int = 0) -> Role:
    """Return a client that claims others' files in one of the tables."""
    return Role(
        name,
        lambda seed, tables: Claimant(
            name, tables[table].identifier, count=count, pause_s=pause_s, seed=seed
        ),
    )


def adopter_role(name: str, count: int, pause_s: float, table: int = 0) -> Role:
    """Return a client that adopts the same few files again and again."""
    return Role(
        name,
        lambda seed, tables: Adopter(
            name, tables[table].identifier, count=count, pause_s=pause_s, seed=seed
        ),
    )


def repeater_role(name: str, count: int, pause_s: float, table: int = 0) -> Role:
    """Return a client that sends one-shot requests again, long after they have landed."""
    return Role(
        name,
        lambda seed, tables: Repeater(
            name, tables[table].identifier, count=count, pause_s=pause_s, seed=seed
        ),
    )


def foreign_role(name: str, plan: ForeignPlan, table: int = 0) -> Role:
    """Return another engine on one of the tables."""
    return Role(
        name,
        lambda seed, tables: Foreign(name, tables[table].identifier, plan, seed=seed),
        is_foreign=True,
    )
