"""The crash matrix, exhaustively: every call of every operation is met by every fault.

`make test` runs a 32nd part of it, `make test-servers` the rest.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from tests.simulation.catalogs import SimCatalog
from tests.simulation.crash_matrix import (
    SEED,
    Position,
    forced_replay,
    on_catalog,
    operations,
    over_two_tables,
    play,
    positions,
)
from tests.simulation.faults import Fault, applicable
from tests.simulation.scenario import build_sim_table
from tests.simulation.simulation import Simulation

SLICES = 32
# Calls and faults are dealt to the slices in turn, so each slice has some of all.
PARTS = [pytest.param(part, marks=pytest.mark.heavy if part else ()) for part in range(SLICES)]
OPERATIONS = operations()
OTHER_CATALOGS = [kind for kind in SimCatalog if kind is not SimCatalog.DYNAMODB]
# The others are in `make test-servers`.
_QUICK = ("commit", "conflict", "row delta", "staged and picked")
ON_OTHER_CATALOGS = [
    pytest.param(name, marks=() if name in _QUICK else pytest.mark.heavy)
    for name in OPERATIONS
    if name != "transaction"
]


@cache
def cells(name: str) -> tuple[Position, ...]:
    return tuple(positions(OPERATIONS[name]))


@pytest.mark.simulation
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_no_single_fault_breaks_a_promise(name: str, part: int) -> None:
    operation = OPERATIONS[name]
    for position in cells(name)[part::SLICES]:
        outcome = play(operation, position)
        assert not outcome.violations, f"{position}: {outcome.violations[0]}"
        assert outcome.faults.fired == [(position.call, position.fault)], f"{position} did not fire"


@pytest.mark.simulation
@pytest.mark.heavy
@pytest.mark.parametrize("kind", OTHER_CATALOGS)
@pytest.mark.parametrize("name", ON_OTHER_CATALOGS)
def test_no_fault_of_a_call_to_another_catalog_breaks_a_promise(
    name: str, kind: SimCatalog
) -> None:
    """Each kind has its own way to tell the four answers. It has no transactions over tables.
    Tables of files have no other catalog than their storage."""
    operation = on_catalog(OPERATIONS[name], kind)
    calls = "storage.create" if kind is SimCatalog.FILES else "catalog."
    found = [one for one in positions(operation) if one.call.method.startswith(calls)]
    assert found
    for position in found:
        outcome = play(operation, position)
        assert not outcome.violations, f"{kind}: {position}: {outcome.violations[0]}"
        assert outcome.faults.fired == [(position.call, position.fault)], f"{position} did not fire"


def test_a_delete_that_is_held_until_after_a_replay_takes_nothing() -> None:
    """The committer stands still before it deletes what it has quarantined; then the operator
    replays it.
    """
    operation = OPERATIONS["replay"]
    reference = Simulation(operation.scenario)
    reference.run()
    assert len(reference.history.replayed) == 2
    held = [
        position
        for position in cells("replay")
        if position.fault is Fault.HELD and position.call.process == "committer-0"
    ]
    assert len(held) == 5
    for position in held:
        outcome = play(operation, position)
        assert not outcome.violations, f"{position}: {outcome.violations[0]}"


@pytest.mark.simulation
@pytest.mark.parametrize("part", PARTS)
def test_a_permission_to_land_is_used_once_whatever_befalls_its_swaps(part: int) -> None:
    """Among them a crash behind the swap that lands a forced replay, whose object is in the inbox
    yet: the permission must have gone with that very swap.
    """
    operation = forced_replay()
    swaps = [one for one in positions(operation) if one.call.method == "catalog.swap"]
    forced = {one.call for one in swaps if one.call.process == "owner"}
    assert len(forced) == 3
    for position in swaps[part::SLICES]:
        outcome = play(operation, position)
        assert not outcome.violations, f"{position}: {outcome.violations[0]}"


def test_a_replay_that_is_forced_lands_behind_what_the_ledger_knows() -> None:
    simulation = Simulation(forced_replay().scenario)
    assert simulation.run().commits == 5
    assert len(simulation.history.replayed) == 2
    assert simulation.history.accepted == set()


@pytest.mark.simulation
def test_the_matrix_has_every_call_of_the_service() -> None:
    """A port's method that no operation calls is met by no fault."""
    met = {position.call.method for name in OPERATIONS for position in cells(name)}
    assert met >= {
        *(f"storage.{name}" for name in ("get", "head", "create", "replace", "delete", "list")),
        *(f"catalog.{name}" for name in ("current_location", "swap", "swap_together", "probe")),
        *(f"queue.{name}" for name in ("read", "reclaim", "acknowledge", "reply", "announce")),
        *(f"leases.{name}" for name in ("renew", "wait_for_change", "leave")),
    }


def test_a_swap_meets_every_fault_but_those_of_several_items_and_of_deletes() -> None:
    of_others = {Fault.PARTIAL, Fault.STALE_LIST, Fault.HELD}
    assert set(Fault) - set(applicable("catalog.swap")) == of_others


def test_the_owner_of_the_first_table_gathers_what_comes_to_another_committer() -> None:
    """A request that it does not own is passed on to it by its own committer."""
    names = ("cars", "flights", "ships", "trains")
    tables = tuple(build_sim_table(SEED, name) for name in names)
    outcome = Simulation(replace(over_two_tables(), tables=tables, replicas=2)).run()
    assert not outcome.violations
    assert outcome.commits == 2 * len(tables) + 2
    swaps = {call.process for call in outcome.faults.met if call.method == "catalog.swap_together"}
    announced = {call.process for call in outcome.faults.met if call.method == "queue.announce"}
    assert len(swaps) == 1
    assert announced - swaps > {"query", "transfers"}


def test_a_batch_of_several_snapshots_meets_every_fault() -> None:
    simulation = Simulation(OPERATIONS["several snapshots"].scenario)
    table = simulation.run().scenario.tables[0]
    metadata = simulation.invariants.view(table.identifier).metadata
    assert {one.operation for one in metadata.snapshots} > {"append", "overwrite"}
    assert len(metadata.snapshot_log) < len(metadata.snapshots)


def test_the_committer_unites_vectors_while_it_meets_every_fault() -> None:
    simulation = Simulation(OPERATIONS["row delta"].scenario)
    outcome = simulation.run()
    assert outcome.landed["row-delta"] > 1 and not outcome.conflicts
    (table,) = outcome.scenario.tables
    view = simulation.invariants.view(table.identifier)
    by_clients = {file.file_path for one in view.ledger.attempts.values() for file in one.files}
    head = view.metadata.branch_head()
    assert head is not None
    vectors = [one.data_file for one in view.contents.of(head).deletes]
    assert any(one.is_deletion_vector and one.file_path not in by_clients for one in vectors)


def test_picks_that_move_the_head_and_picks_made_again_meet_every_fault() -> None:
    simulation = Simulation(OPERATIONS["staged and picked"].scenario)
    outcome = simulation.run()
    assert outcome.landed["cherry-pick"] == 2 and outcome.conflicts["cherry-pick", "picked"] == 1
    metadata = simulation.invariants.view(outcome.scenario.tables[0].identifier).metadata
    summaries = [one.summary or {} for one in metadata.branch_history()]
    assert {"wap.id", "published-wap-id"} <= {key for one in summaries for key in one}
